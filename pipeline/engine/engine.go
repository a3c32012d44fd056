package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/gomlx/gomlx/backends"

	"lacuna/pipeline/engine/ort"
)

// Names of the engines.
const (
	Auto    = "auto"
	ORT     = "ort"
	ORTCUDA = "ort:cuda"
	XLACUDA = "xla:cuda"
)

// Variables of the environment that name a library where the Config does not.
const (
	LibraryVariable = ort.LibraryVariable  // libonnxruntime
	PluginVariable  = "LACUNA_PJRT_PLUGIN" // PJRT plug-in for CUDA
	GPUVariable     = "LACUNA_GPU"         // numbers of the GPUs to use, like 0 or 0,1
	MemoryVariable  = "LACUNA_GPU_MEMORY"  // share of their memory, like 0.5
)

// Config holds the settings of engines. With the zero value everything is found
// automatically.
type Config struct {
	Library  string `yaml:"library"`   // libonnxruntime; empty: found
	Threads  int    `yaml:"threads"`   // threads of ort; 0: OMP_NUM_THREADS, or else all cores
	Plugin   string `yaml:"plugin"`    // PJRT plug-in for CUDA; empty: found
	Python   string `yaml:"python"`    // interpreter that has jax[cuda]; empty: python3
	CacheDir string `yaml:"cache_dir"` // folder of XLA's tuning between runs; empty: that of the service or the user
	// GPUs are the numbers of the GPUs that xla:cuda may use; empty: all.
	GPUs []int `yaml:"gpus"`
	// Memory is the share of a GPU's memory that xla:cuda may take; 0: what there is.
	Memory float64 `yaml:"memory"`
	// KeepSessions keeps what ort compiled for the other engines of this process, for
	// a program that makes the same networks again and again.
	KeepSessions bool `yaml:"-"`
}

// Engine is an open engine.
type Engine struct {
	backends.Backend
	Kind    string  // name of the engine, never "auto"
	Library string  // path of the library or plug-in that it was loaded from
	Refused []error // reasons why preferred engines or libraries are not used
	Away    error   // reason why this engine stands in for the GPU that was asked for; nil: it does not

	matrices *ort.Backend // for prediction, see For; nil: this engine
	log      *slog.Logger
}

// Finalize closes the engine and frees its memory.
func (e *Engine) Finalize() {
	if e.matrices != nil {
		e.matrices.Finalize()
	}
	e.Backend.Finalize()
}

// Description names the runtime, and how it predicts where that is another way.
func (e *Engine) Description() string {
	if e.matrices == nil {
		return e.Backend.Description()
	}
	return e.Backend.Description() + "; predicts in bfloat16 by OpenVINO"
}

// OnGPU reports whether an engine of that name computes on a GPU.
func OnGPU(name string) bool { return name == XLACUDA || name == ORTCUDA }

// Open opens the named engine. It logs its choice and, for "auto", the reason.
func Open(name string, cfg Config, log *slog.Logger) (*Engine, error) {
	log = log.With("component", "engine")
	if name == Auto || name == "" {
		return openBest(cfg, log)
	}
	e, err := open(name, cfg)
	if err != nil {
		return nil, fmt.Errorf("open engine %s: %w", name, err)
	}
	e.log = log
	log.Info("engine opened", "engine", name, "description", e.Description(), "library", e.Library)
	e.logRefused(log)
	return e, nil
}

// OpenOrStandIn is Open for one who would rather compute slowly than not at all:
// where a GPU was asked for by name and cannot be used, the processor stands in, and
// Away says why.
func OpenOrStandIn(name string, cfg Config, log *slog.Logger) (*Engine, error) {
	e, away := Open(name, cfg, log)
	if away == nil || !OnGPU(name) {
		return e, away
	}
	return StandIn(away, cfg, log)
}

// StandIn opens the processor in the place of a GPU that is away.
func StandIn(away error, cfg Config, log *slog.Logger) (*Engine, error) {
	e, err := Open(ORT, cfg, log)
	if err != nil {
		return nil, fmt.Errorf("%w; and %w", away, err)
	}
	e.Away = away
	log.Warn("the GPU is away, and the processor stands in", "component", "engine", "err", away)
	return e, nil
}

// openBest takes the GPU if there is a usable one, else the processor. It does
// not try ort:cuda, which is slower at training than xla:cuda and has to be
// requested by name.
func openBest(cfg Config, log *slog.Logger) (*Engine, error) {
	e, gpu := open(XLACUDA, cfg)
	if gpu == nil {
		e.log = log
		log.Info("engine chosen", "engine", XLACUDA, "why", "an NVIDIA GPU and its plug-in are usable", "description", e.Description(), "library", e.Library)
		e.logRefused(log)
		return e, nil
	}
	e, err := open(ORT, cfg)
	if err != nil {
		return nil, fmt.Errorf("open an engine: %s: %w; %s: %w", XLACUDA, gpu, ORT, err)
	}
	e.log = log
	log.Info("engine chosen", "engine", ORT, "why", XLACUDA+" is not usable: "+gpu.Error(), "description", e.Description(), "library", e.Library)
	e.logRefused(log)
	return e, nil
}

// logRefused logs the engines and libraries that were passed over.
func (e *Engine) logRefused(log *slog.Logger) {
	for _, err := range e.Refused {
		log.Warn("library refused", "err", err)
	}
}

func open(name string, cfg Config) (*Engine, error) {
	switch name {
	case ORT:
		return openORT(name, ort.Config{Library: cfg.Library, Threads: cfg.Threads, KeepSessions: cfg.KeepSessions})
	case ORTCUDA:
		return openORT(name, ort.Config{Library: cfg.Library, Threads: cfg.Threads, Provider: "cuda"})
	case XLACUDA:
		return openXLA(cfg)
	}
	return nil, fmt.Errorf("no such engine; there are %s", strings.Join([]string{Auto, ORT, ORTCUDA, XLACUDA}, ", "))
}

func openORT(name string, cfg ort.Config) (*Engine, error) {
	b, err := ort.New(cfg)
	if err != nil {
		return nil, err
	}
	e := &Engine{Backend: b, Kind: name, Library: b.Library().Path, Refused: b.Library().Refused}
	if name != ORT {
		return e, nil
	}
	if e.matrices, err = openMatrices(cfg); err != nil && !errors.Is(err, errNoMatrices) {
		e.Refused = append(slices.Clone(e.Refused), err)
	}
	return e, nil
}
