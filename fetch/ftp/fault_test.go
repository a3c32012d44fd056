package ftp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	ftpserver "github.com/fclairamb/ftpserverlib"

	"lacuna/fetch"
	"lacuna/fetch/archivetest"
)

func TestRefusedLoginIsPermanentAndKeepsThePassword(t *testing.T) {
	h := newHost(t, ftpserver.Settings{}, nil)
	h.password.Store("another")
	_, err := open(t, config(t, h)).List(t.Context(), fetch.Scope{})
	if !errors.Is(err, fetch.ErrPermanent) {
		t.Errorf("List() = %v, want ErrPermanent", err)
	}
	if strings.Contains(fmt.Sprintf("%+v", err), "swordfish") {
		t.Errorf("the error shows the password that the server echoed: %v", err)
	}
}

func TestUserRefusedBeforeThePasswordIsPermanent(t *testing.T) {
	h := newHost(t, ftpserver.Settings{}, nil)
	h.refusal.Store("account closed")
	if _, err := open(t, config(t, h)).List(t.Context(), fetch.Scope{}); !errors.Is(err, fetch.ErrPermanent) {
		t.Errorf("List() = %v, want ErrPermanent", err)
	}
}

func TestFullServerIsNotPermanent(t *testing.T) {
	h := newHost(t, ftpserver.Settings{}, nil)
	h.refusal.Store("Too many connections from your host")
	_, err := open(t, config(t, h)).List(t.Context(), fetch.Scope{})
	if err == nil || errors.Is(err, fetch.ErrPermanent) {
		t.Errorf("List() = %v, want an error that passes", err)
	}
}

func TestUnknownCertificateIsRefused(t *testing.T) {
	trust, _, _ := certificate(t)
	h := newHost(t, ftpserver.Settings{TLSRequired: ftpserver.MandatoryEncryption}, trust)
	cfg := config(t, h)
	cfg.TLS = Explicit
	if _, err := open(t, cfg).List(t.Context(), fetch.Scope{}); err == nil {
		t.Error("List() trusts a certificate that nobody vouches for")
	}
	if h.logins.Load() != 0 {
		t.Error("the password was sent to a host that nobody vouches for")
	}
}

func TestListSurvivesARestartOfTheServer(t *testing.T) {
	h := newHost(t, ftpserver.Settings{}, nil)
	write(t, filepath.Join(h.root, "a.nc"), []byte("a"), time.Now())
	a := open(t, config(t, h))
	for range 2 {
		if objects, err := a.List(t.Context(), fetch.Scope{}); err != nil || len(objects) != 1 {
			t.Fatalf("List() = %v, %v", objects, err)
		}
		h.stop()
		h.start(t, h.address)
	}
}

func TestDownloadResumesAfterARestartWithoutRepeatingBytes(t *testing.T) {
	h := newHost(t, ftpserver.Settings{}, nil)
	content := bytes.Repeat([]byte("sea surface "), 1<<20)
	write(t, filepath.Join(h.root, "a.nc"), content, time.Now().Add(-time.Hour))
	a := open(t, config(t, h))
	o := single(t, a)
	gate := make(chan struct{})
	h.wrap = func(f ftpserver.FileTransfer) faultyFile {
		var sent int
		return faultyFile{FileTransfer: f, read: func(p []byte) (int, error) {
			if sent > len(content)/2 {
				<-gate
				return 0, errors.New("power cut")
			}
			n, err := f.Read(p)
			sent += n
			return n, err
		}}
	}
	r, err := a.Open(t.Context(), o, 0)
	must(t, err)
	head := make([]byte, len(content)/2)
	_, err = io.ReadFull(r, head)
	must(t, err)
	close(gate)
	tail, err := io.ReadAll(r)
	if err == nil || errors.Is(err, fetch.ErrChanged) {
		t.Fatalf("a cut download ended with %v", err)
	}
	r.Close()
	got := append(head, tail...)
	h.stop()
	h.wrap = nil
	h.start(t, h.address)
	before := h.sent.Load()
	r, err = a.Open(t.Context(), o, int64(len(got)))
	must(t, err)
	defer r.Close()
	rest, err := io.ReadAll(r)
	if got = append(got, rest...); err != nil || !bytes.Equal(got, content) {
		t.Errorf("resumed to %d bytes, %v; want %d", len(got), err, len(content))
	}
	if again := h.sent.Load() - before; again > int64(len(rest)) {
		t.Errorf("the server read %d bytes for the %d that were missing", again, len(rest))
	}
}

func TestFileShorterThanListedDoesNotEndInEOF(t *testing.T) {
	h := newHost(t, ftpserver.Settings{}, nil)
	write(t, filepath.Join(h.root, "a.nc"), make([]byte, 1000), time.Now())
	a := open(t, config(t, h))
	o := single(t, a)
	h.wrap = func(f ftpserver.FileTransfer) faultyFile {
		short := io.LimitReader(f, 600)
		return faultyFile{FileTransfer: f, read: short.Read}
	}
	r, err := a.Open(t.Context(), o, 0)
	must(t, err)
	defer r.Close()
	if got, err := io.ReadAll(r); !errors.Is(err, io.ErrUnexpectedEOF) || len(got) != 600 {
		t.Errorf("read %d bytes, %v; want 600 and io.ErrUnexpectedEOF", len(got), err)
	}
}

func TestStalledReadEnds(t *testing.T) {
	for _, tt := range []struct {
		name    string
		timeout time.Duration
		want    error
	}{
		{"on cancellation", time.Minute, context.Canceled},
		{"after the timeout", 100 * time.Millisecond, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHost(t, ftpserver.Settings{}, nil)
			write(t, filepath.Join(h.root, "a.nc"), make([]byte, 1000), time.Now())
			cfg := config(t, h)
			cfg.Timeout = tt.timeout
			a := open(t, cfg)
			o := single(t, a)
			hang := make(chan struct{})
			defer close(hang)
			h.wrap = func(f ftpserver.FileTransfer) faultyFile {
				return faultyFile{FileTransfer: f, read: func([]byte) (int, error) { <-hang; return 0, io.EOF }}
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r, err := a.Open(ctx, o, 0)
			must(t, err)
			defer r.Close()
			if tt.want != nil {
				time.AfterFunc(50*time.Millisecond, cancel)
			}
			_, err = io.ReadAll(r)
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("Read() = %v, want %v", err, tt.want)
			}
		})
	}
}

func TestConnectionsAreBoundedAndUsedAgain(t *testing.T) {
	h := newHost(t, ftpserver.Settings{}, nil)
	write(t, filepath.Join(h.root, "a.nc"), bytes.Repeat([]byte("a"), 100_000), time.Now())
	cfg := config(t, h)
	cfg.Connections, cfg.Idle = 2, 200*time.Millisecond
	a := open(t, cfg)
	o := single(t, a)
	var wg sync.WaitGroup
	for range 12 {
		wg.Go(func() {
			r, err := a.Open(t.Context(), o, 0)
			if err != nil {
				t.Errorf("Open(): %v", err)
				return
			}
			defer r.Close()
			if n, err := io.Copy(io.Discard, r); err != nil || n != o.Size {
				t.Errorf("read %d bytes, %v", n, err)
			}
		})
	}
	wg.Wait()
	if n := h.logins.Load(); n > 2 {
		t.Errorf("%d logins for twelve downloads, want at most 2", n)
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		idle := a.pool.Idle()
		if idle == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d connections are still idle", idle)
		}
	}
}

func TestBoundsOfAListingAreErrors(t *testing.T) {
	h := newHost(t, ftpserver.Settings{}, nil)
	for _, name := range []string{"a.nc", "b.nc", "c.nc", "x/d.nc", "x/y/z/deep.nc"} {
		write(t, filepath.Join(h.root, name), []byte(name), time.Now())
	}
	cfg := config(t, h)
	cfg.Depth = 2
	objects, err := open(t, cfg).List(t.Context(), fetch.Scope{})
	if err == nil || !strings.Contains(err.Error(), "depth") || len(objects) != 4 {
		t.Errorf("List() = %v, %v; want four files and that some lie too deep", objects, err)
	}
	cfg.MaxObjects = 2
	objects, err = open(t, cfg).List(t.Context(), fetch.Scope{})
	if err == nil || !strings.Contains(err.Error(), "max_objects") || len(objects) == 0 || len(objects) > 2 {
		t.Errorf("List() = %v, %v; want the first two entries and an error for the others", objects, err)
	}
}

func TestConfigIsChecked(t *testing.T) {
	good := DefaultConfig()
	good.Address = "ftp.example.org"
	open := func(c Config) error {
		_, err := New(c, fetch.Politeness{})
		return err
	}
	archivetest.CheckConfigs(t, good, "swordfish", "ftp", open, []archivetest.ConfigCase[Config]{
		{Name: "no address", Edit: func(c *Config) { c.Address = "" }, Key: "address"},
		{Name: "address with a password", Edit: func(c *Config) { c.Address = "me:swordfish@host" }, Key: "address"},
		{Name: "unknown tls", Edit: func(c *Config) { c.TLS = "yes" }, Key: "tls"},
		{Name: "relative root", Edit: func(c *Config) { c.Root = "sst" }, Key: "root"},
		{Name: "command in the user", Edit: func(c *Config) { c.User = "me\r\nDELE x" }, Key: "user"},
		{Name: "no connections", Edit: func(c *Config) { c.Connections = 0 }, Key: "connections"},
		{Name: "no timeout", Edit: func(c *Config) { c.Timeout = 0 }, Key: "timeout"},
		{Name: "two passwords", Edit: func(c *Config) { c.Password = fetch.SecretConfig{Env: "A", File: "b"} }, Key: "password"},
	})
}

func single(t *testing.T, a *Archive) fetch.Object {
	t.Helper()
	objects, err := a.List(t.Context(), fetch.Scope{})
	must(t, err)
	if len(objects) != 1 {
		t.Fatalf("List() = %v, want one object", objects)
	}
	return objects[0]
}

func TestSecretsAreKept(t *testing.T) {
	h := newHost(t, ftpserver.Settings{}, nil)
	h.password.Store("another")
	archivetest.KeepSecrets(t, open(t, config(t, h)), "swordfish")
	h.refusal.Store("too many users, among them one with swordfish")
	archivetest.KeepSecrets(t, open(t, config(t, h)), "swordfish")
}

func TestFileRewrittenInPlaceWhileItIsReadIsNoticed(t *testing.T) {
	for _, settings := range []ftpserver.Settings{{}, {DisableMLSD: true, DisableMLST: true}} {
		h := newHost(t, settings, nil)
		file := filepath.Join(h.root, "a.nc")
		write(t, file, bytes.Repeat([]byte("o"), 1<<20), time.Now().Add(-time.Hour))
		a := open(t, config(t, h))
		o := single(t, a)
		h.wrap = func(f ftpserver.FileTransfer) faultyFile {
			var once sync.Once
			return faultyFile{FileTransfer: f, read: func(p []byte) (int, error) {
				n, err := f.Read(p)
				once.Do(func() { must(t, os.WriteFile(file, bytes.Repeat([]byte("n"), 1<<20), 0o644)) })
				return n, err
			}}
		}
		r, err := a.Open(t.Context(), o, 0)
		must(t, err)
		if got, err := io.ReadAll(r); !errors.Is(err, fetch.ErrChanged) {
			t.Errorf("MLSD %v: read %d bytes, %v; want ErrChanged", !settings.DisableMLSD, len(got), err)
		}
		r.Close()
	}
}

func TestVsftpdThatKnowsNoSuchUserIsPermanent(t *testing.T) {
	address, _ := startVsftpd(t)
	t.Setenv("FTP_TEST_PASSWORD", "swordfish")
	cfg := DefaultConfig()
	cfg.Address, cfg.User, cfg.Password.Env = address, "reader", "FTP_TEST_PASSWORD"
	_, err := open(t, cfg).List(t.Context(), fetch.Scope{})
	if !errors.Is(err, fetch.ErrPermanent) || strings.Contains(err.Error(), "swordfish") {
		t.Errorf("List() = %v, want ErrPermanent without the password", err)
	}
}
