package push

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	ftpserver "github.com/fclairamb/ftpserverlib"

	"lacuna/publish"
	"lacuna/publish/sinktest"
)

func TestCheckLeavesNothingBehind(t *testing.T) {
	for name, start := range hosts() {
		t.Run(name, func(t *testing.T) {
			h := start(t)
			must(t, h.open(t).Check(t.Context()))
			if entries, _ := os.ReadDir(h.root); len(entries) > 0 {
				t.Errorf("the check left %v behind", entries)
			}
		})
	}
}

func TestCheckNamesTheRemedy(t *testing.T) {
	f, s := newFTPHost(t, ftpserver.Settings{}), newSSHHost(t)
	stranger, _ := newKey(t)
	tests := []struct {
		name string
		sink func() *Sink
		want string
	}{
		{"FTP without the folder", func() *Sink { c := f.config(); c.Root = "/none"; return openFTP(t, c) }, "make the folder /none"},
		{"FTP with another password", func() *Sink { c := f.config(); c.PasswordEnv = "PUSH_TEST_OTHER"; return openFTP(t, c) }, "mend user and password"},
		{"FTP without a password", func() *Sink { c := f.config(); c.PasswordEnv = "PUSH_TEST_NONE"; return openFTP(t, c) }, "PUSH_TEST_NONE is empty"},
		{"SFTP without the folder", func() *Sink { c := s.config(t); c.Root = "/none"; return openSFTP(t, c) }, "make the folder /none"},
		{"SFTP with another password", func() *Sink { c := s.config(t); c.PasswordEnv = "PUSH_TEST_OTHER"; return openSFTP(t, c) }, "mend user"},
		{"SFTP without known hosts", func() *Sink { c := s.config(t); c.KnownHosts = "/none"; return openSFTP(t, c) }, "ssh-keyscan"},
		{"SFTP with another host key", func() *Sink {
			c := s.config(t)
			c.KnownHosts = s.knownHosts(t, stranger.PublicKey())
			return openSFTP(t, c)
		}, "somebody may be in between"},
		{"SFTP with a host that is not known", func() *Sink {
			c := s.config(t)
			must(t, os.WriteFile(c.KnownHosts, nil, 0o600))
			return openSFTP(t, c)
		}, "add the key"},
	}
	t.Setenv("PUSH_TEST_OTHER", "open sesame")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sink := tt.sink()
			err := sink.Check(t.Context())
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "open sesame") {
				t.Errorf("Check() = %v, want a message with %q and without the password", err, tt.want)
			}
			if err := sink.Publish(t.Context(), sinktest.Product(t, "sea", "a", 1)); err == nil || errors.Is(err, publish.ErrPermanent) {
				t.Errorf("Publish() = %v, want an error that may pass", err)
			}
		})
	}
}

// A password goes to a host that is known, and to nobody else.
func TestWrongHostKeyGetsNoPassword(t *testing.T) {
	h := newSSHHost(t)
	stranger, _ := newKey(t)
	cfg := h.config(t)
	cfg.KnownHosts = h.knownHosts(t, stranger.PublicKey())
	if err := openSFTP(t, cfg).Check(t.Context()); !errors.Is(err, errHostKey) {
		t.Errorf("Check() = %v, want errHostKey", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.passwords > 0 {
		t.Error("the password was sent to another host")
	}
}

func TestLoginByKey(t *testing.T) {
	h := newSSHHost(t)
	user, text := newKey(t)
	h.user = user.PublicKey()
	cfg := h.config(t)
	cfg.PasswordEnv, cfg.KeyFile = "", filepath.Join(t.TempDir(), "key")
	must(t, os.WriteFile(cfg.KeyFile, text, 0o600))
	must(t, openSFTP(t, cfg).Check(t.Context()))
	cfg.KnownHosts, cfg.AnyHostKey = "", true
	must(t, openSFTP(t, cfg).Check(t.Context()))
}

func TestPasswordComesFromAFile(t *testing.T) {
	h := newFTPHost(t, ftpserver.Settings{})
	cfg := h.config()
	cfg.PasswordEnv, cfg.PasswordFile = "", filepath.Join(t.TempDir(), "password")
	must(t, os.WriteFile(cfg.PasswordFile, []byte("swordfish\n"), 0o600))
	must(t, openFTP(t, cfg).Check(t.Context()))
}

func TestConfigIsChecked(t *testing.T) {
	for name, tt := range map[string]struct {
		edit func(*FTPConfig, *SFTPConfig)
		want string // part of the message; empty: valid
	}{
		"valid":               {func(*FTPConfig, *SFTPConfig) {}, ""},
		"no address":          {func(f *FTPConfig, s *SFTPConfig) { f.Address, s.Address = "", "" }, "address is"},
		"password in address": {func(f *FTPConfig, s *SFTPConfig) { f.Address, s.Address = "me:swordfish@h", "me:swordfish@h" }, "address is"},
		"no user":             {func(f *FTPConfig, s *SFTPConfig) { f.User, s.User = "", "" }, "user is"},
		"two passwords": {func(f *FTPConfig, s *SFTPConfig) {
			f.PasswordFile, f.PasswordEnv, s.PasswordFile, s.PasswordEnv = "a", "b", "a", "b"
		}, "password_file and password_env"},
		"unknown check":    {func(f *FTPConfig, s *SFTPConfig) { f.Verify, s.Verify = "no", "no" }, "verify is"},
		"no root":          {func(f *FTPConfig, s *SFTPConfig) { f.Root, s.Root = "", "" }, "root is"},
		"no time":          {func(f *FTPConfig, s *SFTPConfig) { f.Timeout, s.Timeout = 0, -time.Second }, "timeout is"},
		"no connections":   {func(f *FTPConfig, s *SFTPConfig) { f.Connections, s.Connections = 0, 0 }, "connections is"},
		"no host key":      {func(f *FTPConfig, s *SFTPConfig) { f.TLS, s.KnownHosts = "yes", "" }, ""},
		"host key and any": {func(f *FTPConfig, s *SFTPConfig) { f.TLS, s.AnyHostKey = "yes", true }, ""},
		"no login":         {func(f *FTPConfig, s *SFTPConfig) { f.TLS, s.KeyFile = "yes", "" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f, s := DefaultFTPConfig(), DefaultSFTPConfig()
			f.Address, f.User = "ftp.example.org", "me"
			s.Address, s.User, s.KeyFile, s.KnownHosts = "ftp.example.org:2222", "me", "key", "known_hosts"
			tt.edit(&f, &s)
			for kind, err := range map[string]error{"ftp": f.Validate(), "sftp": s.Validate()} {
				valid := name == "valid"
				if valid != (err == nil) || err != nil && (!strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "swordfish")) {
					t.Errorf("%s: Validate() = %v, want a message with %q", kind, err, tt.want)
				}
			}
		})
	}
}
