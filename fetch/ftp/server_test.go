package ftp

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ftpserver "github.com/fclairamb/ftpserverlib"
	"github.com/spf13/afero"
)

// host is an FTP server in this process, over a folder.
type host struct {
	root     string
	address  string
	settings ftpserver.Settings
	trust    *tls.Config
	password atomic.Value // string
	refusal  atomic.Value // string; the answer to USER, if not empty
	logins   atomic.Int32
	sent     atomic.Int64                            // bytes of files
	wrap     func(ftpserver.FileTransfer) faultyFile // nil: no faults

	mu     sync.Mutex // guards server and conns
	server *ftpserver.FtpServer
	conns  []net.Conn
}

func newHost(t *testing.T, settings ftpserver.Settings, trust *tls.Config) *host {
	t.Helper()
	h := &host{root: t.TempDir(), settings: settings, trust: trust}
	h.password.Store("swordfish")
	h.refusal.Store("")
	h.start(t, "127.0.0.1:0")
	t.Cleanup(h.stop)
	return h
}

func (h *host) start(t *testing.T, address string) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	must(t, err)
	h.address = listener.Addr().String()
	settings := h.settings
	var accepting net.Listener = &recordingListener{Listener: listener, host: h}
	if settings.TLSRequired == ftpserver.ImplicitEncryption {
		accepting = tls.NewListener(accepting, h.trust)
	}
	settings.Listener = accepting
	server := ftpserver.NewFtpServer(&driver{host: h, settings: settings})
	must(t, server.Listen())
	go server.Serve() // ends with Stop
	h.mu.Lock()
	h.server = server
	h.mu.Unlock()
}

// stop closes the server and cuts its connections, as a crash does.
func (h *host) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	_ = h.server.Stop()
	for _, c := range h.conns {
		c.Close()
	}
	h.conns = nil
}

type recordingListener struct {
	net.Listener
	host *host
}

func (l *recordingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.host.mu.Lock()
		l.host.conns = append(l.host.conns, c)
		l.host.mu.Unlock()
	}
	return c, err
}

type driver struct {
	host     *host
	settings ftpserver.Settings
}

func (d *driver) GetSettings() (*ftpserver.Settings, error)               { return &d.settings, nil }
func (d *driver) ClientConnected(ftpserver.ClientContext) (string, error) { return "ready", nil }
func (d *driver) ClientDisconnected(ftpserver.ClientContext)              {}
func (d *driver) GetTLSConfig() (*tls.Config, error)                      { return d.host.trust, nil }

func (d *driver) PreAuthUser(ftpserver.ClientContext, string) error {
	if text := d.host.refusal.Load().(string); text != "" {
		return errors.New(text)
	}
	return nil
}

func (d *driver) AuthUser(_ ftpserver.ClientContext, user, pass string) (ftpserver.ClientDriver, error) {
	d.host.logins.Add(1)
	if user != "reader" || pass != d.host.password.Load().(string) {
		return nil, fmt.Errorf("no such user: %s with %s", user, pass) // rude servers echo
	}
	return &clientFS{Fs: afero.NewBasePathFs(afero.NewOsFs(), d.host.root), host: d.host}, nil
}

// clientFS counts the bytes read of files, and injects faults.
type clientFS struct {
	afero.Fs
	host *host
}

func (c *clientFS) GetHandle(name string, flags int, offset int64) (ftpserver.FileTransfer, error) {
	f, err := c.OpenFile(name, flags, 0)
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return nil, err
	}
	var file ftpserver.FileTransfer = &countedFile{FileTransfer: f, host: c.host}
	if c.host.wrap != nil {
		return c.host.wrap(file), nil
	}
	return file, nil
}

type countedFile struct {
	ftpserver.FileTransfer
	host *host
}

func (f *countedFile) Read(p []byte) (int, error) {
	n, err := f.FileTransfer.Read(p)
	f.host.sent.Add(int64(n))
	return n, err
}

// faultyFile is a file whose reads fail as the test asks.
type faultyFile struct {
	ftpserver.FileTransfer
	read func(p []byte) (int, error)
}

func (f faultyFile) Read(p []byte) (int, error) { return f.read(p) }

// certificate makes a certificate for the loopback host that signs itself, and
// returns it with the paths of its PEM files.
func certificate(t *testing.T) (trust *tls.Config, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "loopback"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	pkcs, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs})
	must(t, os.WriteFile(certFile, certPEM, 0o644))
	must(t, os.WriteFile(keyFile, keyPEM, 0o600))
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	must(t, err)
	return &tls.Config{Certificates: []tls.Certificate{pair}}, certFile, keyFile
}

// startVsftpd runs a vsftpd that serves a folder to anybody, with the given
// lines added to its settings, and returns its address and that folder.
func startVsftpd(t *testing.T, lines ...string) (address, root string) {
	t.Helper()
	if testing.Short() {
		t.Skip("vsftpd runs outside this process; its tests are part of the whole run")
	}
	program, err := exec.LookPath("vsftpd")
	if err != nil {
		program = "/usr/sbin/vsftpd"
	}
	if _, err := os.Stat(program); err != nil {
		t.Skip("vsftpd is not installed; apt-get install vsftpd brings it")
	}
	if _, err := user.Lookup("ftp"); err != nil {
		t.Skip("there is no user ftp, whom vsftpd serves files as")
	}
	if os.Geteuid() != 0 {
		t.Skip("vsftpd needs root to change to the folder of anonymous users")
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	_, port, _ := net.SplitHostPort(free.Addr().String())
	must(t, free.Close())
	jail := t.TempDir()
	must(t, os.Chmod(filepath.Dir(jail), 0o755)) // the user ftp has to get in
	root = filepath.Join(jail, "archive")        // a folder in the jail, so that it can vanish
	must(t, os.Mkdir(root, 0o755))
	settings := append([]string{
		"listen=YES", "listen_address=127.0.0.1", "listen_port=" + port, "background=NO",
		"anonymous_enable=YES", "no_anon_password=NO", "local_enable=NO", "anon_root=" + jail,
		"anon_world_readable_only=NO", "seccomp_sandbox=NO", "isolate=NO", "isolate_network=NO",
		"xferlog_enable=NO", "secure_chroot_dir=" + t.TempDir(),
	}, lines...)
	file := filepath.Join(t.TempDir(), "vsftpd.conf")
	must(t, os.WriteFile(file, []byte(strings.Join(settings, "\n")+"\n"), 0o600))
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, file)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	must(t, cmd.Start())
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
	})
	address = "127.0.0.1:" + port
	awaitServer(t, address)
	return address, root
}

func awaitServer(t *testing.T, address string) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if c, err := net.DialTimeout("tcp", address, time.Second); err == nil {
			c.Close()
			return
		}
	}
	t.Fatal("vsftpd does not answer")
}

func write(t *testing.T, file string, content []byte, modTime time.Time) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(file), 0o755))
	must(t, os.WriteFile(file+".writing~", content, 0o644))
	must(t, os.Chtimes(file+".writing~", modTime, modTime))
	must(t, os.Rename(file+".writing~", file))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
