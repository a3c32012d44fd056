package jobs

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
)

// Training is a training as a job: all that its version depends on.
type Training struct {
	// Args are those of lacuna train, without store, engine and policy. An argument
	// FilePlace + i is the i-th of Files.
	Args     []string `json:"args"`
	Files    []File   `json:"files"`
	Versions []File   `json:"versions,omitempty"` // of the store: the one to begin with and the champion, each packed into one file
	Champion string   `json:"champion,omitempty"` // version to beat; empty: there is none
	Calendar string   `json:"calendar,omitempty"` // hash of the calendar of the dataset; empty: it has none yet
}

// FilePlace begins an argument that stands for a file of a training.
const FilePlace = "file:"

// Trained is the version that a training has made, and what the gate said of it.
type Trained struct {
	Version  string   `json:"version"`
	Packed   string   `json:"packed"`   // hash of the version in one file
	Calendar string   `json:"calendar"` // hash of the calendar that it was made by
	Parent   string   `json:"parent,omitempty"`
	Champion string   `json:"champion,omitempty"` // version that it was judged against
	Won      bool     `json:"won,omitempty"`
	Unjudged bool     `json:"unjudged,omitempty"`
	Reasons  []string `json:"reasons"`
	Engine   string   `json:"engine"`
}

// ErrHalted says that the coordinator wants a training to rest: it is sent again when
// it may go on.
var ErrHalted = errors.New("the coordinator has it rest")

// objects returns the hashes of everything that the training needs.
func (t *Training) objects() []string {
	if t == nil {
		return nil
	}
	all := []string{t.Calendar}
	for _, f := range append(append([]File(nil), t.Files...), t.Versions...) {
		all = append(all, f.SHA256)
	}
	return all
}

// TrainingKey names the checkpoints of a training. The champion has no part in what is
// learned: against another one only the gate is passed anew. That the days are used as
// they were is for lacuna train to see.
func (m Message) TrainingKey() (string, error) {
	t := *m.Training
	t.Champion, t.Versions, t.Calendar = "", nil, ""
	text, err := json.Marshal(struct {
		Dataset  string
		Training Training
	}{m.Dataset, t})
	if err != nil {
		return "", fmt.Errorf("encode the training of %s: %w", m.Dataset, err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

func checkpointKey(key string) string { return path.Join("training", key+".json") }

func haltKey(key string) string { return path.Join("training", key+".halt") }

// KeepCheckpoint records the files of a training's checkpoint, which are objects.
func (f Folder) KeepCheckpoint(key string, files []File) error {
	content, err := json.Marshal(files)
	if err == nil {
		err = f.putBytes(checkpointKey(key), content)
	}
	if err != nil {
		return fmt.Errorf("record the checkpoint of a training: %w", err)
	}
	return nil
}

// Checkpoint returns the files of a training's last checkpoint; none: it has none.
func (f Folder) Checkpoint(key string) (files []File, err error) {
	content, err := f.get(checkpointKey(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &files)
	}
	if err != nil {
		return nil, fmt.Errorf("look up the checkpoint of a training: %w", err)
	}
	return files, nil
}

// Halt has a training rest, or lets it go on.
func (f Folder) Halt(key string, rest bool) error {
	if !rest {
		return f.Remove(haltKey(key))
	}
	return f.putBytes(haltKey(key), []byte("rest\n"))
}

// Halted reports whether a training has to rest.
func (f Folder) Halted(key string) (bool, error) { return f.Touch(haltKey(key)) }

// AddFile puts a file into the folder and returns its hash.
func (f Folder) AddFile(file string) (string, error) {
	sum, _, err := sumFile(file)
	if err != nil {
		return "", fmt.Errorf("share %s with the workers: %w", file, err)
	}
	return sum, f.Add(file, sum)
}

// Renew marks what a job needs as in use, and reports whether all of it is there.
func (f Folder) Renew(m Message) (whole bool, err error) {
	whole = true
	for _, sum := range m.Objects() {
		there, err := f.Touch(object(sum))
		if err != nil {
			return false, fmt.Errorf("mark the files of a job as in use: %w", err)
		}
		whole = whole && there
	}
	return whole, nil
}

// ErrLeased says that another worker is at a training: it is looked at again later.
var ErrLeased = errors.New("another worker is at it")

func leaseKey(key string) string { return path.Join("training", key+".lease") }

// Lease returns who says that it is at a training, as it was written last; empty:
// nobody.
func (f Folder) Lease(key string) (string, error) {
	content, err := f.get(leaseKey(key))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(content), err
}

// TakeLease writes that somebody is at a training, in place of the lease before; it
// reports false where somebody else was quicker to take one that nobody had.
func (f Folder) TakeLease(key, before, mine string) (bool, error) {
	if before == "" {
		return f.Create(leaseKey(key), []byte(mine))
	}
	return true, f.putBytes(leaseKey(key), []byte(mine))
}

// EndLease gives a training up.
func (f Folder) EndLease(key string) error { return f.Remove(leaseKey(key)) }
