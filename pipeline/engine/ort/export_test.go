package ort

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors/images"
	runtimelib "github.com/yalue/onnxruntime_go"

	"lacuna/pipeline/engine/ort/onnx"
)

// smallNetwork has the parts of the real networks: convolutions, silu, a change
// of resolution down and up, channel norms, attention over pixels, a mean over
// the image, and a vector per sample.
func smallNetwork() Network {
	weights := map[string][]float32{
		"lift":  randomArray(1, 8, 3, 3, 3).data,
		"mix":   randomArray(2, 8, 8, 1, 1).data,
		"scale": randomArray(3, 1, 8).data,
		"last":  randomArray(4, 2, 16, 3, 3).data,
	}
	conv := func(g *Graph, x *Node, name string, dims ...int) *Node {
		kernel := Parameter(g, name, shapes.Make(dtypes.Float32, dims...))
		return Convolve(x, kernel).ChannelsAxis(images.ChannelsFirst).PadSame().Done()
	}
	return Network{
		Name: "small",
		Inputs: []Input{
			{Name: "image", Dims: []InputDim{{2, "batch"}, {Size: 3}, {8, "height"}, {12, "width"}}},
			{Name: "time", Dims: []InputDim{{2, "batch"}}},
		},
		Outputs: []string{"answer", "mean"},
		Weights: weights,
		Build: func(g *Graph, in []*Node) []*Node {
			x := conv(g, in[0], "lift", 8, 3, 3, 3)
			x = Mul(x, Sigmoid(x))
			d := x.Shape().Dimensions
			scale := Dot(Reshape(in[1], d[0], 1), Parameter(g, "scale", shapes.Make(dtypes.Float32, 1, 8)))
			x = Mul(x, Reshape(OnePlus(scale), d[0], d[1], 1, 1))
			x = Div(x, Sqrt(AddScalar(ReduceAndKeep(Square(x), ReduceMean, 1), 1e-4)))
			low := ReduceMean(Reshape(x, d[0], d[1], d[2]/2, 2, d[3]/2, 2), 3, 5)
			low = Add(conv(g, low, "mix", 8, 8, 1, 1), attention(low))
			up := Reshape(low, d[0], d[1], d[2]/2, 1, d[3]/2, 1)
			up = Reshape(BroadcastToDims(up, d[0], d[1], d[2]/2, 2, d[3]/2, 2), d...)
			y := conv(g, Concatenate([]*Node{up, x}, 1), "last", 2, 16, 3, 3)
			return []*Node{y, ReduceMean(y, 2, 3)}
		},
		Metadata: map[string]string{"lacuna.kind": "test", "normalisation": `{"mean": 1.5}`},
	}
}

func attention(x *Node) *Node {
	d := x.Shape().Dimensions
	flat := Reshape(x, d[0], d[1], d[2]*d[3])
	scores := DotGeneral(flat, []int{1}, []int{0}, flat, []int{1}, []int{0})
	scores = Exp(Sub(scores, ReduceAndKeep(scores, ReduceMax, 2)))
	scores = Div(scores, ReduceAndKeep(scores, ReduceSum, 2))
	return Reshape(DotGeneral(flat, []int{2}, []int{0}, scores, []int{2}, []int{0}), d...)
}

// lacunaAnswer runs the network as a GoMLX graph.
func lacunaAnswer(t *testing.T, b *Backend, net Network, image, time array) []array {
	t.Helper()
	names := []string{"lift", "scale", "mix", "last"}
	dims := [][]int{{8, 3, 3, 3}, {1, 8}, {8, 8, 1, 1}, {2, 16, 3, 3}}
	g := NewGraph(b, "answer")
	inputs := []*Node{
		Parameter(g, "image", shapes.Make(dtypes.Float32, image.dims...)),
		Parameter(g, "time", shapes.Make(dtypes.Float32, time.dims...)),
	}
	g.Compile(net.Build(g, inputs)...)
	defer g.Finalize()
	params := []any{image.tensor(), time.tensor()}
	for i, name := range names {
		params = append(params, array{dims[i], net.Weights[name]}.tensor())
	}
	results := g.Run(params...)
	out := make([]array, len(results))
	for i, r := range results {
		out[i] = array{r.Shape().Dimensions, readFloats(t, r)}
	}
	return out
}

// fileAnswer runs a model as any program would that opens the file.
func fileAnswer(t *testing.T, b *Backend, m *onnx.Model, outputs []array, inputs ...array) []array {
	t.Helper()
	data, err := onnx.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	session, err := b.openSession(data, infoNames(m.Graph.Inputs), infoNames(m.Graph.Outputs))
	if err != nil {
		t.Fatal(err)
	}
	defer session.Destroy()
	var in, out []runtimelib.Value
	for _, a := range inputs {
		in = append(in, runtimeTensor(t, a))
	}
	for i := range outputs {
		out = append(out, runtimeTensor(t, outputs[i]))
	}
	if err := session.Run(in, out); err != nil {
		t.Fatal(err)
	}
	return outputs
}

// runtimeTensor shares memory with a, so that results appear there.
func runtimeTensor(t *testing.T, a array) runtimelib.Value {
	t.Helper()
	v, err := runtimelib.NewTensor(runtimeShape(shapes.Make(dtypes.Float32, a.dims...)), a.data)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Destroy() })
	return v
}

func TestExportedNetworkGivesTheSameAnswerAtAnySize(t *testing.T) {
	b := openBackend(t)
	net := smallNetwork()
	m, err := Export(net)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range [][3]int{{2, 8, 12}, {1, 8, 8}, {5, 16, 4}, {3, 20, 28}} {
		image, time := randomArray(9, size[0], 3, size[1], size[2]), randomArray(10, size[0])
		want := lacunaAnswer(t, b, net, image, time)
		got := fileAnswer(t, b, m, []array{newArray(want[0].dims...), newArray(want[1].dims...)}, image, time)
		wantClose(t, "answer", got[0], want[0], 1e-4)
		wantClose(t, "mean", got[1], want[1], 1e-4)
	}
}

func TestExportedFileHasNamesWeightsAndMetadataAndNoForeignOperators(t *testing.T) {
	net := smallNetwork()
	m, err := Export(net)
	if err != nil {
		t.Fatal(err)
	}
	data, err := onnx.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	back, err := onnx.Unmarshal(data)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range net.Weights {
		at := slices.IndexFunc(back.Graph.Initializers, func(w onnx.Tensor) bool { return w.Name == name })
		if at < 0 {
			t.Fatalf("weight %q is not in the file", name)
		}
		got, err := back.Graph.Initializers[at].Float32s()
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("weight %q[%d] is %v, want %v", name, i, got[i], want[i])
			}
		}
	}
	for _, n := range back.Graph.Nodes {
		if n.Domain != "" {
			t.Errorf("node %s is of domain %q; the file should be standard ONNX", n.Op, n.Domain)
		}
	}
	if got := back.Graph.Outputs[0].Shape[2].Symbol; got != "height" {
		t.Errorf("the answer's third dimension is %q, want height", got)
	}
	if back.Metadata["lacuna.kind"] != "test" {
		t.Errorf("metadata is %v", back.Metadata)
	}
}

func TestExportRefusesNetworksThatItCannotWrite(t *testing.T) {
	tests := []struct {
		name string
		edit func(*Network)
		want string
	}{
		{"a weight is missing", func(n *Network) { delete(n.Weights, "mix") }, `"mix" is not given`},
		{"a weight of another network", func(n *Network) { n.Weights["mix"] = make([]float32, 3) }, `"mix" is (Float32)[8 8 1 1], 3`},
		{"graph code panics", func(n *Network) { n.Inputs[0].Dims[1].Size = 4 }, "build the graph"},
		{"outputs are not named", func(n *Network) { n.Outputs = n.Outputs[:1] }, "2 outputs, 1"},
		{"two symbols of one size", func(n *Network) { n.Inputs[0].Dims[3].Size = 8 }, "different"},
		{"a table as large as the image", func(n *Network) {
			build := n.Build
			n.Build = func(g *Graph, in []*Node) []*Node {
				out := build(g, in)
				out[0] = Mul(out[0], Iota(g, out[0].Shape(), 3))
				return out
			}
		}, "another constant"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			net := smallNetwork()
			tt.edit(&net)
			_, err := Export(net)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Export() = %v, want a message with %q", err, tt.want)
			}
		})
	}
}

// TestPythonAgreesWithTheExportedFile needs a Python with onnx and onnxruntime,
// named by LACUNA_PYTHON.
func TestPythonAgreesWithTheExportedFile(t *testing.T) {
	python := os.Getenv("LACUNA_PYTHON")
	if python == "" {
		t.Skip("LACUNA_PYTHON names no Python with onnx and onnxruntime")
	}
	b := openBackend(t)
	net := smallNetwork()
	m, err := Export(net)
	if err != nil {
		t.Fatal(err)
	}
	data, err := onnx.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	image, time := randomArray(9, 3, 3, 16, 8), randomArray(10, 3)
	want := lacunaAnswer(t, b, net, image, time)
	query, err := json.Marshal(map[string]any{"image": image.data, "image_dims": image.dims, "time": time.data})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"small.onnx": data, "query.json": query} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(python, filepath.Join("testdata", "run_model.py"), dir)
	out, err := cmd.Output()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			t.Logf("Python says: %s", failed.Stderr)
		}
		t.Fatalf("run Python on the file: %v", err)
	}
	var answer struct{ Answer, Mean []float32 }
	if err := json.Unmarshal(out, &answer); err != nil {
		t.Fatal(err)
	}
	wantClose(t, "answer in Python", array{want[0].dims, answer.Answer}, want[0], 1e-4)
	wantClose(t, "mean in Python", array{want[1].dims, answer.Mean}, want[1], 1e-4)
}
