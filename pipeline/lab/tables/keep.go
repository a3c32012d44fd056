package tables

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"lacuna/internal/durable"
	"lacuna/pipeline/covariate"
	"lacuna/pipeline/evaluate"
	"lacuna/pipeline/field"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/samples"
)

// A record is the finished result of a row and seed.
type record struct {
	Row          Row                  `json:"row"`
	Verdict      evaluate.Verdict     `json:"verdict"`
	Losses       evaluate.Losses      `json:"losses"`
	Sample       shown                `json:"sample"`
	Calls        int                  `json:"calls,omitempty"`
	Truth        *evaluate.TruthScore `json:"truth,omitempty"`
	Masks        *maskStudy           `json:"masks,omitempty"`
	Covariates   *covariate.Kept      `json:"covariates,omitempty"`
	TrainSeconds float64              `json:"train_seconds"`
}

// A Record is the result of one row with one seed, for callers that store it elsewhere.
type Record struct {
	Table        string           `json:"table"`
	Dataset      string           `json:"dataset"`
	Mode         impute.Mode      `json:"mode"`
	Side         int              `json:"side"`       // side of windows in cells
	BlockDays    int              `json:"block_days"` // block length of the bootstrap
	Verdict      evaluate.Verdict `json:"verdict"`
	Losses       evaluate.Losses  `json:"losses"` // case by case, to be paired with those of other rows
	Calls        int              `json:"calls,omitempty"`
	TrainSeconds float64          `json:"train_seconds"`
	Covariates   *covariate.Kept  `json:"covariates,omitempty"` // what each brings a stored version; nil: it sees none

	// Of the first seed only.
	Masks  *evaluate.MaskScore `json:"masks,omitempty"` // of a guided strategy
	Sample *Sample             `json:"sample,omitempty"`
}

// public returns the record of an entry that is done.
func (r *run) public(e entry) (Record, error) {
	out := Record{
		Table: r.job.Table.Name, Dataset: r.job.Dataset, Mode: e.mode, Side: r.s.Overlays.Side, BlockDays: r.s.BlockDays,
		Verdict: e.record.Verdict, Losses: e.record.Verdict.Losses, Calls: e.record.Calls, TrainSeconds: e.record.TrainSeconds,
		Masks: e.record.Masks.score(r.s.MaskDraws), Covariates: e.record.Covariates,
	}
	var err error
	out.Sample, err = r.sample(e)
	return out, err
}

// shown is the answer to the case that pictures show.
type shown struct {
	Case int       `json:"case"`
	Mean []float32 `json:"mean"`
}

// folder holds the finished files of a run.
type folder string

// Subfolders.
const (
	rowsFolder     = "rows"
	networksFolder = "networks"
)

func (f folder) make() error {
	return errors.Join(os.MkdirAll(filepath.Join(string(f), rowsFolder), 0o755), os.MkdirAll(filepath.Join(string(f), networksFolder), 0o755))
}

func (f folder) path(parts ...string) string {
	return filepath.Join(append([]string{string(f)}, parts...)...)
}

// record returns the stored record of a row, and false if there is none.
func (f folder) record(key string) (record, bool, error) {
	var r record
	found, err := f.load(&r, rowsFolder, key+".json")
	r.Verdict.Losses = r.Losses
	return r, found, err
}

func (f folder) keep(key string, r record) error {
	r.Losses = r.Verdict.Losses
	return f.save(r, rowsFolder, key+".json")
}

// load reads a JSON file, and returns false if there is none.
func (f folder) load(to any, parts ...string) (bool, error) {
	data, err := os.ReadFile(f.path(parts...))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(data, to)
	}
	if err != nil {
		return false, fmt.Errorf("read %s: %w", f.path(parts...), err)
	}
	return true, nil
}

func (f folder) save(v any, parts ...string) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write %s: %w", f.path(parts...), err)
	}
	return durable.WriteFile(f.path(parts...), data, 0o644)
}

// file returns the bytes of a file, nil if there is none.
func (f folder) file(parts ...string) ([]byte, error) {
	data, err := os.ReadFile(f.path(parts...))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// keyOf returns the key of values: the sha256 of their JSON.
func keyOf(values ...any) (string, error) {
	data, err := json.Marshal(values)
	if err != nil {
		return "", fmt.Errorf("name a result: %w", err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:12]), nil // 96 bits, enough against collisions
}

// fingerprint is the sha256 of a series.
func fingerprint(s samples.Series) (string, error) {
	h := sha256.New()
	if err := json.NewEncoder(h).Encode([]any{s.Grid.Lat, s.Grid.Lon, s.Sea, s.Transform}); err != nil {
		return "", fmt.Errorf("name a series: %w", err)
	}
	if len(s.Covariates) > 0 {
		if err := json.NewEncoder(h).Encode(s.Covariates); err != nil {
			return "", fmt.Errorf("name a series: %w", err)
		}
	}
	for _, d := range s.Days {
		writeMap(h, d.Time, d.Values)
		for _, m := range slices.Concat(d.Covariates, [][]float32{d.Drift}) {
			if m != nil {
				writeMap(h, d.Time, m)
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// fingerprintFields is the sha256 of the times and values of fields, empty
// without any.
func fingerprintFields(fields []field.Field) string {
	if len(fields) == 0 {
		return ""
	}
	h := sha256.New()
	for _, f := range fields {
		writeMap(h, f.Time, f.Values)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func writeMap(h hash.Hash, t time.Time, values []float32) {
	buffer := binary.LittleEndian.AppendUint64(nil, uint64(t.Unix()))
	for _, v := range values {
		buffer = binary.LittleEndian.AppendUint32(buffer, math.Float32bits(v))
	}
	h.Write(buffer)
}
