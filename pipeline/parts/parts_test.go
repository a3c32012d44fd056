package parts

import (
	"encoding/json"
	"strings"
	"testing"

	"lacuna/pipeline/field"
	"lacuna/pipeline/samples"
)

func TestAScalingIsReadAsItWasWritten(t *testing.T) {
	grid := field.Grid{Lat: []float64{40, 41}, Lon: []float64{10, 11, 12}}
	tr := field.Transform{Log10: true, Floor: 0.001}
	data, err := json.Marshal(NewScaling(grid, tr, samples.Scaling{Mean: make([]float32, 6), Std: 0.5}))
	if err != nil {
		t.Fatal(err)
	}
	s, err := DecodeScaling(data)
	if err != nil || s.Samples().Std != 0.5 || !s.Fits(grid, tr) {
		t.Errorf("DecodeScaling() = %+v, %v", s, err)
	}
	if s.Fits(field.Grid{Lat: grid.Lat, Lon: []float64{10, 11, 12.5}}, tr) || s.Fits(grid, field.Transform{}) {
		t.Error("it fits another grid, or another transform")
	}
}

func TestAScalingThatDoesNotFitItselfIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{"lat":[1,2],"lon":[1],"std":1,"mean":[0]}`:                    "1 means for 2 x 1 cells",
		`{"lat":[1],"lon":[1],"std":0,"mean":[0]}`:                      "standard deviation 0",
		`{"lat":[1],"lon":[1],"std":1,"mean":[0],"query":[0.5,0.5]}`:    "P(query) of 2 cells",
		`{"lat":[1],"lon":[1],"std":1,"mean":[0],"query":[0.5],"std":"`: "unexpected end",
	} {
		if _, err := DecodeScaling([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestWithoutACalibrationNothingIsCalibrated(t *testing.T) {
	c, err := DecodeCalibration(nil)
	if err != nil || c.Factors != nil || c.Members != nil {
		t.Errorf("DecodeCalibration(nil) = %+v, %v", c, err)
	}
	if _, err := DecodeCalibration([]byte(`{"edges_cells":[2],"factors":[[1]]}`)); err == nil {
		t.Error("one factor for two classes of distance was taken")
	}
}
