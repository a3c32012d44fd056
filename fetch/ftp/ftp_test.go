package ftp

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	ftpserver "github.com/fclairamb/ftpserverlib"

	"lacuna/fetch"
	"lacuna/fetch/archivetest"
)

func config(t *testing.T, h *host) Config {
	t.Helper()
	t.Setenv("FTP_TEST_PASSWORD", "swordfish")
	cfg := DefaultConfig()
	cfg.Address, cfg.User, cfg.Password.Env = h.address, "reader", "FTP_TEST_PASSWORD"
	cfg.Timeout = 5 * time.Second
	return cfg
}

func open(t *testing.T, cfg Config) *Archive {
	t.Helper()
	a, err := New(cfg, fetch.Politeness{})
	must(t, err)
	t.Cleanup(func() { a.Close() })
	return a
}

// fixture is the archive of cfg, whose root is the folder dir of this machine.
func fixture(t *testing.T, cfg Config, dir string) archivetest.Fixture {
	return archivetest.Fixture{
		Archive: open(t, cfg),
		Put: func(name string, content []byte, modTime time.Time) {
			write(t, filepath.Join(dir, name), content, modTime)
		},
		Remove: func(name string) { must(t, os.Remove(filepath.Join(dir, name))) },
		Sever:  func() { must(t, os.Rename(dir, dir+".gone")) },
	}
}

func TestFTPConforms(t *testing.T) {
	archivetest.Run(t, func(t *testing.T) archivetest.Fixture {
		h := newHost(t, ftpserver.Settings{}, nil)
		must(t, os.Mkdir(filepath.Join(h.root, "sst"), 0o755))
		cfg := config(t, h)
		cfg.Root = "/sst"
		f := fixture(t, cfg, filepath.Join(h.root, "sst"))
		f.Refuse = func() {
			h.password.Store("changed")
			h.stop() // a live session stays logged in
			h.start(t, h.address)
		}
		return f
	})
}

func TestFTPWithoutMLSDConforms(t *testing.T) {
	archivetest.Run(t, func(t *testing.T) archivetest.Fixture {
		h := newHost(t, ftpserver.Settings{DisableMLSD: true, DisableMLST: true}, nil)
		must(t, os.Mkdir(filepath.Join(h.root, "sst"), 0o755))
		cfg := config(t, h)
		cfg.Root = "/sst"
		f := fixture(t, cfg, filepath.Join(h.root, "sst"))
		f.Coarse = 48 * time.Hour // LIST shows the day of old files
		return f
	})
}

func TestFTPOverTLSConforms(t *testing.T) {
	trust, ca, _ := certificate(t)
	for mode, required := range map[string]ftpserver.TLSRequirement{
		Explicit: ftpserver.MandatoryEncryption, Implicit: ftpserver.ImplicitEncryption,
	} {
		t.Run(mode, func(t *testing.T) {
			archivetest.Run(t, func(t *testing.T) archivetest.Fixture {
				h := newHost(t, ftpserver.Settings{TLSRequired: required}, trust)
				must(t, os.Mkdir(filepath.Join(h.root, "sst"), 0o755))
				cfg := config(t, h)
				cfg.Root, cfg.TLS, cfg.CAFile = "/sst", mode, ca
				return fixture(t, cfg, filepath.Join(h.root, "sst"))
			})
		})
	}
}

func TestVsftpdConforms(t *testing.T) {
	archivetest.Run(t, func(t *testing.T) archivetest.Fixture {
		address, root := startVsftpd(t)
		cfg := DefaultConfig()
		cfg.Address, cfg.Root = address, "/archive"
		f := fixture(t, cfg, root)
		f.Coarse = 48 * time.Hour // vsftpd has no MLSD
		return f
	})
}

func TestVsftpdOverTLSConforms(t *testing.T) {
	_, cert, key := certificate(t)
	for mode, line := range map[string]string{Explicit: "implicit_ssl=NO", Implicit: "implicit_ssl=YES"} {
		t.Run(mode, func(t *testing.T) {
			archivetest.Run(t, func(t *testing.T) archivetest.Fixture {
				address, root := startVsftpd(t, line, "ssl_enable=YES", "allow_anon_ssl=YES",
					"force_anon_logins_ssl=YES", "force_anon_data_ssl=YES", "require_ssl_reuse=YES",
					"ssl_ciphers=HIGH", "rsa_cert_file="+cert, "rsa_private_key_file="+key)
				cfg := DefaultConfig()
				cfg.Address, cfg.Root, cfg.TLS, cfg.CAFile = address, "/archive", mode, cert
				f := fixture(t, cfg, root)
				f.Coarse = 48 * time.Hour
				return f
			})
		})
	}
}
