package ort

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/notimplemented"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	runtimelib "github.com/yalue/onnxruntime_go"
)

// Config holds the library and its settings. The zero value is a CPU backend
// with every core and the library that LibraryPath finds.
type Config struct {
	Library       string // path of libonnxruntime; empty: see LibraryPath
	Provider      string // "cpu" (also when empty), "cuda", "tensorrt" or another that the library has
	BFloat16      bool   // let openvino compute in bfloat16, where the processor can
	Threads       int    // threads that share one operator; 0: OMP_NUM_THREADS, or else all cores
	ProfilePrefix string // path prefix of ONNX Runtime's own profile of each graph; empty: not written
	// KeepSessions keeps compiled graphs for the other backends of this process with
	// the same settings, also after Finalize, for one that makes the same networks
	// again and again. Their memory is kept too, so it is for the processor only.
	KeepSessions bool
}

// Backend runs GoMLX graphs with ONNX Runtime. It may be used from several
// goroutines.
type Backend struct {
	// Methods that Backend does not define return "not implemented".
	notimplemented.Backend

	cfg       Config
	library   Library
	provider  string
	dialect   dialect
	pool      *pool
	finalized atomic.Bool

	mu   sync.Mutex
	open map[*executable]bool // graphs that are not finalized
}

var _ backends.Backend = (*Backend)(nil)

// New loads ONNX Runtime and returns a backend that runs on cfg.Provider. The
// library is loaded once in a process; asking for a second one is an error.
func New(cfg Config) (*Backend, error) {
	if cfg.Threads < 0 {
		return nil, fmt.Errorf("threads is %d, must not be negative", cfg.Threads)
	}
	if cfg.Threads == 0 {
		cfg.Threads = usualThreads()
	}
	library, err := findLibrary(cfg.Library)
	if err != nil {
		return nil, err
	}
	available, err := loaded.load(library.Path)
	if err != nil {
		return nil, err
	}
	provider, err := chooseProvider(cfg.Provider, available)
	if err != nil {
		return nil, err
	}
	b := &Backend{cfg: cfg, library: library, provider: provider, pool: newPool(), open: map[*executable]bool{}}
	if provider == cpuProvider {
		b.dialect = probeDialect(b)
	}
	b.dialect.turned = provider == openVINO
	return b, nil
}

// keeps reports whether compiled graphs are shared. One that writes its profile is
// not: it writes it when it is closed.
func (b *Backend) keeps() bool {
	return b.cfg.KeepSessions && b.provider == cpuProvider && b.cfg.ProfilePrefix == ""
}

const (
	cpuProvider = "CPUExecutionProvider"
	openVINO    = "OpenVINOExecutionProvider"
)

// chooseProvider finds the library's own name of a provider.
func chooseProvider(asked string, available []string) (string, error) {
	if asked == "" {
		asked = "cpu"
	}
	for _, name := range available {
		if strings.EqualFold(asked, name) || strings.EqualFold(asked, shortProvider(name)) {
			return name, nil
		}
	}
	short := make([]string, len(available))
	for i, name := range available {
		short[i] = shortProvider(name)
	}
	return "", fmt.Errorf("this ONNX Runtime has no provider %q, it has %s; install a build with it (onnxruntime-gpu has cuda and tensorrt)",
		asked, strings.Join(short, ", "))
}

// shortProvider turns CUDAExecutionProvider into cuda.
func shortProvider(name string) string {
	return strings.ToLower(strings.TrimSuffix(name, "ExecutionProvider"))
}

// sessionOptions returns the options of one session; the caller destroys them.
func (b *Backend) sessionOptions() (*runtimelib.SessionOptions, error) {
	opts, err := runtimelib.NewSessionOptions()
	if err != nil {
		return nil, err
	}
	if err := b.configure(opts); err != nil {
		destroy(opts)
		return nil, err
	}
	return opts, nil
}

// destroy frees a handle of the runtime. Its only error is that the handle was
// freed before.
func destroy(handle interface{ Destroy() error }) { _ = handle.Destroy() }

func (b *Backend) configure(opts *runtimelib.SessionOptions) error {
	if err := opts.SetIntraOpNumThreads(b.cfg.Threads); err != nil {
		return err
	}
	if b.cfg.ProfilePrefix != "" {
		if err := opts.EnableProfiling(b.cfg.ProfilePrefix); err != nil {
			return err
		}
	}
	return b.appendProvider(opts)
}

func (b *Backend) appendProvider(opts *runtimelib.SessionOptions) error {
	switch b.provider {
	case cpuProvider:
		// With patterns a graph's second run asks for all of its memory in one piece, which
		// is not among the pieces that the first one left: it took twice as much.
		return opts.SetMemPattern(false)
	case "CUDAExecutionProvider":
		cuda, err := runtimelib.NewCUDAProviderOptions()
		if err != nil {
			return fmt.Errorf("prepare the CUDA provider: %w", err)
		}
		defer destroy(cuda)
		if err := opts.AppendExecutionProviderCUDA(cuda); err != nil {
			return fmt.Errorf("start the CUDA provider (are CUDA and cuDNN installed and on the library path?): %w", err)
		}
		return nil
	case "TensorrtExecutionProvider":
		rt, err := runtimelib.NewTensorRTProviderOptions()
		if err != nil {
			return fmt.Errorf("prepare the TensorRT provider: %w", err)
		}
		defer destroy(rt)
		if err := opts.AppendExecutionProviderTensorRT(rt); err != nil {
			return fmt.Errorf("start the TensorRT provider (is TensorRT installed and on the library path?): %w", err)
		}
		return nil
	case openVINO:
		if err := opts.AppendExecutionProvider("OpenVINO", b.openVINOOptions()); err != nil {
			return fmt.Errorf("start the OpenVINO provider: %w", err)
		}
		return nil
	}
	name := strings.TrimSuffix(b.provider, "ExecutionProvider")
	if err := opts.AppendExecutionProvider(name, nil); err != nil {
		return fmt.Errorf("start the %s provider: %w", name, err)
	}
	return nil
}

// openVINOOptions are those of a session on the processor.
func (b *Backend) openVINOOptions() map[string]string {
	precision := "f32"
	if b.cfg.BFloat16 {
		precision = "bf16"
	}
	return map[string]string{
		"device_type": "CPU", "num_of_threads": strconv.Itoa(b.cfg.Threads),
		"load_config": fmt.Sprintf(`{"CPU": {"INFERENCE_PRECISION_HINT": %q}}`, precision),
	}
}

// Name returns "ort".
func (b *Backend) Name() string { return "ort" }

// String returns "ort" with the provider, where that is not the CPU.
func (b *Backend) String() string {
	if b.provider == cpuProvider {
		return "ort"
	}
	return "ort:" + shortProvider(b.provider)
}

// Description names the runtime's version, provider and threads.
func (b *Backend) Description() string {
	return fmt.Sprintf("ONNX Runtime %s on %s, %d threads, %v", runtimelib.GetVersion(), shortProvider(b.provider), b.cfg.Threads, b.dialect)
}

// Library returns the library that the backend was loaded from.
func (b *Backend) Library() Library { return b.library }

// DeviceDescription names the provider.
func (b *Backend) DeviceDescription(backends.DeviceNum) string { return shortProvider(b.provider) }

// Capabilities lists the operations that are lowered and the element types.
func (b *Backend) Capabilities() backends.Capabilities {
	c := backends.Capabilities{
		Operations: make(map[backends.OpType]bool, len(loweredOps)),
		DTypes:     make(map[dtypes.DType]bool, len(elementTypes)),
	}
	for _, op := range loweredOps {
		c.Operations[op] = true
	}
	for d := range elementTypes {
		c.DTypes[d] = true
	}
	return c
}

// Builder returns a builder for one graph.
func (b *Backend) Builder(name string) backends.Builder { return newBuilder(b, name) }

// Finalize closes every graph, which also writes their profiles, and releases
// the memory that no buffer uses. The library itself stays loaded until the
// process ends.
func (b *Backend) Finalize() {
	b.finalized.Store(true)
	b.mu.Lock()
	open := slices.Collect(maps.Keys(b.open))
	b.mu.Unlock()
	for _, e := range open {
		e.Finalize()
	}
	b.pool.drain()
}

// IsFinalized reports whether Finalize was called.
func (b *Backend) IsFinalized() bool { return b.finalized.Load() }
