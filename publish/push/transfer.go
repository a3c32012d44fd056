package push

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
)

// file is a file on its way to the server.
type file struct {
	name string // path on the server
	size int64
	sum  string // sha256
	open func() (io.ReadSeekCloser, error)
}

// localFile is a file of this machine with a known hash.
func localFile(name, from string, size int64, sum string) file {
	return file{name, size, sum, func() (io.ReadSeekCloser, error) { return os.Open(from) }}
}

// textFile is a small file in memory.
func textFile(name string, text []byte) file {
	sum := sha256.Sum256(text)
	return file{name, int64(len(text)), hex.EncodeToString(sum[:]), func() (io.ReadSeekCloser, error) {
		return nopCloser{bytes.NewReader(text)}, nil
	}}
}

type nopCloser struct{ *bytes.Reader }

// Close does nothing.
func (nopCloser) Close() error { return nil }

// partEnding marks files that are not whole yet.
const partEnding = ".part"

// temporary is the name of f while it is sent: in the same folder, so that the
// renaming is one step, and another for other bytes, so that what is there of it
// is always the beginning of these.
func (f file) temporary() string { return f.name + "." + f.sum[:12] + partEnding }

// transfer sends files over one session.
type transfer struct {
	server server
	verify string
}

// put shows a file whole, or not at all.
func (t transfer) put(f file) error {
	there, err := t.stage(f)
	if err != nil || there {
		return err
	}
	return t.reveal(f)
}

// stage brings the bytes of f to the server under its temporary name, and checks
// them there; an earlier upload that was cut is gone on with. It reports whether f
// is there already under its final name.
func (t transfer) stage(f file) (there bool, err error) {
	content, err := f.open()
	if err != nil {
		return false, fmt.Errorf("read product: %w", err)
	}
	defer content.Close()
	if there, err := t.holds(f, content); err != nil || there {
		return there, err
	}
	offset, err := t.partial(f, content)
	if err != nil {
		return false, err
	}
	if offset < f.size || f.size == 0 {
		if offset, err = t.server.write(f.temporary(), content, offset); err != nil {
			return false, fmt.Errorf("upload %s: %w", f.name, err)
		}
	}
	return false, t.check(f, content, offset)
}

// holds reports whether the server has the bytes of f under its name. That they
// are as many is no proof.
func (t transfer) holds(f file, content io.ReadSeeker) (bool, error) {
	size, err := t.server.size(f.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look at %s: %w", f.name, err)
	case size != f.size || t.verify == BySize:
		return false, nil
	}
	same, err := t.same(f.name, content, 0)
	if errors.Is(err, errRefused) {
		return false, nil
	}
	return same == f.size, err
}

// partial returns how much of f is on the server under its temporary name.
func (t transfer) partial(f file, content io.ReadSeeker) (int64, error) {
	size, err := t.server.size(f.temporary())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("look at %s: %w", f.temporary(), err)
	case size > f.size:
		return 0, t.server.remove(f.temporary())
	case size == 0 || t.verify == BySize:
		return size, nil
	}
	same, err := t.same(f.temporary(), content, 0)
	if errors.Is(err, errRefused) {
		return size, nil
	}
	return same, err
}

// check compares an upload with f: its size, and the bytes from an offset on,
// where the server lets one read them. What differs is removed.
func (t transfer) check(f file, content io.ReadSeeker, offset int64) error {
	size, err := t.server.size(f.temporary())
	if err != nil {
		return fmt.Errorf("look at the upload of %s: %w", f.name, err)
	}
	good := size == f.size
	if good && offset < f.size && t.verify == ByContent {
		same, err := t.same(f.temporary(), content, offset)
		if err != nil && !errors.Is(err, errRefused) {
			return err
		}
		good = err != nil || offset+same == f.size
	}
	if good {
		return nil
	}
	if err := t.server.remove(f.temporary()); err != nil {
		return err
	}
	return fmt.Errorf("upload %s: the server has other bytes (%d, sent were %d): they were removed there and are sent anew; look at its disk if this repeats itself",
		f.name, size, f.size)
}

// same returns how many bytes of a file on the server, from an offset on, are
// those of content.
func (t transfer) same(name string, content io.ReadSeeker, offset int64) (int64, error) {
	if _, err := content.Seek(offset, io.SeekStart); err != nil {
		return 0, fmt.Errorf("read product: %w", err)
	}
	there, err := t.server.read(name, offset)
	if err != nil {
		return 0, fmt.Errorf("read back %s: %w", name, err)
	}
	same, err := samePrefix(there, content)
	if err := errors.Join(err, there.Close()); err != nil {
		return 0, fmt.Errorf("read back %s: %w", name, err)
	}
	return same, nil
}

// reveal gives a staged file its name.
func (t transfer) reveal(f file) error {
	if err := t.server.rename(f.temporary(), f.name); err != nil {
		return fmt.Errorf("rename %s to %s: %w", f.temporary(), path.Base(f.name), err)
	}
	return nil
}

// get returns a small file; nil where there is none. One that stepped aside for
// another that never came is put back.
func (t transfer) get(name string) ([]byte, error) {
	_, err := t.server.size(name)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := t.server.size(aside(name)); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		err = t.server.rename(aside(name), name)
	}
	if err != nil {
		return nil, fmt.Errorf("look at %s: %w", name, err)
	}
	r, err := t.server.read(name, 0)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	text, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if text == nil {
		text = []byte{}
	}
	return text, nil
}

// makeFolders makes a folder and its missing parents below the root.
func (t transfer) makeFolders(root, folder string) error {
	err := t.server.makeFolder(folder)
	if parent := path.Dir(folder); err != nil && parent != path.Clean(root) && parent != folder {
		if err := t.makeFolders(root, parent); err != nil {
			return err
		}
		err = t.server.makeFolder(folder)
	}
	if err != nil {
		return fmt.Errorf("make folder %s: %w", folder, err)
	}
	return nil
}
