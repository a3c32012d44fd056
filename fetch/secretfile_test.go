package fetch

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestASecretIsTheUsersOrLentByRoot(t *testing.T) {
	const me, other = 1000, 1001
	for _, c := range []struct {
		name  string
		mode  os.FileMode
		owner int
		taken bool
	}{
		{"private", 0o600, me, true},
		{"read-only", 0o400, me, true},
		{"a systemd credential that the service owns", 0o400, me, true},
		{"a systemd credential with an access control list", 0o440, 0, true},
		{"root's, lent to a group", 0o640, 0, true},
		{"my own, lent to a group", 0o640, me, false},
		{"root's, for everybody to read", 0o644, 0, false},
		{"for everybody to read", 0o604, me, false},
		{"for everybody to write", 0o666, me, false},
		{"root's, for a group to write", 0o660, 0, false},
		{"somebody else's", 0o600, other, false},
	} {
		if why := exposed(c.mode, c.owner, me); (why == "") != c.taken {
			t.Errorf("%s: %q", c.name, why)
		}
	}
}

func TestASecretFileThatOthersMayReadIsRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "password")
	if err := os.WriteFile(path, []byte("hush\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CREDENTIALS_DIRECTORY", dir)
	for _, mode := range []os.FileMode{0o666, 0o644, 0o622, 0o604, 0o400, 0o600} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		for _, place := range []SecretConfig{{File: path}, {Credential: "password"}} {
			got, err := place.Load()
			if private := mode&0o077 == 0; private != (err == nil) || private != (got == "hush") {
				t.Errorf("of mode %04o %+v = %q, %v", mode, place, got.Reveal(), err)
			}
			if err != nil && (!errors.Is(err, ErrExposed) || !strings.Contains(err.Error(), "chmod 600") || !strings.Contains(err.Error(), path)) {
				t.Errorf("of mode %04o: %v", mode, err)
			}
		}
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := CheckSecretFile(pipe); err == nil || !strings.Contains(err.Error(), "not a file") {
		t.Errorf("a pipe as a secret: %v", err)
	}
}
