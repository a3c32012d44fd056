// Package netfile writes a network as an ONNX file and reads it back.
//
// The file is a model like any other: standard operators, inputs "image"
// [batch, in, height, width] and "time" [batch], output "answer" [batch, out,
// height, width], weights as initializers under the names of their layout. Any
// program that opens ONNX files can run it. The configuration of the network is
// in the metadata, so the weights can be read for further training, for another
// window size or for another engine.
//
// A file is checked when it is read: weights that are missing or of another
// shape are an error that names the first one.
//
// Package netfile works on bytes. It knows nothing of model stores, of files on
// disk or of the purpose of a network.
package netfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gomlx/gomlx/pkg/core/graph"

	"lacuna/pipeline/engine/ort"
	"lacuna/pipeline/engine/ort/onnx"
	"lacuna/pipeline/nn"
)

// networkKey is the metadata entry that holds the nn.Config as JSON.
const networkKey = "lacuna.network"

// File is a network with its weights.
type File struct {
	Config  nn.Config
	Weights []float32 // in the order of the network's layout

	// Height and Width are the sizes of image that the file takes; 0: any that
	// the network takes. The ViT, whose places are constants, needs both. They
	// are not read back: the weights serve any size.
	Height, Width int

	Metadata map[string]string // metadata of the caller; keys must not begin with "lacuna."
}

// Encode returns the ONNX file of f.
func Encode(f File) ([]byte, error) {
	network, err := nn.New(f.Config)
	if err != nil {
		return nil, fmt.Errorf("write network: %w", err)
	}
	layout := network.Layout()
	if len(f.Weights) != layout.Size {
		return nil, fmt.Errorf("write network: there are %d weights, a %s %s needs %d", len(f.Weights), f.Config.Size, f.Config.Backbone, layout.Size)
	}
	dims, err := f.imageDims(network)
	if err != nil {
		return nil, fmt.Errorf("write network: %w", err)
	}
	metadata, err := f.metadata()
	if err != nil {
		return nil, fmt.Errorf("write network: %w", err)
	}
	weights := make(map[string][]float32, len(layout.Params))
	for _, p := range layout.Params {
		weights[p.Name] = f.Weights[p.Offset : p.Offset+p.Size()]
	}
	model, err := ort.Export(ort.Network{
		Name:    "lacuna " + f.Config.Backbone,
		Inputs:  []ort.Input{{Name: "image", Dims: dims}, {Name: "time", Dims: dims[:1]}},
		Outputs: []string{"answer"},
		Build: func(g *graph.Graph, in []*graph.Node) []*graph.Node {
			return []*graph.Node{network.Apply(nn.Parameters(g), in[0], in[1])}
		},
		Weights:  weights,
		Metadata: metadata,
	})
	if err != nil {
		return nil, err
	}
	data, err := onnx.Marshal(model)
	if err != nil {
		return nil, fmt.Errorf("write network: %w", err)
	}
	return data, nil
}

// imageDims returns the shape of the image that the file takes. The exporter
// compares graphs of several sizes to find the dimensions that vary, so the
// sizes must be valid and different, and large enough that an image is larger
// than a kernel at the lowest level too. They do not appear in the file.
func (f File) imageDims(network nn.Network) ([]ort.InputDim, error) {
	dims := []ort.InputDim{
		{Size: 5, Symbol: "batch"},
		{Size: f.Config.In},
		{Size: 4 * network.Multiple(), Symbol: "height"},
		{Size: 5 * network.Multiple(), Symbol: "width"},
	}
	if f.Config.Backbone == nn.BackboneViT && (f.Height == 0 || f.Width == 0) {
		return nil, errors.New("a vit is written for images of one size; set height and width")
	}
	for i, size := range []int{f.Height, f.Width} {
		if size < 0 || size%network.Multiple() != 0 {
			return nil, fmt.Errorf("a side of the image is %d pixels, must be a multiple of %d", size, network.Multiple())
		}
		if size > 0 {
			dims[2+i] = ort.InputDim{Size: size}
		}
	}
	return dims, nil
}

func (f File) metadata() (map[string]string, error) {
	metadata := map[string]string{}
	for key, value := range f.Metadata {
		if strings.HasPrefix(key, reserved) {
			return nil, fmt.Errorf("metadata key %q is reserved for Lacuna: choose another", key)
		}
		metadata[key] = value
	}
	config, err := json.Marshal(f.Config)
	if err != nil {
		return nil, err
	}
	metadata[networkKey] = string(config)
	return metadata, nil
}

// reserved is the prefix of the metadata keys of this package.
const reserved = "lacuna."

// Decode reads a file that Encode wrote.
func Decode(data []byte) (File, error) {
	model, err := onnx.Unmarshal(data)
	if err != nil {
		return File{}, fmt.Errorf("read network: %w", err)
	}
	text, ok := model.Metadata[networkKey]
	if !ok {
		return File{}, fmt.Errorf("read network: the file has no %s in its metadata; it was not written by Lacuna", networkKey)
	}
	f := File{Metadata: maps.Clone(model.Metadata)}
	delete(f.Metadata, networkKey)
	if err := json.Unmarshal([]byte(text), &f.Config); err != nil {
		return File{}, fmt.Errorf("read network: %s: %w", networkKey, err)
	}
	network, err := nn.New(f.Config)
	if err != nil {
		return File{}, fmt.Errorf("read network: %w", err)
	}
	if f.Weights, err = weights(model, network.Layout()); err != nil {
		return File{}, fmt.Errorf("read network: %w", err)
	}
	return f, nil
}

// weights collects the initializers that a layout names.
func weights(model *onnx.Model, layout *nn.Layout) ([]float32, error) {
	tensors := make(map[string]*onnx.Tensor, len(model.Graph.Initializers))
	for i := range model.Graph.Initializers {
		t := &model.Graph.Initializers[i]
		tensors[t.Name] = t
	}
	flat := make([]float32, layout.Size)
	for _, p := range layout.Params {
		t, ok := tensors[p.Name]
		if !ok {
			return nil, fmt.Errorf("weight %s %v is missing", p.Name, p.Dims)
		}
		dims := make([]int, len(t.Dims))
		for i, d := range t.Dims {
			dims[i] = int(d)
		}
		if !slices.Equal(dims, p.Dims) {
			return nil, fmt.Errorf("weight %s has shape %v, want %v", p.Name, dims, p.Dims)
		}
		values, err := t.Float32s()
		if err != nil {
			return nil, fmt.Errorf("weight %s: %w", p.Name, err)
		}
		copy(flat[p.Offset:], values)
	}
	return flat, nil
}
