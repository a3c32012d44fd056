package retrain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"lacuna/modelstore"
	"lacuna/pipeline/engine"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/version"
)

// Policies: who decides on the promotion of a challenger that won.
const (
	PolicyAuto  = "auto"  // the gate
	PolicyAsk   = "ask"   // a person, with lacuna models promote
	PolicyNever = "never" // nobody: the version is only written
)

// Values of Request.From, beside the name of a version.
const (
	FromChampion = "champion"
	FromStarter  = "starter"
)

// Data are the days of one grid, with the granules that they were read from.
type Data struct {
	Series   samples.Series
	Granules map[string]string // sha256 by name
	// Covariates are the files of other variables that the series has maps of, likewise.
	Covariates map[string]string
	Variable   string
}

// Request describes a training: the dataset, the data and the version to begin
// with.
type Request struct {
	Store       string // folder of the model store
	Dataset     string // dataset that the version serves
	From        string // version to begin with, FromChampion or FromStarter; empty: random weights
	Policy      string
	Checkpoints string // folder that gets one for each training; empty: training in the store
	Data        []Data // one for each grid
	Beside      []Data // learned from and not judged on
	Options     Options
	Engine      *engine.Engine
	Lacuna      string // version of the program, for the card
	// Elsewhere says for the card how such networks did on seas that they never saw; nil: not known.
	Elsewhere *modelstore.Elsewhere
	// Starter finds the starter model that suits the data, or returns why there
	// is none. Without a champion, the starter fills.
	Starter func(context.Context) (starter *modelstore.Version, none string, err error)
}

// Training is a training that is about to run, or to be resumed.
type Training struct {
	req     Request
	job     version.Request
	store   *modelstore.Store
	device  modelstore.Engine
	started time.Time
	resumed bool // an earlier process left checkpoints
	memory  *deviceMemory
	phases  map[string]float64 // seconds

	parentID, championID      string // empty: none
	parentCard, championCard  modelstore.Card
	seen                      []modelstore.Seen // days that the parent and its ancestors know
	parent, champion, starter version.Parts
	kept                      map[string][]byte // files of the parent that a calibration leaves as they are
}

// Prepare finds the version to begin with and the one to beat, and makes the
// settings. It writes nothing. An OptionError says that options exclude one
// another.
func Prepare(ctx context.Context, req Request) (*Training, error) {
	t := &Training{
		req: req, store: modelstore.New(req.Store, time.Now), started: time.Now(), memory: &deviceMemory{},
		device: modelstore.Engine{Name: req.Engine.Kind, Device: withoutFolders(req.Engine.Description()), Libraries: libraries()},
	}
	if err := t.findVersions(ctx); err != nil {
		return nil, err
	}
	settings, err := t.settings()
	if err != nil {
		return nil, err
	}
	t.job = version.Request{
		Series: seriesOf(req.Data), Beside: seriesOf(req.Beside),
		Settings: settings, Backend: req.Engine, Parent: t.parent, Champion: t.champion, Starter: t.starter,
	}
	if t.job.Calendars, err = t.assignDays(settings.Split); err != nil {
		return nil, err
	}
	if t.job.Seen, err = seenOf(req.Data[0].Variable, t.seen); err != nil {
		return nil, err
	}
	name, err := t.job.Fingerprint()
	if err != nil {
		return nil, err
	}
	base := cmp.Or(req.Checkpoints, filepath.Join(req.Store, "training"))
	// A folder of its own for each job: it is removed when the job is done.
	t.job.Folder = filepath.Join(base, fmt.Sprintf("%s-%.12s", req.Dataset, name))
	_, err = os.Stat(filepath.Join(t.job.Folder, "job.json"))
	t.resumed = err == nil
	return t, nil
}

func seriesOf(sets []Data) []samples.Series {
	var all []samples.Series
	for _, set := range sets {
		all = append(all, set.Series)
	}
	return all
}

// Folder returns the folder of the checkpoints, which exists until the training
// is done.
func (t *Training) Folder() string { return t.job.Folder }

// Resumed reports whether an earlier process left checkpoints to resume from.
func (t *Training) Resumed() bool { return t.resumed }

// Settings are those of all phases.
func (t *Training) Settings() version.Settings { return t.job.Settings }

// Hooks are called while a training runs.
type Hooks struct {
	Progress func(version.Progress) // every step, from several goroutines
	Done     func(Event) error      // the outcome, before the checkpoints are cleared
}

// Run makes the version, writes it, and promotes or refuses it. A champion that is
// promoted by hand meanwhile is the one to beat. A cancelled ctx
// ends it with an error, and checkpoints from which the same request resumes
// it.
func (t *Training) Run(ctx context.Context, hooks Hooks) error {
	if !t.onProcessor() {
		t.memory = watchDevice(ctx)
		defer t.memory.stop()
	}
	if err := t.keepCalendar(ctx); err != nil {
		return err
	}
	var clock phaseClock
	return t.settle(ctx, hooks.Done, func() (version.Outcome, error) {
		out, err := version.Make(ctx, t.job, version.Hooks{Progress: func(p version.Progress) {
			clock.note(p.Phase, time.Now())
			hooks.Progress(p)
		}})
		t.phases = clock.seconds(time.Now())
		return out, err
	})
}

// settle makes the version and concludes the training. Where somebody promotes
// another version meanwhile, what was learned holds, and only the gate is passed
// again: what build makes a second time it reads from its checkpoints.
func (t *Training) settle(ctx context.Context, tell func(Event) error, build func() (version.Outcome, error)) error {
	for {
		out, err := build()
		if err != nil {
			return err
		}
		moved, err := t.followChampion()
		if err != nil {
			return err
		}
		if moved {
			continue
		}
		if err := t.conclude(ctx, out, tell); !errors.Is(err, modelstore.ErrChampionChanged) {
			return err
		}
		if _, err := t.followChampion(); err != nil {
			return err
		}
	}
}

func (t *Training) onProcessor() bool { return t.device.Name == engine.ORT }
