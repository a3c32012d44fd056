package ort

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors/images"
)

func TestErrorForMissingLibraryNamesItsOriginAndTheRemedy(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "libonnxruntime.so")
	_, err := New(Config{Library: missing})
	wantMessage(t, err, "the configuration", missing, "install onnxruntime")
	t.Setenv(LibraryVariable, missing)
	_, err = LibraryPath("")
	wantMessage(t, err, "$"+LibraryVariable, missing)
}

func TestFileThatIsNotTheLibraryIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "libonnxruntime.so")
	if err := os.WriteFile(path, []byte("not a library"), 0o644); err != nil {
		t.Fatal(err)
	}
	var e environment
	_, err := e.load(path)
	wantMessage(t, err, path, installHint)
}

func TestVersionsBefore124AreTooOld(t *testing.T) {
	for version, want := range map[string]string{
		"1.24.0": "", "1.31.1": "", "2.0.0": "", "1.23.2": "too old", "0.9": "too old", "next": "cannot be parsed", "": "cannot be parsed",
	} {
		err := checkVersion(version)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("checkVersion(%q) = %v, want %q", version, err, want)
		}
	}
}

// TestOldLibraryIsRefusedBeforeItIsStarted builds a library that has nothing
// but a version.
func TestOldLibraryIsRefusedBeforeItIsStarted(t *testing.T) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler here")
	}
	dir := t.TempDir()
	source, library := filepath.Join(dir, "old.c"), filepath.Join(dir, "libonnxruntime.so")
	code := `static const char *version(void) { return "1.17.3"; }
		static const void *interface(unsigned v) { return 0; }
		static struct { const void *(*i)(unsigned); const char *(*v)(void); } base = { interface, version };
		void *OrtGetApiBase(void) { return &base; }`
	if err := os.WriteFile(source, []byte(code), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(cc, "-shared", "-fPIC", "-o", library, source).CombinedOutput(); err != nil {
		t.Skipf("cannot build a library: %v: %s", err, out)
	}
	var e environment
	_, err = e.load(library)
	wantMessage(t, err, "1.17.3", "too old", "1.24")
}

func TestUnknownProviderListsWhatTheLibraryHas(t *testing.T) {
	openBackend(t)
	_, err := New(Config{Provider: "abacus"})
	wantMessage(t, err, "abacus", "cpu")
	if _, err := chooseProvider("CUDA", []string{"CUDAExecutionProvider", cpuProvider}); err != nil {
		t.Errorf("a provider is not found by its short name: %v", err)
	}
}

func TestSecondLibraryInOneProcessIsRefused(t *testing.T) {
	openBackend(t)
	other := ownFile(t, libraryNames()[0])
	_, err := New(Config{Library: other})
	wantMessage(t, err, "only once")
}

// aloneVariable makes the test below the process that it starts.
const aloneVariable = "LACUNA_TEST_ALONE"

// TestTheRuntimeReportsToNobody runs a graph in a process with a home, a cache and a
// folder of temporary files of its own, and without any variable by which the runtime
// tells a test from a service. Before it sends anything it keeps an identifier and a
// database there: where there is no file, nothing was to be sent.
func TestTheRuntimeReportsToNobody(t *testing.T) {
	library, err := LibraryPath("")
	if err != nil {
		t.Skipf("ONNX Runtime is not here: %v", err)
	}
	if os.Getenv(aloneVariable) != "" {
		x, w := randomArray(1, 1, 4, 8, 8), randomArray(2, 4, 4, 3, 3)
		run(t, openBackend(t), trainingStep, x, w)
		return
	}
	home := t.TempDir()
	alone := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.count", "1")
	alone.Env = []string{"HOME=" + home, "TMPDIR=" + home, LibraryVariable + "=" + library, aloneVariable + "=1"}
	if said, err := alone.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	var left []string
	if err := filepath.WalkDir(home, func(file string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			left = append(left, file)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Errorf("a process that ran one graph left %q", left)
	}
}

func TestNegativeThreadsAreRefused(t *testing.T) {
	_, err := New(Config{Threads: -1})
	wantMessage(t, err, "threads is -1")
}

func wantMessage(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q lacks %q", err, part)
		}
	}
}

// trainingStep is a little network with its gradient step: weights in, weights
// out.
func trainingStep(in []*Node) []*Node {
	x, w := in[0], in[1]
	y := Convolve(x, w).ChannelsAxis(images.ChannelsFirst).PadSame().Done()
	y = Mul(y, Sigmoid(y))
	loss := ReduceAllMean(Square(Sub(y, x)))
	return []*Node{Sub(w, MulScalar(Gradient(loss, w)[0], 0.1)), loss}
}

func TestSameInputsGiveTheSameBytesTwice(t *testing.T) {
	b := openBackend(t)
	x, w := randomArray(1, 4, 32, 24, 24), randomArray(2, 32, 32, 3, 3)
	first := run(t, b, trainingStep, x, w)
	for range 3 {
		again := run(t, b, trainingStep, x, w)
		for i := range first {
			if string(memoryOf(again[i].data)) != string(memoryOf(first[i].data)) {
				t.Fatalf("output %d differs between two runs on the same input", i)
			}
		}
	}
}

func TestOneGraphRunsInSeveralGoroutines(t *testing.T) {
	b := openBackend(t)
	x, w := randomArray(1, 2, 16, 8, 8), randomArray(2, 16, 16, 3, 3)
	exec, err := NewExec(b, trainingStep)
	if err != nil {
		t.Fatal(err)
	}
	defer exec.Finalize()
	want := run(t, b, trainingStep, x, w)[0]
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 5 {
				out, err := exec.Exec(x.tensor(), w.tensor())
				if err != nil {
					t.Error(err)
					return
				}
				wantClose(t, "weights", array{want.dims, readFloats(t, out[0])}, want, 0)
				out[1].FinalizeAll()
			}
		})
	}
	wg.Wait()
}

// TestTrainingLoopAllocatesNothingLarge runs donated weights through a step as
// training does. The weights are 2.3 MB; a copy of them in a step would show.
func TestTrainingLoopAllocatesNothingLarge(t *testing.T) {
	openBackend(t)
	b, err := New(Config{Threads: 1}) // a pool that no other test uses
	if err != nil {
		t.Fatal(err)
	}
	defer b.Finalize()
	shape := shapes.Make(dtypes.Float32, 256, 256, 3, 3)
	g := newBuilder(b, "step")
	w, err := g.Parameter("w", shape, nil)
	if err != nil {
		t.Fatal(err)
	}
	half, err := g.Constant([]float32{0.5})
	if err != nil {
		t.Fatal(err)
	}
	next, err := g.Mul(w, half)
	if err != nil {
		t.Fatal(err)
	}
	exec, err := g.Compile([]backends.Op{next}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer exec.Finalize()
	weights, err := b.BufferFromFlatData(0, make([]float32, shape.Size()), shape)
	if err != nil {
		t.Fatal(err)
	}
	step := func() {
		out, err := exec.Execute([]backends.Buffer{weights}, []bool{true}, 0)
		if err != nil {
			t.Fatal(err)
		}
		weights = out[0]
	}
	step()
	step()
	var before, after runtime.MemStats
	idle := b.pool.freeBytes
	runtime.ReadMemStats(&before)
	const steps = 50
	for range steps {
		step()
	}
	runtime.ReadMemStats(&after)
	if perStep := (after.TotalAlloc - before.TotalAlloc) / steps; perStep > 4096 {
		t.Errorf("a step allocates %d bytes of Go memory, want at most 4096", perStep)
	}
	if b.pool.freeBytes != idle {
		t.Errorf("the pool holds %d idle bytes after %d steps, %d before", b.pool.freeBytes, steps, idle)
	}
	if err := b.BufferFinalize(weights); err != nil {
		t.Fatal(err)
	}
}

func TestDonatedAndFinalizedBuffersCannotBeUsedAgain(t *testing.T) {
	b := openBackend(t)
	shape := shapes.Make(dtypes.Float32, 4)
	x, err := b.BufferFromFlatData(0, []float32{1, 2, 3, 4}, shape)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.BufferFinalize(x); err != nil {
		t.Fatal(err)
	}
	if err := b.BufferToFlatData(x, make([]float32, 4)); err == nil {
		t.Error("a finalized buffer was read")
	}
	if err := b.BufferFinalize(x); err != nil {
		t.Errorf("finalizing twice = %v, want nothing to happen", err)
	}
	if _, err := b.BufferFromFlatData(0, []float32{1}, shape); err == nil {
		t.Error("one number filled a tensor of four")
	}
	if _, err := b.BufferFromFlatData(0, []int32{1, 2, 3, 4}, shape); err == nil {
		t.Error("integers filled a tensor of floats")
	}
	if _, err := b.BufferShape(42); err == nil {
		t.Error("a number passed for a buffer")
	}
}

func TestInputOfAnotherShapeIsAnErrorThatNamesIt(t *testing.T) {
	b := openBackend(t)
	g := newBuilder(b, "")
	p, err := g.Parameter("image", shapes.Make(dtypes.Float32, 3), nil)
	if err != nil {
		t.Fatal(err)
	}
	exec, err := g.Compile([]backends.Op{p}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer exec.Finalize()
	x, err := b.BufferFromFlatData(0, []float32{1, 2}, shapes.Make(dtypes.Float32, 2))
	if err != nil {
		t.Fatal(err)
	}
	_, err = exec.Execute([]backends.Buffer{x}, nil, 0)
	wantMessage(t, err, `"image"`, "[2]", "[3]")
	_, err = exec.Execute(nil, nil, 0)
	wantMessage(t, err, "0 inputs, want 1")
}

func TestHalfPrecisionIsRefusedByName(t *testing.T) {
	b := openBackend(t)
	_, err := newBuilder(b, "").Parameter("x", shapes.Make(dtypes.BFloat16, 2), nil)
	wantMessage(t, err, "BFloat16")
}

func TestProfileIsWrittenWhenTheBackendIsFinalized(t *testing.T) {
	openBackend(t)
	prefix := filepath.Join(t.TempDir(), "profile")
	b, err := New(Config{Threads: 1, ProfilePrefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	exec, err := NewExec(b, func(x *Node) *Node { return Neg(x) })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.Exec(randomArray(1, 3).tensor()); err != nil {
		t.Fatal(err)
	}
	b.Finalize()
	files, err := filepath.Glob(prefix + "*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if data, err := os.ReadFile(f); err == nil && strings.Contains(string(data), "Neg") {
			return
		}
	}
	t.Errorf("none of %d profiles names the operator that ran", len(files))
}
