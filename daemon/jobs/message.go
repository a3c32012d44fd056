package jobs

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"lacuna/daemon/fill"
	"lacuna/daemon/version"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/quality"
	"lacuna/pipeline/skill"
	"lacuna/publish/netcdf"
)

// Message is a job, mostly a fill: all that its product depends on. Where its settings name a
// deadline and no tier, the speed of the worker chooses the tier too, as that of the
// daemon does where it fills by itself: the first result counts.
type Message struct {
	Program  string    `json:"program"` // version that made the message: another may give other bytes
	Dataset  string    `json:"dataset"`
	Granule  string    `json:"granule"` // name in the archive; with Dataset the product's identity
	Revision int       `json:"revision"`
	Time     time.Time `json:"time"` // time of the first field
	Product  string    `json:"product"`
	Picture  bool      `json:"picture"` // a quick look is drawn beside the product
	// Score chooses the day whose gaps hide a part of the granule, which is scored and
	// not made a product of; empty: it is filled.
	Score string `json:"score,omitempty"`
	// Before is the product that is compared with the new one; nil: there is none.
	Before *File `json:"before,omitempty"`

	Options ingest.Options `json:"options"` // how the granules are read
	Target  Target         `json:"target"`
	History []File         `json:"history,omitempty"`
	Sea     string         `json:"sea,omitempty"`  // hash of the sea mask
	Seen    string         `json:"seen,omitempty"` // hash of the mask of cells that were observed on any known day
	SeaMask string         `json:"sea_mask"`       // where the sea mask comes from, for the product

	Screened  *Screened  `json:"screened,omitempty"`  // observations that are not used; nil: all are
	Explained *Explained `json:"explained,omitempty"` // what covariates say; nil: nothing

	Fill         infer.Config     `json:"fill"`
	Model        *Model           `json:"model,omitempty"`
	Scaling      *Scaling         `json:"scaling,omitempty"`
	Constants    *infer.Constants `json:"constants,omitempty"`
	Widening     skill.Widening   `json:"widening"`
	Trust        *skill.Trust     `json:"trust,omitempty"`
	Interpolated skill.Widening   `json:"interpolated"`
	Centre       impute.Centre    `json:"centre,omitempty"`
	Backlog      bool             `json:"backlog,omitempty"` // one of many old granules

	Created   time.Time      `json:"created"`
	Published time.Time      `json:"published,omitzero"`
	Fetched   time.Time      `json:"fetched,omitzero"`
	Filled    time.Time      `json:"filled"` // when it was sent
	Credits   netcdf.Credits `json:"credits"`
	Layout    netcdf.Layout  `json:"layout,omitempty"` // of the product's file; empty: that of the input

	Training *Training `json:"training,omitempty"` // it is a training, and no fill: of the rest it has Program, Dataset and Granule
}

// File is a file in the shared folder.
type File struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// Target is the granule of a job. Where the archive has none, it is made like its
// neighbours, see fill.Absent.
type Target struct {
	File
	Absent bool      `json:"absent,omitempty"`
	First  time.Time `json:"first,omitzero"`   // of an absent one: time of its first field
	Around []File    `json:"around,omitempty"` // of an absent one: the neighbours that it is made like
}

// Model is the version of a model, with the files that fill.
type Model struct {
	Version string `json:"version"`
	Files   []File `json:"files"`
}

// Scaling is the scaling of a dataset for a model that was trained elsewhere.
type Scaling struct {
	SHA256 string `json:"sha256"`
	Days   int    `json:"days"`
}

// Screened says which observations were taken out of the granules of a job. The
// daemon has decided that: a worker needs no other file for it.
type Screened struct {
	Tests   quality.Tests  `json:"tests"`
	Counts  quality.Counts `json:"counts"`
	Target  string         `json:"target,omitempty"`  // hash of the mask of cells taken out
	History []string       `json:"history,omitempty"` // the same of the neighbours, in their order
	SeaIce  string         `json:"sea_ice,omitempty"` // where the share of ice comes from, for the product
	Ice     []string       `json:"ice,omitempty"`     // hashes of the masks of cells under ice, a field each
	FillIce bool           `json:"fill_ice,omitempty"`
	Percent string         `json:"ice_percent,omitempty"` // hash of the shares of ice
}

// Current reports whether the message is of this version of the program.
func (m Message) Current() bool { return m.Program == version.String() }

// ID names the job by its content: the same message has the same result.
func (m Message) ID() (string, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return "", fmt.Errorf("encode the job of %s: %w", m.Granule, err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// Objects returns the hashes of everything in the shared folder that the job needs.
func (m Message) Objects() []string {
	var all []string
	add := func(sums ...string) {
		for _, sum := range sums {
			if sum != "" {
				all = append(all, sum)
			}
		}
	}
	add(m.Target.SHA256, m.Sea, m.Seen)
	add(m.Training.objects()...)
	if s := m.Screened; s != nil {
		add(s.Target, s.Percent)
		add(s.History...)
		add(s.Ice...)
	}
	if e := m.Explained; e != nil {
		for _, d := range e.Drift {
			add(d.SHA256)
		}
		for _, m := range e.Maps {
			add(m.SHA256)
		}
	}
	files := append(append([]File(nil), m.Target.Around...), m.History...)
	if m.Model != nil {
		files = append(files, m.Model.Files...)
	}
	for _, f := range files {
		add(f.SHA256)
	}
	if m.Scaling != nil {
		add(m.Scaling.SHA256)
	}
	if m.Before != nil {
		add(m.Before.SHA256)
	}
	return all
}

// Result is what became of a job: the files of its product in the shared folder and
// their description, or why none could be made.
type Result struct {
	Job  string `json:"job"`
	Made `json:"made"`

	SHA256     string `json:"sha256,omitempty"`
	Size       int64  `json:"size,omitempty"`
	MembersSum string `json:"members_sha256,omitempty"`
	PictureSum string `json:"picture_sha256,omitempty"`

	Trained *Trained `json:"trained,omitempty"` // of a training

	Score  *Score  `json:"score,omitempty"`  // of a job that was one
	Change *Change `json:"change,omitempty"` // from the product before, where there was one to compare with

	// Failed says why the job cannot be done, however often it is tried; empty: it
	// was done.
	Failed string `json:"failed,omitempty"`
	// Dead says that it was given up after so many tries.
	Dead int `json:"dead,omitempty"`
	// Gone says that it failed because files of it are gone, see ErrGone.
	Gone bool `json:"gone,omitempty"`

	Worker  string  `json:"worker"`
	Seconds float64 `json:"seconds"` // that the worker took
	Took    Took    `json:"took,omitzero"`
}

// Took are the seconds of the stages of a job, each by itself.
type Took struct {
	Analysis float64 `json:"analysis"` // by processors
	Network  float64 `json:"network"`  // prediction and members
	Writing  float64 `json:"writing"`
}

// tookBy returns the time that an outcome took.
func tookBy(o fill.Outcome) (t Took) {
	for _, a := range o.Analyses {
		t.Analysis += a.Took.Analysis.Seconds()
		t.Network += (a.Took.Look + a.Took.Members).Seconds()
	}
	return t
}
