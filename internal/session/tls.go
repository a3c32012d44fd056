package session

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// TLS returns a configuration that trusts the authorities of the system and,
// where caFile is not empty, the certificates in it.
func TLS(caFile string) (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile == "" {
		return cfg, nil
	}
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("read ca_file: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("ca_file %s holds no certificate in PEM form", caFile)
	}
	cfg.RootCAs = pool
	return cfg, nil
}
