package input

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"lacuna/daemon/cli"
	"lacuna/daemon/fill"
	"lacuna/modelstore"
	"lacuna/modelstore/starters"
	"lacuna/pipeline/engine"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/skill"

	"github.com/spf13/pflag"
)

// Model are the flags that name the method or the model that fills, and the
// engine of its networks.
type Model struct {
	name   string // a method, a version, champion or a file; empty: chosen for each granule
	store  string
	engine string

	MembersFile bool // write the members into a file of their own
}

// Add adds the flags to those of a command; the ones about the network go to
// cfg.
func (m *Model) Add(f *pflag.FlagSet, cfg *infer.Config) {
	f.StringVar(&m.name, "model", "", "what fills: oi, persistence, climatology, starter, a `VERSION` of the store, champion, or FILE.onnx")
	f.StringVar(&m.store, "store", "", "model store in `DIR`")
	f.StringVar(&m.engine, "engine", engine.Auto, "what networks run on; 'lacuna engines' lists them")
	f.StringVar((*string)(&cfg.Network.Tier), "tier", "", "of a model: fast, standard or full (default: by the deadline, else fast)")
	f.IntVar(&cfg.Network.Members, "members", 0, "how many members to draw (default: 4, for the tier full 16)")
	f.Uint64Var(&cfg.Network.Seed, "seed", 0, "of the members' noise")
	f.DurationVar(&cfg.Network.Deadline, "deadline", 0, "take the best tier that is done with a field in this time")
	f.IntVar(&cfg.Network.WindowCells, "window", 0, "side of the largest window in cells (default: 512, on a GPU 1024)")
	f.BoolVar(&cfg.Details, "details", false, "add to the product how far observations are and, of a model, how reliable pixels are")
	f.BoolVar(&m.MembersFile, "members-file", false, "write members, complete fields that are equally likely, into IN_l4_members.nc")
}

// classicalMethods are the values of --model that name a method without
// networks.
func classicalMethods() []string { return []string{"oi", "persistence", "climatology"} }

// Method returns the method that the flags ask for.
func (m Model) Method() string {
	switch {
	case slices.Contains(classicalMethods(), m.name):
		return m.name
	case m.name == "" && m.store == "", m.IsStarter():
		return infer.MethodAuto
	}
	return infer.MethodModel
}

// Validate reports flags that contradict each other or cfg.
func (m Model) Validate(cfg infer.Config) error {
	network := cfg.Network
	if m.MembersFile {
		network.Members, network.Seed = 0, 0
	}
	if slices.Contains(classicalMethods(), m.name) && network != (infer.Network{}) {
		return fmt.Errorf("--tier, --deadline and --window, and --members and --seed without --members-file, are for models: leave them out, or --model %s", m.name)
	}
	if m.Method() == infer.MethodModel && m.store == "" && !m.isFile() {
		return fmt.Errorf("--model %s: it is none of %s and no .onnx file, and there is no --store DIR to look it up in",
			m.name, strings.Join(classicalMethods(), ", "))
	}
	return nil
}

// MembersOf returns how many members are to be written by cfg.
func (m Model) MembersOf(cfg infer.Config) int {
	if !m.MembersFile {
		return 0
	}
	tier := cfg.Network.Tier
	if tier != infer.Full {
		tier = infer.Standard
	}
	return tier.Recipe(cfg.Network.Members).Members
}

func (m Model) isFile() bool { return strings.HasSuffix(m.name, ".onnx") }

// A Filler fills the granules of one command.
type Filler struct {
	Model   *infer.Model        // the model that flags name; nil: they name none
	Version *modelstore.Version // its version; nil: it is of no store
	models  *fill.Models        // chooses for each granule; nil: flags have chosen
	engine  *engine.Engine      // nil: not opened yet
	stderr  io.Writer
	full    bool   // a chosen model is followed all the way
	said    string // the last choice that was reported
}

// Open opens the engine and loads the model that flags name. For the method
// auto both wait for a granule that needs them.
func (m Model) Open(method string, stderr io.Writer) (*Filler, error) {
	f := &Filler{stderr: stderr, full: m.IsStarter()}
	var err error
	switch method {
	case infer.MethodModel:
		err = m.load(f)
	case infer.MethodAuto:
		log := slog.New(cli.NewConsole(stderr, slog.LevelWarn))
		parts := fill.ModelParts{Log: log, Open: func() (infer.Device, error) { return f.device(m.engine) }}
		parts.Starters, err = starters.List(context.Background())
		f.models = fill.NewModels(parts)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// device opens the engine.
func (f *Filler) device(name string) (infer.Device, error) {
	e, err := engine.Open(name, engine.Config{}, slog.New(cli.NewConsole(f.stderr, slog.LevelWarn)))
	if err != nil {
		return infer.Device{}, err
	}
	f.engine = e
	return infer.Device{Backend: e, GPU: e.Kind != engine.ORT}, nil
}

// load loads the model that flags name.
func (m Model) load(f *Filler) error {
	version, err := m.version()
	if err != nil {
		return err
	}
	device, err := f.device(m.engine)
	if err != nil {
		return err
	}
	if f.Version = version; version != nil {
		f.Model, err = fill.LoadModel(version, device)
	} else {
		f.Model, err = fill.LoadModelFile(m.name, device)
	}
	return err
}

// Close frees the model and the engine.
func (f *Filler) Close() {
	if f.Model != nil {
		f.Model.Close()
	}
	if f.models != nil {
		f.models.Close()
	}
	if f.engine != nil {
		f.engine.Finalize()
	}
}

// Settle puts the model and the method into the job, and reports on standard
// error a choice that differs from the last one. A model that flags name is
// followed all the way, and an error where it cannot be used; one that was chosen
// is followed as far as the days say that weigh scores.
func (f *Filler) Settle(job *fill.Job, weigh func(job fill.Job) ([]skill.Departure, error)) error {
	job.Model = f.Model
	if f.models == nil {
		return nil
	}
	var failed error
	choice := f.models.Choose(fill.Case{
		Dataset: job.Dataset, Granule: job.Granule, Fill: job.Fill,
		Scaling: func() (fill.LocalScaling, error) {
			return fill.LearnLocalScaling(job.Known(), job.Sea, job.Granule.Transform)
		},
		Evidence: func(c fill.Choice) skill.Trust {
			if f.full {
				return skill.Trust{Weight: 1}
			}
			chosen := *job
			chosen.Fill, chosen.Model, chosen.Scaling = c.Fill, c.Model, c.Scaling
			days, err := weigh(chosen)
			failed = err
			return job.Trusted(days, c.Elsewhere)
		},
	})
	switch {
	case failed != nil:
		return failed
	case f.full && choice.Model == nil:
		return fmt.Errorf("--model %s cannot fill %s: %s", StarterName, job.Granule.Name, choice.Why)
	case f.full:
		choice.Trust = nil
	}
	job.Fill, job.Model, job.Scaling, job.Trust = choice.Fill, choice.Model, choice.Scaling, choice.Trust
	if text := choice.String(); text != f.said {
		fmt.Fprintf(f.stderr, "lacuna: filled by %s\n", text)
		f.said = text
	}
	return nil
}

// version finds the version in the store; nil for a file.
func (m Model) version() (*modelstore.Version, error) {
	if m.isFile() {
		return nil, nil
	}
	store := modelstore.New(m.store, time.Now)
	if _, err := os.Stat(m.store); err != nil {
		return nil, fmt.Errorf("open model store: %w", err)
	}
	id, err := store.Resolve(cmp.Or(m.name, "champion"))
	if err != nil {
		return nil, fmt.Errorf("find model: %w", err)
	}
	return store.Load(id)
}
