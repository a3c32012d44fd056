package compiled

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"lacuna/internal/durable"
	"lacuna/pipeline/trusted"
)

// limit is how many bytes of programs are kept. A dataset of one network has some ten of
// a few megabytes; those of other sizes and of earlier versions are the oldest.
const limit = 1 << 30

// A folder keeps programs by name. Several processes may share it.
type folder struct {
	dir   string
	limit int64
}

var errDamaged = errors.New("the file is damaged")

// name returns the name of a program that depends on all of parts.
func name(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		_ = binary.Write(h, binary.LittleEndian, uint64(len(part)))
		h.Write([]byte(part))
	}
	return hex.EncodeToString(h.Sum(nil)) + ".xla"
}

// read returns a program. A crash can leave a file without its end, so it begins with
// the sha256 of what follows.
func (f folder) read(name string) ([]byte, error) {
	path, err := trusted.File(filepath.Join(f.dir, name))
	if err != nil {
		return nil, fmt.Errorf("read a compiled program: %w", err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read a compiled program: %w", err)
	}
	if len(content) <= sha256.Size {
		return nil, errDamaged
	}
	program := content[sha256.Size:]
	if sum := sha256.Sum256(program); !bytes.Equal(sum[:], content[:sha256.Size]) {
		return nil, errDamaged
	}
	now := time.Now()
	_ = os.Chtimes(path, now, now) // the oldest are removed first
	return program, nil
}

// write keeps a program, and removes those that were not used for longest where the
// folder grows too large.
func (f folder) write(name string, program []byte) error {
	sum := sha256.Sum256(program)
	if err := durable.WriteFile(filepath.Join(f.dir, name), append(sum[:], program...), 0o600); err != nil {
		return fmt.Errorf("keep a compiled program: %w", err)
	}
	return f.prune()
}

func (f folder) remove(name string) { _ = os.Remove(filepath.Join(f.dir, name)) }

func (f folder) prune() error {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return fmt.Errorf("look through compiled programs: %w", err)
	}
	var files []fs.FileInfo
	var sum int64
	for _, entry := range entries {
		// Another process may have removed it.
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			files = append(files, info)
			sum += info.Size()
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int {
		return cmp.Or(a.ModTime().Compare(b.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	for _, file := range files {
		if sum <= f.limit {
			break
		}
		f.remove(file.Name())
		sum -= file.Size()
	}
	return nil
}
