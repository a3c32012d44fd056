package push

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	ftpserver "github.com/fclairamb/ftpserverlib"

	"lacuna/internal/session"
)

// certificate makes a certificate for the loopback host that signs itself, and
// returns it with the path of its PEM file.
func certificate(t *testing.T) (trust *tls.Config, file string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "loopback"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	file = filepath.Join(t.TempDir(), "cert.pem")
	must(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644))
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, file
}

func TestProductsArePushedOverTLS(t *testing.T) {
	h := newFTPHost(t, ftpserver.Settings{TLSRequired: ftpserver.MandatoryEncryption})
	var file string
	h.trust, file = certificate(t)
	cfg := h.config()
	cfg.TLS, cfg.CAFile = session.Explicit, file
	place := host{h.trouble, h.root, func(t *testing.T) *Sink { return openFTP(t, cfg) }}
	p := large(t, 1)
	h.room.Store(1 << 20)
	if err := place.open(t).Publish(t.Context(), p); err == nil {
		t.Fatal("Publish() is nil on a full disk")
	}
	h.room.Store(-1)
	must(t, place.open(t).Publish(t.Context(), p))
	place.receivesOnly(t, p)

	before := h.logins.Load()
	cfg.CAFile = ""
	if err := place.open(t).Check(t.Context()); err == nil {
		t.Error("Check() trusts a certificate that nobody vouches for")
	}
	if h.logins.Load() != before {
		t.Error("the password was sent to a host that nobody vouches for")
	}
}
