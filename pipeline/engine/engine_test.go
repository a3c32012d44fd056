package engine

import (
	"bytes"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors"

	"lacuna/pipeline/engine/ort"
)

func openTest(t *testing.T) *Engine {
	t.Helper()
	if _, err := ort.LibraryPath(""); err != nil {
		t.Skip(err)
	}
	e, err := Open(ORT, Config{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Finalize)
	return e
}

// noGPU makes xla:cuda unusable in a way that does not depend on the machine.
func noGPU(t *testing.T) Config {
	t.Helper()
	return Config{Plugin: filepath.Join(t.TempDir(), "gone.so")}
}

func TestUnknownEngineIsAnErrorThatListsThem(t *testing.T) {
	_, err := Open("tpu", Config{}, slog.New(slog.DiscardHandler))
	if want := "open engine tpu: no such engine; there are auto, ort, ort:cuda, xla:cuda"; err == nil || err.Error() != want {
		t.Errorf("error is %v, want %s", err, want)
	}
}

func TestNamedEngineDoesNotFallBack(t *testing.T) {
	e, err := Open(XLACUDA, noGPU(t), slog.New(slog.DiscardHandler))
	if err == nil {
		t.Fatalf("opened %s without a plug-in", e.Kind)
	}
	if !strings.Contains(err.Error(), "xla:cuda") || !strings.Contains(err.Error(), "jax[cuda13]") {
		t.Errorf("error is %v, want one that names the engine and what to install", err)
	}
}

func TestAutoLogsItsChoiceAndTheReason(t *testing.T) {
	openTest(t) // skips without the library
	var log bytes.Buffer
	e, err := Open(Auto, noGPU(t), slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Finalize()
	if e.Kind != ORT {
		t.Errorf("auto chose %s, want %s", e.Kind, ORT)
	}
	for _, want := range []string{"engine=ort", "xla:cuda is not usable", "gone.so"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log says %q, want it to say %q", log.String(), want)
		}
	}
}

func TestListReportsWhetherEachEngineWorks(t *testing.T) {
	openTest(t)
	list := List(noGPU(t))
	var names []string
	for _, s := range list {
		names = append(names, s.Name)
		if s.Detail == "" {
			t.Errorf("nothing is told of %s", s.Name)
		}
	}
	if want := []string{ORT, ORTCUDA, XLACUDA}; !slices.Equal(names, want) {
		t.Errorf("list is of %v, want %v", names, want)
	}
	if !list[0].Usable || list[2].Usable {
		t.Errorf("list is %+v, want ort usable and xla:cuda not", list)
	}
}

func TestPanicsOfGraphCodeBecomeErrors(t *testing.T) {
	e := openTest(t)
	_, err := Compile(e, "bad", func(g *graph.Graph) []*graph.Node {
		x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 2))
		y := graph.Parameter(g, "y", shapes.Make(dtypes.Float32, 3))
		return []*graph.Node{graph.Add(x, y)}
	})
	if err == nil || !strings.HasPrefix(err.Error(), "compile bad: ") {
		t.Errorf("shapes that do not match give %v", err)
	}
	_, err = Compile(e, "bug", func(*graph.Graph) []*graph.Node {
		var empty []int
		_ = empty[len(empty)]
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "engine_test.go") {
		t.Errorf("a bug of ours gives %v, want the stack in it", err)
	}
}

func TestMemoryThatRanOutIsNamed(t *testing.T) {
	full := errors.New("PJRT error (code=8): RESOURCE_EXHAUSTED: allocating 3 GiB")
	if err := explain(full); !errors.Is(err, ErrOutOfMemory) || !errors.Is(err, full) || !strings.Contains(err.Error(), "smaller batch") {
		t.Errorf("explain(%v) = %v", full, err)
	}
	if err := explain(errors.New("no such shape")); errors.Is(err, ErrOutOfMemory) {
		t.Errorf("another error became %v", err)
	}
}

func TestProgramChecksItsInputs(t *testing.T) {
	p, err := Compile(openTest(t), "double", func(g *graph.Graph) []*graph.Node {
		x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 2))
		return []*graph.Node{graph.Add(x, x)}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := p.Run(); err == nil {
		t.Error("ran without its input")
	}
	if _, err := p.Run(tensors.FromFlatDataAndDimensions([]float32{1, 2, 3}, 3)); err == nil {
		t.Error("ran with an input of another shape")
	}
	out, err := p.Run(tensors.FromFlatDataAndDimensions([]float32{1, 2}, 2))
	if err != nil {
		t.Fatal(err)
	}
	if got := tensors.MustCopyFlatData[float32](out[0]); !slices.Equal(got, []float32{2, 4}) {
		t.Errorf("doubled [1 2] is %v", got)
	}
	p.Close()
	if _, err := p.Run(); err == nil {
		t.Error("ran after Close")
	}
}
