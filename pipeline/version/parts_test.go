package version

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
)

// A checkpoint folder is named after the fingerprint: were that another one, a
// training that an earlier program began would start again from nothing.
func TestTheFingerprintOfAVersionStaysWhatItWas(t *testing.T) {
	parts := Parts{
		PartScaling: []byte("s"), PartReliability: []byte("r"), PartPrior: []byte("p"), PartMembers: []byte("m"),
		PartImputer: []byte("ii"), PartEvaluation: []byte("e"), PartCalibration: []byte("c"),
	}
	sum := sha256.Sum256([]byte("calibration.json 1\nc" + "evaluation.json 1\ne" + "imputer.onnx 2\nii" + "members.onnx 1\nm" +
		"prior.onnx 1\np" + "reliability.onnx 1\nr" + "scaling.json 1\ns"))
	if got, want := parts.fingerprint(), hex.EncodeToString(sum[:]); got != want {
		t.Errorf("fingerprint %s, want %s", got, want)
	}
}
