package publish

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// CheckFiles checks that the file of p, and that of its members, has the promised
// bytes. The error of one that is gone or has others is permanent.
func (p Product) CheckFiles() error {
	if err := p.checkFile(p.Path, p.SHA256); err != nil {
		return err
	}
	return p.CheckMembers()
}

// CheckMembers is CheckFiles for the members alone.
func (p Product) CheckMembers() error {
	if p.Members == nil {
		return nil
	}
	return p.checkFile(p.Members.Path, p.Members.SHA256)
}

func (p Product) checkFile(file, want string) error {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: its file %s is gone; fill the granule again", ErrPermanent, file)
	}
	if err != nil {
		return fmt.Errorf("read product: %w", err)
	}
	defer f.Close()
	if p.Hashed.Has(f, want) {
		return nil
	}
	before, err := f.Stat()
	if err != nil {
		return fmt.Errorf("read product: %w", err)
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return fmt.Errorf("read product: %w", err)
	}
	if sum := hex.EncodeToString(h.Sum(nil)); sum != want {
		return fmt.Errorf("%w: its file %s has sha256 %s, not %s; fill the granule again", ErrPermanent, file, sum, want)
	}
	p.Hashed.note(before, want)
	return nil
}

// CheckNames refuses a product whose dataset or name would lead to another place
// of a tree.
func (p Product) CheckNames() error {
	for _, name := range []string{p.Dataset, p.Name} {
		if name != path.Base(name) || strings.HasPrefix(name, ".") || strings.ContainsAny(name, "\r\n\x00") {
			return fmt.Errorf("%w: %q cannot be part of a path", ErrPermanent, name)
		}
	}
	return nil
}

// SideName returns the name of the side file of a file.
func SideName(file string) string { return file + ".sha256" }

// SideText returns the content of a side file: a line as sha256sum writes it.
func SideText(file, sum string) string { return sum + "  " + path.Base(file) + "\n" }
