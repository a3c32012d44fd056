package version

import (
	"time"

	"lacuna/pipeline/parts"

	"github.com/gomlx/gomlx/backends"

	"lacuna/pipeline/field"
	"lacuna/pipeline/learn"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/skill"
	"lacuna/pipeline/train"
)

// Request names the data, the settings and the other versions for a new one.
type Request struct {
	// Series are of one variable, each on a grid of its own. One network learns
	// from patches of all of them, as many of each as it has.
	Series []samples.Series
	// Beside are series of any variable that are learned from too, in as many
	// patches as those of Series, and not judged on. They help where Series has
	// few days. Anomalies of one variable may be skewed as those of another
	// are not, so that patches should then be shown with either sign (Negate).
	Beside   []samples.Series
	Settings Settings
	Backend  backends.Backend
	Parent   Parts // the version to begin from; nil: random weights
	Champion Parts // the version to be beaten; nil: there is no champion
	// Calendars give the days of each of Series their role, in order; nil, or an
	// empty one: made of those days by Settings.Split.
	Calendars []samples.Calendar
	// Seen are the days that the ancestors of the version learned from or were
	// chosen by: it is not judged on them.
	Seen []samples.Seen
	// Starter is a model that came with the program and serves for want of a
	// champion; nil: no starter serves. It is to be beaten too, by a network of any
	// size: it was made small to be carried.
	Starter Parts

	// Folder holds the checkpoints, with which the run goes on after it was
	// killed; empty: none are kept. It must belong to this run alone.
	Folder string
}

// incumbent is the version that serves now: the champion, else the starter.
func (q Request) incumbent() Parts {
	if q.Champion != nil {
		return q.Champion
	}
	return q.Starter
}

// Hooks are called by a run on its way. All may be nil.
type Hooks struct {
	Progress func(Progress)
	Now      func() time.Time // for latencies and between checkpoints; nil: time.Now
}

// Progress is how far a run has come.
type Progress struct {
	Phase       string
	Step, Steps int
	Loss        float64
	Score       *float64 // on days that choose, less is better; nil: not asked at this step
}

// Phases of a run, in order.
const (
	PhaseBackground  = "background"
	PhasePrior       = "prior"
	PhaseStrength    = "strength"
	PhaseImputer     = "imputer"
	PhaseMembers     = "members"
	PhaseReliability = "reliability"
	PhaseCalibration = "calibration"
	PhaseGate        = "gate"
)

// Outcome is a version that was made, with the decision of the gate.
type Outcome struct {
	Parts      Parts
	Evaluation Evaluation
	Decision   skill.Decision
	Queries    []*partition.QueryMap // P(query) over the draws of the strategy, of each grid in order; nil: the imputer was not trained
	Transform  field.Transform
	Scaling    *parts.Scaling       // scaling of the training days; nil: they are of several series, and it is learned where the version serves
	Calendars  []samples.Calendar   // of each series, extended to its days
	Days       []samples.Assignment // use of the days of each series
	Beside     []samples.Assignment // use of the days of each of Request.Beside
	Networks   []Network
}

// Network is the size of a network of the version.
type Network struct {
	Part           Part
	Backbone, Size string
	Weights        int
}

// Reports are those of the trainings; nil: not trained here.
type Reports struct {
	Prior       *learn.PriorReport `json:"prior,omitempty"`
	Teachers    []*train.Report    `json:"teachers,omitempty"`
	Imputer     *train.Report      `json:"imputer,omitempty"`
	Members     *train.Report      `json:"members,omitempty"`
	Reliability *train.Report      `json:"reliability,omitempty"`
}
