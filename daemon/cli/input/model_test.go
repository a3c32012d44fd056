package input

import (
	"strings"
	"testing"

	"lacuna/pipeline/infer"
)

func TestFlagsOfTheModelSayTheMethod(t *testing.T) {
	tests := []struct {
		model Model
		cfg   infer.Network
		want  string
		wrong string // part of the message; empty: valid
	}{
		{model: Model{}, want: infer.MethodAuto},
		{model: Model{name: "oi"}, want: "oi"},
		{model: Model{name: "oi", store: "models"}, want: "oi"},
		{model: Model{store: "models"}, want: infer.MethodModel},
		{model: Model{name: "champion", store: "models"}, want: infer.MethodModel},
		{model: Model{name: "imputer.onnx"}, want: infer.MethodModel},
		{model: Model{name: "v7"}, want: infer.MethodModel, wrong: "there is no --store DIR"},
		{model: Model{name: "oi", MembersFile: true}, cfg: infer.Network{Members: 4, Seed: 2}, want: "oi"},
		{model: Model{name: "oi", MembersFile: true}, cfg: infer.Network{Tier: infer.Full}, want: "oi", wrong: "are for models"},
		{model: Model{name: "climatology"}, cfg: infer.Network{Members: 4}, want: "climatology", wrong: "are for models"},
	}
	for _, tt := range tests {
		if got := tt.model.Method(); got != tt.want {
			t.Errorf("%+v is the method %q, want %q", tt.model, got, tt.want)
		}
		err := tt.model.Validate(infer.Config{Network: tt.cfg})
		if (err == nil) != (tt.wrong == "") || err != nil && !strings.Contains(err.Error(), tt.wrong) {
			t.Errorf("%+v: %v, want %q", tt.model, err, tt.wrong)
		}
	}
}
