package version

import (
	"encoding/json"

	"lacuna/pipeline/parts"
	"lacuna/pipeline/samples"
)

// Part is one of the files that a version consists of. The store of versions
// chooses where it lies, and under which name.
type Part string

// The parts of a version.
const (
	PartPrior       Part = "prior"
	PartImputer     Part = "imputer"
	PartMembers     Part = "members"
	PartReliability Part = "reliability"
	PartCalibration Part = "calibration"
	PartScaling     Part = "scaling"
	PartEvaluation  Part = "evaluation"
)

// checkpoint is the name of the part in a checkpoint folder. Fingerprints of
// versions are made of it too, so that it must stay the same while folders of
// earlier programs are there.
func (p Part) checkpoint() string {
	switch p {
	case PartPrior, PartImputer, PartMembers, PartReliability:
		return string(p) + ".onnx"
	}
	return string(p) + ".json"
}

// Parts are the contents of a version. A version need not have all of them.
type Parts map[Part][]byte

// evaluation returns the evaluation of a version. One that cannot be read is
// ignored: it costs the next training a little time, and no more.
func (p Parts) evaluation() (e Evaluation, known bool) {
	err := json.Unmarshal(p[PartEvaluation], &e)
	return e, err == nil
}

// Box returns the place that a version is of; nil: it is of several, or does not
// say.
func (p Parts) Box() *samples.Box {
	s, err := parts.DecodeScaling(p[PartScaling])
	if err != nil || len(s.Lat) == 0 || len(s.Lon) == 0 {
		return nil
	}
	box := samples.BoxOf(s.Grid())
	return &box
}

// scalingOf returns the scaling of the training days, nil where they are of
// several places.
func scalingOf(data samples.Train) *parts.Scaling {
	if len(data.Places()) > 1 {
		return nil
	}
	s := parts.NewScaling(data.Grid(), data.Transform(), data.Scaling())
	return &s
}
