// Package disk keeps products in a folder.
//
// A Store puts each product at <root>/<dataset>/<YYYY>/<MM>/<name>.nc, with
// its sha256 in a file beside it that sha256sum --check reads. A product
// appears whole or not at all. Where there is a side file it tells the truth,
// even after a crash: it is removed before a product is replaced and written
// after, so a product without one is complete but not yet vouched for, and
// putting it again mends that. Putting the same bytes again changes nothing.
//
// Package disk knows nothing of NetCDF: it hands out a path and another writes
// the file. Nor does it delete products; that is a matter of retention.
package disk

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

const (
	folderMode = 0o755
	fileMode   = 0o644

	// nameBytesMax leaves room for .nc.sha256 in the 255 bytes that file
	// systems give a name.
	nameBytesMax = 240
)

// Store is a folder of products. Its methods may be called from many
// goroutines and processes, also for the same product: the last one wins.
type Store struct {
	Root string
}

// Stored is a product in the store.
type Stored struct {
	Path   string
	SHA256 string // hex, of the file's bytes
	Bytes  int64
	New    bool // false if these very bytes were there already
}

// Put stores what write writes to the path it is given, as the product name of
// a dataset on a day. The suffix .nc is added to a name without it. If write
// or ctx fails nothing is changed.
func (s Store) Put(ctx context.Context, dataset string, day time.Time, name string, write func(path string) error) (Stored, error) {
	path, err := s.Path(dataset, day, name)
	if err != nil {
		return Stored{}, err
	}
	stored, err := s.put(ctx, path, write)
	if err != nil {
		return Stored{}, fmt.Errorf("store %s: %w", path, err)
	}
	return stored, nil
}

// Path returns where a product belongs, and refuses names that could lead out
// of the store.
func (s Store) Path(dataset string, day time.Time, name string) (string, error) {
	if err := checkName(dataset); err != nil {
		return "", fmt.Errorf("dataset: %w", err)
	}
	if err := checkName(name); err != nil {
		return "", fmt.Errorf("product: %w", err)
	}
	if !strings.HasSuffix(name, ".nc") {
		name += ".nc"
	}
	day = day.UTC()
	return filepath.Join(s.Root, dataset, day.Format("2006"), day.Format("01"), name), nil
}

func checkName(name string) error {
	bad := func(r rune) bool { return unicode.IsControl(r) || strings.ContainsRune(`/\`, r) }
	switch {
	case name == "" || strings.HasPrefix(name, "."):
		return fmt.Errorf("name %q is empty or starts with a dot", name)
	case len(name) > nameBytesMax:
		return fmt.Errorf("name of %d bytes is longer than %d", len(name), nameBytesMax)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, bad):
		return fmt.Errorf("name %q has a separator or a control character", name)
	}
	return nil
}

// put writes into a folder of its own beside path, so that whatever write
// leaves there is out of sight and goes with the folder.
func (s Store) put(ctx context.Context, path string, write func(path string) error) (stored Stored, err error) {
	dir := filepath.Dir(path)
	if err := makeFolders(dir); err != nil {
		return Stored{}, err
	}
	staging, err := os.MkdirTemp(dir, ".put-*")
	if err != nil {
		return Stored{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(staging)) }()
	staged := filepath.Join(staging, filepath.Base(path))
	if err := write(staged); err != nil {
		return Stored{}, err
	}
	stored.Path = path
	if stored.SHA256, stored.Bytes, err = sumAndSync(staged); err != nil {
		return Stored{}, err
	}
	if err := ctx.Err(); err != nil {
		return Stored{}, err
	}
	unlock, err := lockFolder(dir)
	if err != nil {
		return Stored{}, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if stored.holds() {
		return stored, nil
	}
	stored.New = true
	return stored, stored.replace(staged)
}

// lockFolder keeps others, of this process or another, from replacing products
// of dir, so that no side file ends up beside another's product.
func lockFolder(dir string) (unlock func() error, err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(d.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock folder: %w", err), d.Close())
	}
	return d.Close, nil // closing gives the lock up
}

// holds reports whether the product is in the store with the same bytes and
// its side file.
func (p Stored) holds() bool {
	side, err := os.ReadFile(p.sidePath())
	if err != nil || string(side) != p.sideText() {
		return false
	}
	sum, _, err := sumAndSync(p.Path)
	return err == nil && sum == p.SHA256
}

// replace moves the staged file into its place and vouches for it.
func (p Stored) replace(staged string) error {
	if err := os.Remove(p.sidePath()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	dir := filepath.Dir(p.Path)
	if err := syncFolder(dir); err != nil {
		return err
	}
	if err := os.Rename(staged, p.Path); err != nil {
		return err
	}
	side := staged + ".sha256"
	if err := os.WriteFile(side, []byte(p.sideText()), fileMode); err != nil {
		return err
	}
	if _, _, err := sumAndSync(side); err != nil {
		return err
	}
	if err := syncFolder(dir); err != nil { // the product is there before its side file is
		return err
	}
	if err := os.Rename(side, p.sidePath()); err != nil {
		return err
	}
	return syncFolder(dir)
}

func (p Stored) sidePath() string { return p.Path + ".sha256" }

// sideText is a line as sha256sum writes it.
func (p Stored) sideText() string { return p.SHA256 + "  " + filepath.Base(p.Path) + "\n" }

// sumAndSync returns the sha256 and the size of a file, and makes sure that
// its bytes are on the disk.
func sumAndSync(path string) (sum string, bytes int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	h := sha256.New()
	bytes, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), bytes, errors.Join(err, f.Sync(), f.Close())
}

// makeFolders makes dir and what is missing above it, to last through a power
// cut.
func makeFolders(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := makeFolders(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, folderMode); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return syncFolder(parent)
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
