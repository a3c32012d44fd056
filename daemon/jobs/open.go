package jobs

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// open returns the path of the open message of a revision.
func (f Folder) open(dataset, granule string, revision int) string {
	sum := sha256.Sum256([]byte(granule))
	return filepath.Join(f.Root, "open", dataset, fmt.Sprintf("%s_r%d.json", hex.EncodeToString(sum[:12]), revision))
}

// Open records a message before it is sent.
func (f Folder) Open(m Message) error {
	if err := writeJSON(f.open(m.Dataset, m.Granule, m.Revision), m); err != nil {
		return fmt.Errorf("record the job of %s: %w", m.Granule, err)
	}
	return nil
}

// Message returns the open message of a revision, and false where there is none.
func (f Folder) Message(dataset, granule string, revision int) (m Message, ok bool, err error) {
	content, err := os.ReadFile(f.open(dataset, granule, revision))
	if errors.Is(err, fs.ErrNotExist) {
		return m, false, nil
	}
	if err != nil {
		return m, false, fmt.Errorf("look up the job of %s: %w", granule, err)
	}
	// A damaged one counts as none, and is replaced.
	return m, json.Unmarshal(content, &m) == nil, nil
}

// Close forgets the open message of a revision, whose product is stored or is made
// otherwise.
func (f Folder) Close(dataset, granule string, revision int) error {
	if err := os.Remove(f.open(dataset, granule, revision)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("close the job of %s: %w", granule, err)
	}
	return nil
}

// Opened returns the open messages of a dataset. One that cannot be read is removed:
// its granule is prepared anew.
func (f Folder) Opened(dataset string) ([]Message, error) {
	dir := filepath.Join(f.Root, "open", dataset)
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the jobs of %s: %w", dataset, err)
	}
	var all []Message
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".json" {
			continue
		}
		path := filepath.Join(dir, e.Name())
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("list the jobs of %s: %w", dataset, err)
		}
		var m Message
		if json.Unmarshal(content, &m) != nil {
			if err := os.Remove(path); err != nil {
				return nil, err
			}
			continue
		}
		all = append(all, m)
	}
	return all, nil
}

// Sweep removes what nobody has used since a time, less what the open messages of
// datasets need, which it marks as in use.
func (f Folder) Sweep(datasets []string, since time.Time) (removed int, err error) {
	for _, dataset := range datasets {
		open, err := f.Opened(dataset)
		if err != nil {
			return 0, err
		}
		for _, m := range open {
			for _, sum := range m.Objects() {
				f.touch(sum)
			}
		}
	}
	for _, kind := range []string{"objects", "done", "tries"} {
		err := filepath.WalkDir(filepath.Join(f.Root, kind), func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) || err == nil && d.IsDir() {
				return nil
			}
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err == nil && info.ModTime().Before(since) {
				removed++
				err = os.Remove(path)
			}
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		})
		if err != nil {
			return removed, fmt.Errorf("sweep the shared folder: %w", err)
		}
	}
	return removed, nil
}
