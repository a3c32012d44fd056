package daemon

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	ftpserver "github.com/fclairamb/ftpserverlib"
	"github.com/spf13/afero"

	"lacuna/daemon/operate"
	"lacuna/daemon/outbox"
	"lacuna/publish"
	"lacuna/publish/push"
)

// ftpDriver is an FTP server over a folder, for one user.
type ftpDriver struct {
	listener net.Listener
	root     string
}

func (d ftpDriver) GetSettings() (*ftpserver.Settings, error) {
	return &ftpserver.Settings{Listener: d.listener}, nil
}
func (d ftpDriver) ClientConnected(ftpserver.ClientContext) (string, error) { return "ready", nil }
func (d ftpDriver) ClientDisconnected(ftpserver.ClientContext)              {}
func (d ftpDriver) GetTLSConfig() (*tls.Config, error)                      { return nil, errors.New("none") }

func (d ftpDriver) AuthUser(_ ftpserver.ClientContext, user, password string) (ftpserver.ClientDriver, error) {
	if user != "lacuna" || password != "swordfish" {
		return nil, errors.New("no such user")
	}
	return afero.NewBasePathFs(afero.NewOsFs(), d.root), nil
}

// Products wait for an FTP server that is away, come there with the bytes of the
// ledger, and are replaced by their next revision.
func TestProductsArePushedOnceTheServerIsThere(t *testing.T) {
	b := newBench(t)
	b.plain()
	b.cfg.Publish.Disk.FloorMiB = 0
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	t.Setenv("PUSH_PASSWORD", "swordfish")
	b.cfg.Publish.FTP = &outbox.FTP{FTPConfig: push.DefaultFTPConfig()}
	ftp := &b.cfg.Publish.FTP.FTPConfig
	ftp.Address, ftp.User, ftp.PasswordEnv, ftp.TLS = address, "lacuna", "PUSH_PASSWORD", "none"
	sink := ftp.Name()

	granule := b.deliver(t, 1)
	if _, err := b.daemon(t).Once(t.Context()); err == nil || !strings.Contains(err.Error(), "deliver sea/"+granule+"/r1 to "+sink) {
		t.Errorf("Once() = %v without a server, want that the delivery failed", err)
	}
	if s := b.publishStatus(t)[sink]; s.Delivered != 0 || s.Waiting == 0 {
		t.Fatalf("the server is away and the queue is %+v", s)
	}
	what := "FTP server " + address
	var finding operate.Finding
	look := func() {
		if _, err := b.daemon(t).Station().Online(t.Context(), func(f operate.Finding) {
			if f.What == what {
				finding = f
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	if look(); finding.OK || !strings.Contains(finding.ToDo, "publish.ftp") {
		t.Errorf("check says %+v of a server that is away", finding)
	}

	d := ftpDriver{root: t.TempDir()}
	if d.listener, err = net.Listen("tcp", address); err != nil {
		t.Fatal(err)
	}
	server := ftpserver.NewFtpServer(d)
	if err := server.Listen(); err != nil {
		t.Fatal(err)
	}
	go server.Serve() // ends with Stop
	defer server.Stop()
	b.once(t)
	if look(); !finding.OK {
		t.Errorf("check says %+v of a server that is there", finding)
	}
	b.wantPushed(t, d.root, granule, 1)

	b.deliver(t, 2)
	b.once(t)
	b.wantPushed(t, d.root, granule, 2)
}

// wantPushed checks that a folder has a revision of a granule's product, with the
// bytes that the ledger promised.
func (b *bench) wantPushed(t *testing.T, root, granule string, revision int) {
	t.Helper()
	book := b.book(t)
	promised, ok, err := book.Promised(t.Context(), "sea", granule, revision)
	if err != nil || !ok {
		t.Fatalf("the ledger has no revision %d of %s: %v\n%s", revision, granule, err, b.log)
	}
	found := 0
	err = filepath.WalkDir(filepath.Join(root, "sea"), func(path string, e os.DirEntry, err error) error {
		if err != nil || !publish.IsManifest(path) {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		m, err := publish.ParseManifest(text)
		if entry, known := m.Entry(granule); known {
			found++
			p := publish.Product{Path: filepath.Join(filepath.Dir(path), entry.File), SHA256: promised}
			if err := p.CheckFiles(); err != nil || entry.Revision != revision || entry.SHA256 != promised {
				t.Errorf("the server has %+v (%v), want revision %d with %s", entry, err, revision, promised)
			}
		}
		return err
	})
	if err != nil || found != 1 {
		t.Fatalf("%d manifests list %s (%v)\n%s", found, granule, err, b.log)
	}
}
