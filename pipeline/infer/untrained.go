package infer

import (
	"encoding/json"
	"fmt"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/nn/netfile"
	"lacuna/pipeline/noise"
)

// UntrainedDesign returns a design as trained networks have it, for Untrained.
func UntrainedDesign(size string) impute.Design {
	return impute.Design{
		Backbone: nn.BackboneUNet, Size: size, Variance: true, Departure: true,
		Extras: impute.Extras{Last: true, Next: true, Analysis: true},
	}
}

// Untrained returns a version of random weights with members, for measuring
// speed: it costs as much as a trained one and predicts noise.
func Untrained(d impute.Design, seed uint64) (Version, error) {
	v := Version{Name: fmt.Sprintf("untrained %s %s", d.Size, d.Backbone)}
	out := 1
	if d.Variance {
		out = 2
	}
	var err error
	v.Imputer, err = randomNetwork(nn.Config{Backbone: d.Backbone, Size: d.Size, In: d.Planes(), Out: out}, seed, "imputer", d)
	if err != nil {
		return v, err
	}
	imputer, err := impute.Load(v.Imputer, nil) // inspected, never run
	if err != nil {
		return v, err
	}
	own := d
	own.Variance = false
	pair := struct {
		Design  impute.Design `json:"design"`
		Imputer string        `json:"imputer"`
	}{own, imputer.Fingerprint()}
	v.Members, err = randomNetwork(nn.Config{Backbone: d.Backbone, Size: d.Size, In: d.Planes() + memberPlanes, Out: 1}, seed+1, "members", pair)
	return v, err
}

// untrainedSide is the size of windows that a trained version sees by default, in
// cells.
const untrainedSide = 64

// randomNetwork returns the file of a network without zero layers: fresh
// weights leave many at zero.
func randomNetwork(cfg nn.Config, seed uint64, kind string, design any) ([]byte, error) {
	network, err := nn.New(cfg)
	if err != nil {
		return nil, err
	}
	weights := network.Layout().Init(seed)
	shake := make([]float32, len(weights))
	noise.New(seed, "untrained").Normals(shake, 0)
	for i := range weights {
		weights[i] += 0.1 * shake[i]
	}
	training := struct {
		Side int `json:"side"`
	}{untrainedSide}
	meta := map[string]string{"kind": kind}
	for key, v := range map[string]any{"design": design, "training": training} {
		text, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		meta[key] = string(text)
	}
	file := netfile.File{Config: cfg, Weights: weights, Metadata: meta}
	if cfg.Backbone == nn.BackboneViT {
		file.Height, file.Width = untrainedSide, untrainedSide
	}
	return netfile.Encode(file)
}

// memberPlanes is the number of input planes of members beyond those of the
// imputer: its mean, its sigma, the residual and the mask of the residual.
const memberPlanes = 4
