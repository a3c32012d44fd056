package fetch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// maxSecretBytes bounds a secret file, which may be the wrong file: private
// keys are the longest secrets there are.
const maxSecretBytes = 64 << 10

// ErrExposed marks a secret file that other users may read or change.
var ErrExposed = errors.New("other users may read or change it")

// ReadSecretFile reads the secret in a file. White space at its end is no part
// of it. A file that other users may read or change is refused with ErrExposed.
func ReadSecretFile(path string) (Secret, error) {
	f, err := openSecret(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxSecretBytes))
	if err != nil {
		return "", fmt.Errorf("read secret: %w", err)
	}
	s := Secret(strings.TrimRight(string(content), " \t\r\n"))
	if s == "" {
		return "", fmt.Errorf("read secret %s: it is empty", path)
	}
	return s, nil
}

// CheckSecretFile reports whether ReadSecretFile would take the file, whatever
// is in it, for those who read it otherwise.
func CheckSecretFile(path string) error {
	f, err := openSecret(path)
	if err != nil {
		return err
	}
	return f.Close()
}

// openSecret opens a secret file and checks the open file, not the path, so
// that nobody can swap the file between check and read.
func openSecret(path string) (*os.File, error) {
	// Opening a pipe, named by mistake, would block.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("read secret: %w", err)
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		err = fmt.Errorf("read secret: %w", err)
	case !info.Mode().IsRegular() || info.Size() > maxSecretBytes:
		err = fmt.Errorf("read secret %s: not a file of at most %d bytes", path, maxSecretBytes)
	default:
		owner := 0
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			owner = int(stat.Uid)
		}
		if why := exposed(info.Mode(), owner, os.Geteuid()); why != "" {
			err = fmt.Errorf("read secret %s: it %s; %w: give it to the user that lacuna runs as (chown), and nobody else a right to it (chmod 600)",
				path, why, ErrExposed)
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// exposed returns how other users than root and user can get at a file; empty:
// they cannot. The file of the user is the user's alone. One of root may be
// read by a group, for root lends it to a service that way: a systemd
// credential is root's with an access control list, which shows as mode 0440,
// where the service does not own it (0400), and a secret that Kubernetes mounts
// likewise.
func exposed(mode fs.FileMode, owner, user int) string {
	const groupReads, anybodyElse = 0o040, 0o077
	open := mode.Perm() & anybodyElse
	if owner == 0 {
		open &^= groupReads
	}
	switch {
	case owner != 0 && owner != user:
		return fmt.Sprintf("belongs to user %d, who is neither root nor the user of this process (%d)", owner, user)
	case open != 0:
		return fmt.Sprintf("has mode %04o", mode.Perm())
	}
	return ""
}
