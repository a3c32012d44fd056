package brokertest

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha512"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	kafkago "github.com/segmentio/kafka-go"
)

// addUser makes User known to the cluster, over the open listener.
func (c *Cluster) addUser() {
	c.t.Helper()
	const rounds, keyBytes = 4096, 64 // the least that Kafka takes; the length of SHA-512
	salt := []byte("salt of the tests")
	salted, err := pbkdf2.Key(sha512.New, Password, salt, rounds, keyBytes)
	if err != nil {
		c.t.Fatal(err)
	}
	pool := &kafkago.Transport{}
	defer pool.CloseIdleConnections()
	client := &kafkago.Client{Addr: kafkago.TCP(c.Addrs()...), Transport: pool}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	answer, err := client.AlterUserScramCredentials(ctx, &kafkago.AlterUserScramCredentialsRequest{
		Upsertions: []kafkago.UserScramCredentialsUpsertion{{
			Name: User, Mechanism: kafkago.ScramMechanismSha512, Iterations: rounds, Salt: salt, SaltedPassword: salted,
		}},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, r := range answer.Results {
		if r.Error != nil {
			c.t.Fatal(r.Error)
		}
	}
}

// authority signs certificates.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pem  []byte
}

// writeCertificates writes an authority, the broker's keystore, a client that
// the authority knows and a stranger that it does not.
func writeCertificates(dir string) error {
	ours, err := newAuthority("lacuna test authority")
	if err != nil {
		return err
	}
	other, err := newAuthority("another authority")
	if err != nil {
		return err
	}
	files := map[string][]byte{"ca.pem": ours.pem}
	for name, by := range map[string]authority{"server": ours, "client": ours, "stranger": other} {
		cert, key, err := by.sign(name)
		if err != nil {
			return err
		}
		files[name+".pem"], files[name+".key"] = cert, key
	}
	files["server.keystore.pem"] = append(bytes.Clone(files["server.key"]), files["server.pem"]...)
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func newAuthority(name string) (authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return authority{}, err
	}
	template := certificate(name)
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return authority{}, err
	}
	cert, err := x509.ParseCertificate(der)
	return authority{key: key, cert: cert, pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, err
}

// sign makes a key and a certificate for the loopback interface.
func (a authority) sign(name string) (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := certificate(name)
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &private.PublicKey, a.key)
	if err != nil {
		return nil, nil, err
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, fmt.Errorf("encode key of %s: %w", name, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), nil
}

func certificate(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
}
