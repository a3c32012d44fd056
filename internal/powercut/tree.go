package powercut

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// tree is the state of a disk.
type tree struct {
	log     *Log
	bytes   map[int][]byte
	modes   map[int]uint32
	folders map[int]map[string]int // node by name
}

func newTree(l *Log) *tree {
	return &tree{log: l, bytes: map[int][]byte{}, modes: map[int]uint32{}, folders: map[int]map[string]int{}}
}

// apply makes a change.
func (t *tree) apply(c change) {
	switch c.kind {
	case write:
		t.bytes[c.node] = overwrite(t.bytes[c.node], c.bytes, c.offset)
	case truncate:
		t.bytes[c.node] = resize(t.bytes[c.node], c.offset)
	case chmod:
		t.modes[c.node] = uint32(c.offset)
	case link:
		t.set(c.to, c.node)
	case unlink:
		delete(t.folders[c.from.folder], c.from.text)
	case rename:
		delete(t.folders[c.from.folder], c.from.text)
		t.set(c.to, c.node)
	}
}

func (t *tree) set(n name, node int) {
	if t.folders[n.folder] == nil {
		t.folders[n.folder] = map[string]int{}
	}
	t.folders[n.folder][n.text] = node
}

// overwrite puts bytes at an offset of content; a gap is zeros.
func overwrite(content, bytes []byte, offset int64) []byte {
	if end := offset + int64(len(bytes)); end > int64(len(content)) {
		content = resize(content, end)
	}
	copy(content[offset:], bytes)
	return content
}

func resize(content []byte, length int64) []byte {
	if length <= int64(len(content)) {
		return slices.Clone(content[:length])
	}
	return append(content, make([]byte, length-int64(len(content)))...)
}

// path returns a path of a node; empty: it has none.
func (t *tree) path(node int) (found string) {
	_ = t.walk(root, "", func(path string, n int) error {
		if n == node && found == "" {
			found = path
		}
		return nil
	})
	return found
}

// walk calls visit for everything below a folder, in the order of names.
func (t *tree) walk(folder int, at string, visit func(path string, node int) error) error {
	names := t.folders[folder]
	for _, text := range sortedKeys(names) {
		here, node := path.Join(at, text), names[text]
		if err := visit(here, node); err != nil {
			return err
		}
		if t.log.nodes[node].folder {
			if err := t.walk(node, here, visit); err != nil {
				return err
			}
		}
	}
	return nil
}

func sortedKeys(m map[string]int) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// Image is what is on a disk after a cut.
type Image struct{ t *tree }

// Sum returns a hash of the names, bytes and modes of the image.
func (i *Image) Sum() string {
	h := sha256.New()
	_ = i.t.walk(root, "", func(path string, node int) error {
		s := i.t.log.nodes[node]
		fmt.Fprintf(h, "%q %v %q %o %d\n", path, s.folder, s.target, i.mode(node), len(i.t.bytes[node]))
		h.Write(i.t.bytes[node])
		return nil
	})
	return hex.EncodeToString(h.Sum(nil))
}

func (i *Image) mode(node int) os.FileMode {
	if m, changed := i.t.modes[node]; changed {
		return os.FileMode(m & 0o777)
	}
	return os.FileMode(i.t.log.nodes[node].mode & 0o777)
}

// WriteTo writes the image into an empty folder.
func (i *Image) WriteTo(folder string) error {
	written := map[int]string{}
	return i.t.walk(root, "", func(path string, node int) error {
		place, s := filepath.Join(folder, filepath.FromSlash(path)), i.t.log.nodes[node]
		switch {
		case s.folder:
			return os.Mkdir(place, 0o755|i.mode(node))
		case s.target != "":
			return os.Symlink(s.target, place)
		case written[node] != "":
			return os.Link(written[node], place)
		}
		written[node] = place
		if err := os.WriteFile(place, i.t.bytes[node], fs.FileMode(0o600)); err != nil {
			return err
		}
		return os.Chmod(place, i.mode(node))
	})
}
