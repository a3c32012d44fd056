package kafka

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"

	"lacuna/internal/faults"
)

// Connection is the place of a cluster and the way to log in, the same for
// publishers and readers.
type Connection struct {
	Brokers []string `yaml:"brokers"` // host:port; any of them leads to the others
	TLS     TLS      `yaml:"tls"`
	SASL    SASL     `yaml:"sasl"`
}

// TLS holds the settings of encryption.
type TLS struct {
	Enabled  bool   `yaml:"enabled"`   // connect over TLS
	CAFile   string `yaml:"ca_file"`   // PEM; empty: the authorities of the system
	CertFile string `yaml:"cert_file"` // PEM; client certificate, where the broker asks for one
	KeyFile  string `yaml:"key_file"`  // PEM; key of cert_file
}

// SASL holds the settings of the login.
type SASL struct {
	Mechanism    string `yaml:"mechanism"`     // empty (none), plain, scram-sha-256 or scram-sha-512
	User         string `yaml:"user"`          // name of the login
	PasswordFile string `yaml:"password_file"` // file whose first line is the password
}

// Validate reports everything wrong with c. It does not look into the files.
func (c Connection) Validate() error {
	var errs faults.List
	errs.Check(len(c.Brokers) > 0, "brokers is empty: name at least one host:port")
	for _, b := range c.Brokers {
		host, port, err := net.SplitHostPort(b)
		errs.Check(err == nil && host != "" && port != "", "brokers has %q, must be host:port", b)
	}
	errs.Check((c.TLS.CertFile == "") == (c.TLS.KeyFile == ""), "tls.cert_file and tls.key_file go together: one of them is empty")
	errs.Check(c.TLS.Enabled || (c.TLS.CAFile == "" && c.TLS.CertFile == ""), "tls names files but tls.enabled is false")
	switch c.SASL.Mechanism {
	case "":
		errs.Check(c.SASL.User == "" && c.SASL.PasswordFile == "", "sasl has a user or password but no mechanism: plain, scram-sha-256 or scram-sha-512")
	case "plain", "scram-sha-256", "scram-sha-512":
		errs.Check(c.SASL.User != "", "sasl.user is empty")
		errs.Check(c.SASL.PasswordFile != "", "sasl.password_file is empty")
	default:
		errs.Check(false, "sasl.mechanism is %q, must be plain, scram-sha-256 or scram-sha-512", c.SASL.Mechanism)
	}
	return errs.Err()
}

// Readable reads the certificates and the password.
func (c Connection) Readable() error {
	_, tlsErr := c.TLS.Config()
	_, saslErr := c.SASL.mechanism()
	return errors.Join(tlsErr, saslErr)
}

// Config loads the certificates; nil where connections are not encrypted.
func (t TLS) Config() (*tls.Config, error) {
	if !t.Enabled {
		return nil, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read tls.ca_file: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read tls.ca_file: %s has no certificate in PEM", t.CAFile)
		}
	}
	if t.CertFile != "" {
		cert, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("read tls.cert_file and tls.key_file: %w", err)
		}
		cfg.Certificates = []tls.Certificate{cert}
	}
	return cfg, nil
}

// mechanism returns the mechanism of the login; nil where there is none.
func (s SASL) mechanism() (sasl.Mechanism, error) {
	if s.Mechanism == "" {
		return nil, nil
	}
	password, err := s.Password()
	if err != nil {
		return nil, err
	}
	switch s.Mechanism {
	case "plain":
		return plain.Mechanism{Username: s.User, Password: password}, nil
	case "scram-sha-256":
		return scram.Mechanism(scram.SHA256, s.User, password)
	}
	return scram.Mechanism(scram.SHA512, s.User, password)
}

// Password reads the password of the login.
func (s SASL) Password() (string, error) {
	file, err := os.ReadFile(s.PasswordFile)
	if err != nil {
		return "", fmt.Errorf("read sasl.password_file: %w", err)
	}
	password, _, _ := strings.Cut(strings.TrimRight(string(file), "\r\n"), "\n")
	return password, nil
}
