package netfile

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"

	"lacuna/pipeline/engine"
	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/engine/ort"
	"lacuna/pipeline/engine/ort/onnx"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/noise"
)

// files are a UNet for images of any size and a ViT for one size, with weights
// as after training.
func files(t *testing.T) map[string]File {
	t.Helper()
	out := map[string]File{}
	for _, backbone := range []string{nn.BackboneUNet, nn.BackboneViT} {
		f := File{Config: nn.Config{Backbone: backbone, Size: nn.Tiny, In: 3, Out: 2}, Metadata: map[string]string{"note": "written by a test"}}
		if backbone == nn.BackboneViT {
			f.Height, f.Width = 16, 32
		}
		network, err := nn.New(f.Config)
		if err != nil {
			t.Fatal(err)
		}
		f.Weights = network.Layout().Init(1)
		for i, v := range normals("trained", len(f.Weights)) {
			f.Weights[i] += 0.05 * v
		}
		out[backbone] = f
	}
	return out
}

func normals(name string, n int) []float32 {
	x := make([]float32, n)
	noise.New(3, name).Normals(x, 0)
	return x
}

func encode(t *testing.T, f File) []byte {
	t.Helper()
	data, err := Encode(f)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestNetworkComesBackAsItWasWritten(t *testing.T) {
	for name, f := range files(t) {
		got, err := Decode(encode(t, f))
		if err != nil {
			t.Fatal(err)
		}
		if got.Config != f.Config || got.Metadata["note"] != f.Metadata["note"] || len(got.Metadata) != 1 {
			t.Errorf("%s came back as %+v with %v", name, got.Config, got.Metadata)
		}
		if !slices.Equal(got.Weights, f.Weights) {
			t.Errorf("%s came back with other weights", name)
		}
	}
}

func TestWeightsOfAnotherArchitectureAreRefusedByName(t *testing.T) {
	all := files(t)
	unet, err := onnx.Unmarshal(encode(t, all[nn.BackboneUNet]))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		cfg  nn.Config
		want string
	}{
		{"more channels", nn.Config{Backbone: nn.BackboneUNet, Size: nn.Tiny, In: 4, Out: 2}, "weight lift.kernel has shape [16 3 3 3], want [16 4 3 3]"},
		{"other size", nn.Config{Backbone: nn.BackboneUNet, Size: nn.Small, In: 3, Out: 2}, "weight time.first.kernel has shape"},
		{"other backbone", nn.Config{Backbone: nn.BackboneViT, Size: nn.Tiny, In: 3, Out: 2}, "weight modulation.kernel [384 64 1 1] is missing"},
	}
	for _, tt := range tests {
		network, err := nn.New(tt.cfg)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := weights(unet, network.Layout()); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error is %v, want one with %q", tt.name, err, tt.want)
		}
	}
	own, err := nn.New(all[nn.BackboneUNet].Config)
	if err != nil {
		t.Fatal(err)
	}
	if w, err := weights(unet, own.Layout()); err != nil || !slices.Equal(w, all[nn.BackboneUNet].Weights) {
		t.Errorf("its own weights are refused: %v", err)
	}
}

func TestWrongFilesAreErrors(t *testing.T) {
	f := files(t)[nn.BackboneUNet]
	data := encode(t, f)
	foreign, err := ort.Export(ort.Network{
		Name: "foreign", Inputs: []ort.Input{{Name: "x", Dims: []ort.InputDim{{Size: 2}}}}, Outputs: []string{"y"},
		Build: func(_ *Graph, in []*Node) []*Node { return []*Node{Add(in[0], in[0])} },
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string][]byte{
		"empty":     nil,
		"text":      []byte("this is no model"),
		"cut short": data[:len(data)/2],
		"foreign":   marshal(t, foreign),
	} {
		if _, err := Decode(bad); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for name, edit := range map[string]func(*File){
		"too few weights": func(f *File) { f.Weights = f.Weights[1:] },
		"odd side":        func(f *File) { f.Height = 12 },
		"reserved key":    func(f *File) { f.Metadata = map[string]string{networkKey: "mine"} },
		"vit of any size": func(f *File) { *f = files(t)[nn.BackboneViT]; f.Width = 0 },
	} {
		bad := f
		edit(&bad)
		if _, err := Encode(bad); err == nil {
			t.Errorf("%s: written", name)
		}
	}
}

// The file must give the same answer in Python as here, at a size of image that
// the exporter did not see.
func TestPythonGivesTheSameAnswer(t *testing.T) {
	python := os.Getenv("LACUNA_PYTHON")
	if python == "" || exec.Command(python, "-c", "import onnx, onnxruntime").Run() != nil {
		t.Skip("LACUNA_PYTHON has no onnx and onnxruntime; make test sets it")
	}
	const batch, channels, height, width = 3, 3, 16, 32
	image, times := normals("image", batch*channels*height*width), []float32{0, 0.4, 1}
	for name, f := range files(t) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := func(name string) string { return filepath.Join(dir, name) }
			write(t, path("model.onnx"), encode(t, f))
			write(t, path("image"), floats(t, image))
			write(t, path("time"), floats(t, times))
			args := []string{"testdata/answer.py", path("model.onnx"), path("image"), path("time"), path("answer")}
			for _, n := range []int{batch, channels, height, width} {
				args = append(args, strconv.Itoa(n))
			}
			if out, err := exec.Command(python, args...).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			raw, err := os.ReadFile(path("answer"))
			if err != nil {
				t.Fatal(err)
			}
			python := make([]float32, len(raw)/4)
			if err := binary.Read(bytes.NewReader(raw), binary.LittleEndian, python); err != nil {
				t.Fatal(err)
			}
			own := answer(t, f, tensors.FromFlatDataAndDimensions(image, batch, channels, height, width), tensors.FromFlatDataAndDimensions(times, batch))
			if len(own) != len(python) {
				t.Fatalf("%d numbers here, %d in Python", len(own), len(python))
			}
			for i := range own {
				if math.Abs(float64(own[i]-python[i])) > 1e-4 {
					t.Fatalf("number %d is %g here and %g in Python", i, own[i], python[i])
				}
			}
		})
	}
}

// answer runs the network of f on the processor.
func answer(t *testing.T, f File, image, times *tensors.Tensor) []float32 {
	t.Helper()
	e := enginetest.OpenThreads(t, 0)
	network, err := nn.New(f.Config)
	if err != nil {
		t.Fatal(err)
	}
	p, err := engine.Compile(e, "answer", func(g *Graph) []*Node {
		x, t := Parameter(g, "image", image.Shape()), Parameter(g, "time", times.Shape())
		return []*Node{network.Apply(nn.Constants(g, f.Weights), x, t)}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	out, err := p.Run(image, times)
	if err != nil {
		t.Fatal(err)
	}
	flat, err := tensors.CopyFlatData[float32](out[0])
	if err != nil {
		t.Fatal(err)
	}
	return flat
}

func marshal(t *testing.T, m *onnx.Model) []byte {
	t.Helper()
	data, err := onnx.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func floats(t *testing.T, x []float32) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := binary.Write(&b, binary.LittleEndian, x); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
