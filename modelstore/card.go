package modelstore

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"lacuna/internal/faults"
)

// CardSchema is the schema of the cards written here. Fields may be added under
// the same number; it grows when a field changes its meaning.
const CardSchema = 1

// The files of a version that have a name of their own. A version need not have
// all of them, and a later Lacuna may add others.
const (
	CardFile        = "card.json"
	PriorFile       = "prior.onnx"
	ImputerFile     = "imputer.onnx"
	MembersFile     = "members.onnx"     // the residual denoiser
	ReliabilityFile = "reliability.onnx" // P(query | context)
	QueryFile       = "query.nc"         // the P(query) map on the native grid; of several grids: query-1.nc and on
	CalibrationFile = "calibration.json"
	ScalingFile     = "scaling.json"
	EvaluationFile  = "evaluation.json"
	PictureFile     = "judged.png" // a window that judged it, as it was filled before and by it
)

// Card describes a version: its origin, its training data and settings, and its
// scores. It is stored as card.json. Fields that a later Lacuna added are not
// understood here, but kept when a card is read and written again.
type Card struct {
	Schema   int       `json:"schema"`
	Kind     string    `json:"kind"`    // starter, trained, fine-tuned, calibrated anew
	Dataset  string    `json:"dataset"` // lower case letters, digits, - and _
	Variable string    `json:"variable"`
	Units    string    `json:"units,omitempty"`
	Created  time.Time `json:"created"`
	Parent   string    `json:"parent,omitempty"` // the version it was fine-tuned from
	Lacuna   string    `json:"lacuna"`           // version of the program
	Note     string    `json:"note,omitempty"`

	Data          Data          `json:"data"`
	Split         Split         `json:"split"`
	Transform     string        `json:"transform,omitempty"` // such as log10
	Normalisation Normalisation `json:"normalisation"`
	Networks      []Network     `json:"networks,omitempty"`
	Covariates    []Covariate   `json:"covariates,omitempty"` // other variables that the networks were made to see

	// Settings are the sections of the configuration that made the version, as
	// the packages they belong to wrote them.
	Settings map[string]json.RawMessage `json:"settings,omitempty"`
	Seeds    map[string]uint64          `json:"seeds,omitempty"`

	Scores      Comparison  `json:"scores"`
	Calibration Calibration `json:"calibration"`
	Guidance    float64     `json:"guidance,omitempty"` // automatic guidance strength; 0: none was found
	Elsewhere   *Elsewhere  `json:"elsewhere,omitempty"`

	Engine   Engine   `json:"engine"`
	Training Training `json:"training"`

	// Files are the other files of the version. Store.Write fills them in.
	Files []File `json:"files"`

	raw json.RawMessage // the encoding that the card was read from, for its unknown fields
}

// Elsewhere is how networks like those of the version, each without one sea, did
// on that sea: the share of the way from optimal interpolation to them that would
// have been best.
type Elsewhere struct {
	Share  float64 `json:"share"`  // mean over the seas
	Spread float64 `json:"spread"` // standard deviation of that of another sea
	Seas   int     `json:"seas"`
}

// Data lists the training data of a version.
type Data struct {
	From     time.Time `json:"from,omitzero"`
	To       time.Time `json:"to,omitzero"`
	Granules []Granule `json:"granules,omitempty"`
	Beside   []Granule `json:"beside,omitempty"` // granules of other quantities or regions, learned from and not judged on
	// Covariates are the files of other variables that the networks saw beside.
	Covariates []Granule `json:"covariates,omitempty"`
}

// Granule is a file of the training data.
type Granule struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// Covariate is another variable that networks were made to see, and whether they do: it is
// used only if it pays on the days that choose. Its constants are in the scaling.
type Covariate struct {
	Name    string `json:"name"`
	Used    bool   `json:"used"`
	Verdict string `json:"verdict"` // in words
}

// Normalisation are the statistics of the transformed values that the networks
// see with mean 0 and deviation 1.
type Normalisation struct {
	Mean float64 `json:"mean"`
	Std  float64 `json:"std"`
}

// Network is the size of a network in a file.
type Network struct {
	File       string `json:"file"`
	Backbone   string `json:"backbone"`
	Size       string `json:"size"` // tiny, small, base, large
	Parameters int64  `json:"parameters"`
}

// Comparison holds scores by name (mse, cbgd, coverage90, ...) of all sides on
// the same overlays.
type Comparison struct {
	On            string             `json:"on,omitempty"`       // the days and overlays that were scored
	Champion      map[string]float64 `json:"champion,omitempty"` // scores of the champion at the time
	Challenger    map[string]float64 `json:"challenger,omitempty"`
	Interpolation map[string]float64 `json:"interpolation,omitempty"` // scores of optimal interpolation
}

// Calibration refers to the calibration of the spread.
type Calibration struct {
	File string `json:"file,omitempty"`
	Note string `json:"note,omitempty"`
}

// Engine names the engine that the version was trained with.
type Engine struct {
	Name      string            `json:"name,omitempty"`
	Device    string            `json:"device,omitempty"`
	Libraries map[string]string `json:"libraries,omitempty"` // name to version
}

// Training holds the cost of the training: steps, time and memory.
type Training struct {
	Started         time.Time `json:"started,omitzero"`
	Seconds         float64   `json:"seconds,omitempty"`
	Steps           int64     `json:"steps,omitempty"`
	Hardware        string    `json:"hardware,omitempty"`
	PeakMemoryBytes int64     `json:"peak_memory_bytes,omitempty"`
	// PeakDeviceBytes is the most memory of a graphics card that was in use.
	PeakDeviceBytes int64 `json:"peak_device_bytes,omitempty"`
	// Phases are the seconds that each phase took, in the process that ended
	// the training.
	Phases map[string]float64 `json:"phases,omitempty"`
}

// File is a file of a version, without its card.
type File struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// DecodeCard reads a card.json.
func DecodeCard(data []byte) (Card, error) {
	var c Card
	if err := json.Unmarshal(data, &c); err != nil {
		return Card{}, fmt.Errorf("read card: %w", err)
	}
	if err := c.validate(); err != nil {
		return Card{}, fmt.Errorf("read card: %w", err)
	}
	c.raw = append(json.RawMessage(nil), data...)
	// Go reads times that it cannot write, such as one of a zone 24 hours ahead.
	if _, err := json.Marshal(c); err != nil {
		return Card{}, fmt.Errorf("read card: %w", err)
	}
	return c, nil
}

// Encode returns the card as it is stored, unknown fields of the card it was
// decoded from included.
func (c Card) Encode() ([]byte, error) {
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("write card: %w", err)
	}
	data, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("write card: %w", err)
	}
	if data, err = withUnknown(data, c.raw, c); err != nil {
		return nil, fmt.Errorf("write card: %w", err)
	}
	return indent(data)
}

// Child returns a card for a version fine-tuned from this one, whose ID is
// parent: the same dataset, settings and unknown fields, without those of one
// training.
func (c Card) Child(parent string) Card {
	c.Parent, c.Kind, c.Note = parent, "fine-tuned", ""
	c.Created, c.Training = time.Time{}, Training{}
	c.Data, c.Split, c.Scores, c.Calibration, c.Elsewhere, c.Files = Data{}, Split{}, Comparison{}, Calibration{}, nil, nil
	return c
}

// validate reports everything that keeps the card from naming and describing a
// version.
func (c Card) validate() error {
	var errs faults.List
	errs.Check(c.Schema >= 1, "schema is %d, must be at least 1", c.Schema)
	errs.Check(plainName(c.Dataset), "dataset is %q, must be lower case letters, digits, - and _", c.Dataset)
	errs.Check(!c.Created.IsZero(), "created is missing")
	errs.Check(c.Created.Year() < 10000, "created is in the year %d", c.Created.Year())
	errs.Check(c.Parent == "" || validID(c.Parent), "parent %q is not the name of a version", c.Parent)
	errs.Check(finite(c.Normalisation.Mean, c.Normalisation.Std, c.Guidance, c.Training.Seconds), "a number is not finite")
	if e := c.Elsewhere; e != nil {
		errs.Check(finite(e.Share, e.Spread) && e.Spread > 0 && e.Seas > 0, "elsewhere is %+v: its numbers must be finite, its spread and seas positive", *e)
	}
	for _, scores := range []map[string]float64{c.Scores.Champion, c.Scores.Challenger, c.Scores.Interpolation} {
		for name, v := range scores {
			errs.Check(finite(v), "score %s is %v; leave out scores that are not finite", name, v)
		}
	}
	errs.Add(c.Split.validate(), validFiles(c.Files))
	return errs.Err()
}

// complete reports whether every file that the card speaks of is listed.
func (c Card) complete() error {
	listed := map[string]bool{"": true}
	for _, f := range c.Files {
		listed[f.Name] = true
	}
	for _, n := range c.Networks {
		if !listed[n.File] {
			return fmt.Errorf("the card has a network in %s, a file the version does not have", n.File)
		}
	}
	if !listed[c.Calibration.File] {
		return fmt.Errorf("the card has a calibration in %s, a file the version does not have", c.Calibration.File)
	}
	return nil
}

// validFiles checks the list of files of a card.
func validFiles(files []File) error {
	var total int64
	seen := map[string]bool{}
	for _, f := range files {
		switch {
		case !fileName(f.Name):
			return fmt.Errorf("file %q: not a name for a file of a version", f.Name)
		case seen[f.Name]:
			return fmt.Errorf("file %s is listed twice", f.Name)
		case f.Bytes < 0 || f.Bytes > maxVersionBytes-total:
			return fmt.Errorf("file %s: %d bytes, a version has at most %d", f.Name, f.Bytes, maxVersionBytes)
		case !validSum(f.SHA256):
			return fmt.Errorf("file %s: sha256 %q is not 64 hexadecimal digits", f.Name, f.SHA256)
		}
		seen[f.Name] = true
		total += f.Bytes
	}
	return nil
}

const (
	// maxVersionBytes is a hundred times the largest networks built here, and
	// the most that a hostile import can write to the disk.
	maxVersionBytes = 32 << 30
	// maxCardBytes holds the names and hashes of 100,000 granules.
	maxCardBytes = 16 << 20
	maxNameBytes = 64 // a dataset or a file: both become part of a path
)

// plainName reports whether a dataset can be part of the name of a version.
func plainName(s string) bool {
	return s != "" && len(s) <= maxNameBytes && s[0] != '-' && strings.Trim(s, lowerDigits+"-_") == ""
}

// fileName reports whether s can be a file beside card.json: one path element
// that no file system reads as something else.
func fileName(s string) bool {
	return s != "" && len(s) <= maxNameBytes && s != CardFile && s[0] != '.' && s[0] != '-' && strings.Trim(s, lowerDigits+"._-") == ""
}

func validSum(s string) bool { return len(s) == 64 && strings.Trim(s, hexDigits) == "" }

const (
	hexDigits   = "0123456789abcdef"
	lowerDigits = "abcdefghijklmnopqrstuvwxyz0123456789"
)

func finite(values ...float64) bool {
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}
