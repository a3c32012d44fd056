package version

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"lacuna/internal/durable"
	"lacuna/pipeline/samples"
)

// ErrOtherRun marks a checkpoint folder that belongs to another run.
var ErrOtherRun = errors.New("the checkpoint folder is of a run with other data or settings; name another folder, or remove it")

// A folder keeps finished phases and the checkpoint of the current one. Each
// file appears whole or not at all. The zero value keeps nothing.
type folder struct{ dir string }

// jobFile names the run that a folder belongs to.
const jobFile = "job.json"

type job struct {
	Run string `json:"run"` // fingerprint of the request
}

// openFolder takes possession of a folder for a run.
func openFolder(dir, run string) (folder, error) {
	f := folder{dir}
	if dir == "" {
		return f, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return f, fmt.Errorf("make checkpoint folder: %w", err)
	}
	var j job
	known, err := f.load(jobFile, &j)
	switch {
	case err != nil:
		return f, err
	case known && j.Run != run:
		return f, fmt.Errorf("%s: %w", dir, ErrOtherRun)
	case known:
		return f, nil
	}
	return f, f.save(jobFile, job{Run: run})
}

// path returns where a file of the folder is, empty where nothing is kept.
func (f folder) path(name string) string {
	if f.dir == "" {
		return ""
	}
	return filepath.Join(f.dir, name)
}

// read returns a file, nil where there is none.
func (f folder) read(name string) ([]byte, error) {
	if f.dir == "" {
		return nil, nil
	}
	data, err := os.ReadFile(f.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read checkpoint: %w", err)
	}
	return data, nil
}

func (f folder) write(name string, data []byte) error {
	if f.dir == "" {
		return nil
	}
	if err := durable.WriteFile(f.path(name), data, 0o644); err != nil {
		return fmt.Errorf("write checkpoint: %w", err)
	}
	return nil
}

// load reads a JSON file into v and reports whether it was there.
func (f folder) load(name string, v any) (bool, error) {
	data, err := f.read(name)
	if err != nil || data == nil {
		return false, err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return false, fmt.Errorf("read checkpoint %s: %w", f.path(name), err)
	}
	return true, nil
}

func (f folder) save(name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write checkpoint %s: %w", name, err)
	}
	return f.write(name, data)
}

// discard removes a file that is not needed any more.
func (f folder) discard(name string) error {
	if f.dir == "" {
		return nil
	}
	if err := os.Remove(f.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove checkpoint: %w", err)
	}
	return nil
}

// Fingerprint returns the sha256 of everything that the weights of a request
// depend on: days and their use, settings and the version to begin from. The champion is not
// part of it: it has no influence on the weights.
func (q Request) Fingerprint() (string, error) {
	settings, err := json.Marshal(q.Settings)
	if err != nil {
		return "", fmt.Errorf("fingerprint of the settings: %w", err)
	}
	h := sha256.New()
	h.Write(settings)
	h.Write([]byte(q.Parent.fingerprint()))
	uses, err := samples.Uses(q.Series, q.calendars(), q.Seen)
	if err != nil {
		return "", err
	}
	fmt.Fprintln(h, uses)
	for i, s := range slices.Concat(q.Series, q.Beside) {
		if i == len(q.Series) {
			fmt.Fprintln(h, "beside")
		}
		fmt.Fprintln(h, s.Grid.Lat, s.Grid.Lon, s.Transform, s.Sea)
		if len(s.Covariates) > 0 {
			fmt.Fprintln(h, s.Covariates)
		}
		for _, d := range s.Days {
			fmt.Fprintln(h, d.Time.UnixNano())
			hashValues(h, d.Values)
			for _, m := range d.Covariates {
				fmt.Fprintln(h, len(m))
				hashValues(h, m)
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func hashValues(h hash.Hash, values []float32) {
	bytes := make([]byte, 0, 4*len(values))
	for _, v := range values {
		u := math.Float32bits(v)
		bytes = append(bytes, byte(u), byte(u>>8), byte(u>>16), byte(u>>24))
	}
	h.Write(bytes)
}

// fingerprint returns the sha256 of all parts, empty where there are none.
func (p Parts) fingerprint() string {
	if len(p) == 0 {
		return ""
	}
	parts := slices.SortedFunc(maps.Keys(p), func(a, b Part) int { return strings.Compare(a.checkpoint(), b.checkpoint()) })
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintln(h, part.checkpoint(), len(p[part]))
		h.Write(p[part])
	}
	return hex.EncodeToString(h.Sum(nil))
}
