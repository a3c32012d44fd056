package modelstore

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ErrNotFound says that the store has no such version.
var ErrNotFound = errors.New("no such version")

// BadVersion names a file of a version that does not agree with its card.
type BadVersion struct {
	Version string
	File    string
	Wrong   string // fault of the file
	Err     error  // cause, where the file system failed
}

func (e *BadVersion) Error() string {
	return fmt.Sprintf("model version %s: file %s: %s; restore it with 'lacuna models import FILE', or serve another with 'lacuna models rollback'",
		e.Version, e.File, e.Wrong)
}

func (e *BadVersion) Unwrap() error { return e.Err }

// Version is a version of a model in the store. All of its files were as its
// card says when it was loaded.
type Version struct {
	ID   string
	Card Card

	dir      string
	contents memory // files of a version that is in no store; else nil
}

// Load returns a version after it has checked every byte of it. The error is a
// *BadVersion where a file is not as it was written, and ErrNotFound where
// there is no such version.
func (s *Store) Load(id string) (*Version, error) {
	v, err := s.Peek(id)
	if err != nil {
		return nil, err
	}
	for _, f := range v.Card.Files {
		if err := v.check(f, io.Discard); err != nil {
			return nil, v.gone(s, err)
		}
	}
	return v, nil
}

// Peek returns a version of which only the card was checked.
func (s *Store) Peek(id string) (*Version, error) {
	if !validID(id) {
		return nil, fmt.Errorf("%w: %q is not the name of a version", ErrNotFound, id)
	}
	v := &Version{ID: id, dir: s.versionDir(id)}
	if _, err := os.Stat(v.dir); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s is not in %s", ErrNotFound, id, s.dir)
	}
	data, err := readAtMost(filepath.Join(v.dir, CardFile), maxCardBytes)
	if err != nil {
		return nil, v.gone(s, v.bad(CardFile, err))
	}
	if sum := hashOf(data); !strings.HasSuffix(id, "-"+sum[:idDigits]) {
		return nil, v.bad(CardFile, fmt.Errorf("its sha256 begins with %s, the name of the version says otherwise", sum[:idDigits]))
	}
	if v.Card, err = DecodeCard(data); err != nil {
		return nil, v.bad(CardFile, err)
	}
	if want := versionID(v.Card, data); want != id {
		return nil, v.bad(CardFile, fmt.Errorf("it belongs to version %s", want))
	}
	return v, nil
}

// Has reports whether the version has the file.
func (v *Version) Has(name string) bool {
	_, ok := v.file(name)
	return ok
}

// Path returns where a file of the version is, for libraries that open files
// themselves. The file must not be written to.
func (v *Version) Path(name string) (string, error) {
	if _, ok := v.file(name); !ok {
		return "", fmt.Errorf("model version %s has no %s", v.ID, name)
	}
	if v.contents != nil {
		return "", fmt.Errorf("model version %s is in memory, in no file", v.ID)
	}
	return filepath.Join(v.dir, name), nil
}

// ReadFile returns a file of the version. The bytes returned are those that
// were checked, whatever happened to the file since Load.
func (v *Version) ReadFile(name string) ([]byte, error) {
	f, ok := v.file(name)
	if !ok {
		return nil, fmt.Errorf("model version %s has no %s", v.ID, name)
	}
	var b bytes.Buffer
	b.Grow(int(min(f.Bytes, maxCardBytes))) // the card may claim any size
	if err := v.check(f, &b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Bytes returns the size of the version without its card.
func (v *Version) Bytes() int64 {
	var total int64
	for _, f := range v.Card.Files {
		total += f.Bytes
	}
	return total
}

func (v *Version) file(name string) (File, bool) {
	for _, f := range v.Card.Files {
		if f.Name == name {
			return f, true
		}
	}
	return File{}, false
}

// check copies a file to w and compares it with the card.
func (v *Version) check(f File, w io.Writer) error {
	if v.contents != nil {
		if err := v.contents.check(f, w); err != nil {
			return v.bad(f.Name, err)
		}
		return nil
	}
	file, err := openFile(filepath.Join(v.dir, f.Name))
	if err != nil {
		return v.bad(f.Name, err)
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return v.bad(f.Name, err)
	case !info.Mode().IsRegular():
		return v.bad(f.Name, errors.New("not a regular file"))
	case info.Size() != f.Bytes:
		return v.bad(f.Name, fmt.Errorf("%d bytes, the card says %d", info.Size(), f.Bytes))
	}
	hash := sha256.New()
	if _, err := io.Copy(io.MultiWriter(hash, w), io.LimitReader(file, f.Bytes)); err != nil {
		return v.bad(f.Name, err)
	}
	if sum := hex.EncodeToString(hash.Sum(nil)); sum != f.SHA256 {
		return v.bad(f.Name, fmt.Errorf("sha256 %s…, the card says %s…", sum[:idDigits], f.SHA256[:idDigits]))
	}
	return nil
}

// bad returns the error of a file. An error of the file system is cut to its
// cause, for the name of the version already says where.
func (v *Version) bad(file string, err error) error {
	wrong := err.Error()
	var path *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		wrong = "missing"
	case errors.As(err, &path):
		wrong = path.Err.Error()
	}
	return &BadVersion{Version: v.ID, File: file, Wrong: wrong, Err: err}
}

// gone turns the error of a reader into ErrNotFound if garbage collection took
// the version away under it.
func (v *Version) gone(s *Store, err error) error {
	if _, stat := os.Stat(v.dir); errors.Is(stat, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s was removed from %s", ErrNotFound, v.ID, s.dir)
	}
	return err
}

// idDigits of the sha256 of the card are in the name of a version: too many to
// find another card for, few enough to be read aloud.
const idDigits = 16

// versionID names the version with card, whose encoding is data, as
// dataset-date-hash.
func versionID(card Card, data []byte) string {
	return fmt.Sprintf("%s-%s-%s", card.Dataset, card.Created.UTC().Format(time.DateOnly), hashOf(data)[:idDigits])
}

// validID reports whether s can be the name of a version, and so a folder.
func validID(s string) bool {
	const tail = len("-2006-01-02-") + idDigits
	if len(s) <= tail || !plainName(s[:len(s)-tail]) {
		return false
	}
	day, hash := s[len(s)-tail+1:len(s)-idDigits-1], s[len(s)-idDigits:]
	_, err := time.Parse(time.DateOnly, day)
	return err == nil && s[len(s)-tail] == '-' && s[len(s)-idDigits-1] == '-' && strings.Trim(hash, hexDigits) == ""
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// openFile opens a file to read. It does not wait for a writer if somebody put
// a pipe in the place of the file.
func openFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
}

// readAtMost reads a file that should be small, and fails where it is not.
func readAtMost(path string, limit int64) ([]byte, error) {
	file, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("more than %d bytes", limit)
	}
	return data, err
}
