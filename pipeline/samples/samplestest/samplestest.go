// Package samplestest makes days of a small cloudy sea for tests of training.
package samplestest

import (
	"testing"
	"time"

	"lacuna/pipeline/field"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/samples"
)

// Cloudy returns n patches of side cells with land in the first column and
// smooth gaps.
func Cloudy(n, side int) []samples.Patch {
	out := make([]samples.Patch, n)
	for i := range out {
		p := samples.Patch{
			Ref:    samples.Ref{Day: i, Window: samples.Square(0, 0, side)},
			Time:   time.Date(2021, 3, 1+i, 12, 0, 0, 0, time.UTC),
			Values: noise.SmoothField(side, side, 6, noise.New(2, "values").Sub(uint64(i))),
			Sea:    make([]bool, side*side),
		}
		cloud := noise.SmoothField(side, side, 5, noise.New(2, "clouds").Sub(uint64(i)))
		for c := range p.Values {
			p.Sea[c] = c%side > 0
			if !p.Sea[c] || cloud[c] > 0.3 {
				p.Values[c] = field.NaN()
			}
		}
		out[i] = p
	}
	return out
}

// Archive returns days of a small sea with cloud-like gaps, split in time.
func Archive(t testing.TB, days, side int) (samples.Series, samples.Train, samples.HeldOut) {
	t.Helper()
	grid := field.Grid{Lat: make([]float64, side), Lon: make([]float64, side)}
	for i := range side {
		grid.Lat[i], grid.Lon[i] = 40+0.05*float64(i), 10+0.05*float64(i)
	}
	sea := make(field.Mask, side*side)
	fields := make([]field.Field, days)
	for d, p := range Cloudy(days, side) {
		copy(sea, p.Sea)
		fields[d] = field.Field{Grid: grid, Time: time.Date(2021, 1, 1+d, 12, 0, 0, 0, time.UTC), Values: p.Values}
	}
	series, err := samples.New(fields, sea, field.Transform{})
	if err != nil {
		t.Fatal(err)
	}
	train, held, err := series.Split(samples.SplitConfig{HeldOut: 0.3, GapDays: 2, Blocks: 1})
	if err != nil {
		t.Fatal(err)
	}
	return series, train, held
}

// CutAll returns the patches of refs.
func CutAll(train samples.Train, refs []samples.Ref) []samples.Patch {
	out := make([]samples.Patch, len(refs))
	for i, r := range refs {
		out[i] = train.Cut(r)
	}
	return out
}
