package jobs

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"
)

// openKey returns the key of the open message of a revision.
func openKey(dataset, granule string, revision int) string {
	sum := sha256.Sum256([]byte(granule))
	return path.Join("open", dataset, fmt.Sprintf("%s_r%d.json", hex.EncodeToString(sum[:12]), revision))
}

// Open records a message before it is sent.
func (f Folder) Open(m Message) error {
	content, err := json.Marshal(m)
	if err == nil {
		err = f.putBytes(openKey(m.Dataset, m.Granule, m.Revision), content)
	}
	if err != nil {
		return fmt.Errorf("record the job of %s: %w", m.Granule, err)
	}
	return nil
}

// Message returns the open message of a revision, and false where there is none.
func (f Folder) Message(dataset, granule string, revision int) (m Message, ok bool, err error) {
	content, err := f.get(openKey(dataset, granule, revision))
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
	if err := f.Remove(openKey(dataset, granule, revision)); err != nil {
		return fmt.Errorf("close the job of %s: %w", granule, err)
	}
	return nil
}

// Opened returns the open messages of a dataset. One that cannot be read is removed:
// its granule is prepared anew.
func (f Folder) Opened(dataset string) (all []Message, err error) {
	err = f.List(path.Join("open", dataset), func(key string, _ time.Time) error {
		if !strings.HasSuffix(key, ".json") {
			return nil
		}
		content, err := f.get(key)
		if errors.Is(err, fs.ErrNotExist) { // closed meanwhile
			return nil
		}
		if err != nil {
			return err
		}
		var m Message
		if json.Unmarshal(content, &m) != nil {
			return f.Remove(key)
		}
		all = append(all, m)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the jobs of %s: %w", dataset, err)
	}
	return all, nil
}

// unfinishedFor is how long a file that was not put in its place may have been written
// at: a worker that was killed leaves one, and no other ever looks at it.
const unfinishedFor = time.Hour

// unfinished reports whether a key is that of such a file: they begin with a dot.
func unfinished(key string) bool { return strings.HasPrefix(path.Base(key), ".") }

// Sweep removes what nobody has used for longer than keep, less what the open messages of
// datasets need, which it marks as in use, and what was left unfinished.
func (f Folder) Sweep(datasets []string, now time.Time, keep time.Duration) (removed int, err error) {
	for _, dataset := range datasets {
		open, err := f.Opened(dataset)
		if err != nil {
			return 0, err
		}
		for _, m := range open {
			if _, err := f.Renew(m); err != nil {
				return 0, fmt.Errorf("sweep the shared folder: %w", err)
			}
		}
	}
	for _, kind := range []string{"open", "objects", "done", "tries", "training"} {
		err := f.List(kind, func(key string, used time.Time) error {
			switch idle := now.Sub(used); {
			case unfinished(key) && idle > unfinishedFor:
			case kind != "open" && idle > keep:
			default:
				return nil
			}
			removed++
			return f.Remove(key)
		})
		if err != nil {
			return removed, fmt.Errorf("sweep the shared folder: %w", err)
		}
	}
	return removed, nil
}
