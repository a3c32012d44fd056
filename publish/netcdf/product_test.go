package netcdf

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lacuna/internal/cdl"
	"lacuna/internal/golden"
)

func TestProductIsTheGoldenOne(t *testing.T) {
	for name, make := range map[string]func() Product{"packed_sst": ghrsst, "log_chlorophyll": blackSea, "salinity_without_time": smap} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), name+".nc")
			if err := WriteProduct(path, make()); err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, name+".cdl", ncdump(t, path))
		})
	}
}

func TestObservedPixelsAreBitIdenticalInEveryType(t *testing.T) {
	tests := []struct {
		typ   string
		attrs []Attr
	}{
		{"float", []Attr{{Name: "_FillValue", Value: []float32{-999}}}},
		{"float", []Attr{{Name: "_FillValue", Value: []float32{float32(math.NaN())}}}},
		{"double", []Attr{{Name: "_FillValue", Value: []float64{-999}}}},
		{"short", []Attr{{Name: "_FillValue", Value: []int16{-32767}}, {Name: "scale_factor", Value: []float64{0.001}}, {Name: "add_offset", Value: []float64{20}}}},
		{"byte", []Attr{{Name: "_FillValue", Value: []int8{-128}}, {Name: "scale_factor", Value: []float32{0.25}}, {Name: "add_offset", Value: []float32{20}}}},
		{"ubyte", []Attr{{Name: "scale_factor", Value: []float32{0.125}}, {Name: "add_offset", Value: []float32{14}}}},
		{"int", []Attr{{Name: "missing_value", Value: []int32{-1}}, {Name: "scale_factor", Value: []float64{1e-6}}}},
	}
	for _, tt := range tests {
		t.Run(tt.typ, func(t *testing.T) {
			p := gulfOfMaine()
			v := &p.Source.Vars[3]
			v.Type, v.Attrs = tt.typ, tt.attrs
			p = fill(p, func(i int) float64 { return 15 + 0.1234567*float64(i) })
			in := v.Raw
			path := filepath.Join(t.TempDir(), "p.nc")
			if err := WriteProduct(path, p); err != nil {
				t.Fatal(err)
			}
			out := readBack(t, path)["SST"]
			size, observed, filled := cdl.SizeOf(tt.typ), 0, 0
			for i, flag := range p.Flags {
				same := bytes.Equal(in[i*size:(i+1)*size], out[i*size:(i+1)*size])
				switch {
				case flag == 0 && !same:
					t.Errorf("observed cell %d has changed", i)
				case flag == 0:
					observed++
				case flag == Interpolated && !same:
					filled++
				}
			}
			if observed < 15 || filled < 5 {
				t.Errorf("%d observed and %d filled cells: the test says little", observed, filled)
			}
		})
	}
}

// The promises of the format, checked through another reader.
func TestEveryPixelIsWhatItsFlagSays(t *testing.T) {
	for name, make := range fixtures {
		t.Run(name, func(t *testing.T) {
			p := make()
			f := mustFile(t, p)
			path := filepath.Join(t.TempDir(), "p.nc")
			if err := Write(path, f); err != nil {
				t.Fatal(err)
			}
			got := readBack(t, path)
			if !bytes.Equal(got["flags"], p.Flags) {
				t.Error("flags have changed")
			}
			v, _ := f.variable(p.Variable)
			pack, _, err := newPacking(v, nil)
			if err != nil {
				t.Fatal(err)
			}
			companions := []string{p.Variable + "_uncertainty"}
			if p.Space == Log10 {
				companions = append(companions, p.Variable+"_lower", p.Variable+"_upper")
			}
			for i, flag := range p.Flags {
				cell := got[p.Variable][i*pack.size : (i+1)*pack.size]
				empty := flag&(Land|NotReconstructible) != 0
				if empty != bytes.Equal(cell, pack.fill) {
					t.Errorf("cell %d with flags %#x holds %x, the fill value is %x", i, flag, cell, pack.fill)
				}
				if x := number(cell, pack.typ)*pack.scale + pack.offset; flag&Interpolated != 0 && math.Abs(x-float64(p.Value[i])) > pack.scale/2+1e-6 {
					t.Errorf("cell %d was filled with %v, want %v", i, x, p.Value[i])
				}
				for _, c := range companions {
					if x := float32At(got[c], i); empty != (x == companionFill) || !isFinite(x) {
						t.Errorf("%s of cell %d with flags %#x is %v", c, i, flag, x)
					}
				}
			}
		})
	}
}

// A pixel that nobody ever saw is filled or left like any other, and flagged.
func TestAPixelThatWasNeverObservedKeepsItsValueAndItsFlag(t *testing.T) {
	p := blackSea()
	filled, left := bytes.IndexByte(p.Flags, Interpolated), bytes.IndexByte(p.Flags, NotReconstructible)
	before := readProduct(t, p)
	p.Flags[filled] |= NeverObserved
	p.Flags[left] |= NeverObserved
	after := readProduct(t, p)
	if !bytes.Equal(before[p.Variable], after[p.Variable]) || !bytes.Equal(before[p.Variable+"_uncertainty"], after[p.Variable+"_uncertainty"]) {
		t.Error("the flag changes values")
	}
	if !bytes.Equal(after["flags"], p.Flags) {
		t.Error("the flags of the file are others")
	}
	p.Flags[bytes.IndexByte(p.Flags, 0)] = NeverObserved // observed, and never observed
	if err := p.validate(); err == nil {
		t.Error("an observed pixel may be one that was never observed")
	}
}

func readProduct(t *testing.T, p Product) map[string][]byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "p.nc")
	if err := WriteProduct(path, p); err != nil {
		t.Fatal(err)
	}
	return readBack(t, path)
}

func TestCoordinatesAreByteIdentical(t *testing.T) {
	for name, make := range fixtures {
		t.Run(name, func(t *testing.T) {
			p := make()
			path := filepath.Join(t.TempDir(), "p.nc")
			if err := WriteProduct(path, p); err != nil {
				t.Fatal(err)
			}
			got := readBack(t, path)
			for _, v := range p.Source.Vars {
				if v.Name != p.Variable && !bytes.Equal(got[v.Name], v.Raw) {
					t.Errorf("%s has changed", v.Name)
				}
			}
		})
	}
}

func TestFileLeavesTheProductAlone(t *testing.T) {
	p := alboran()
	var before []Var
	for _, v := range p.Source.Vars {
		v.Raw = bytes.Clone(v.Raw)
		v.Attrs = append([]Attr(nil), v.Attrs...)
		before = append(before, v)
	}
	mustFile(t, p)
	for i, v := range p.Source.Vars {
		if !bytes.Equal(v.Raw, before[i].Raw) || len(v.Attrs) != len(before[i].Attrs) {
			t.Errorf("%s was changed", v.Name)
		}
		for j, a := range v.Attrs {
			if a.Name != before[i].Attrs[j].Name {
				t.Errorf("attribute %s of %s was changed", a.Name, v.Name)
			}
		}
	}
}

// A consumer who asks for <VAR>_uncertainty must get that of the product.
func TestMapsOfTheInputArePassedOnUnderAnotherNameWhereTheirsIsTaken(t *testing.T) {
	p := smap()
	own := p.Source.Vars[2]
	own.Name, own.Attrs = "smap_sss_uncertainty", without(own.Attrs, "units")
	flags := Var{Name: "flags", Type: "byte", Dims: own.Dims, Raw: make([]byte, rows*cols)}
	count := Var{Name: "count", Type: "short", Dims: own.Dims, Raw: raw("short", make([]float64, rows*cols)...)}
	p.Source.Vars = append(p.Source.Vars, own, flags, count)
	f := mustFile(t, p)
	if v, _ := f.variable("smap_sss_uncertainty_input"); !bytes.Equal(v.Raw, own.Raw) || len(v.Dims) != 3 {
		t.Errorf("the uncertainty of the input runs along %v", v.Dims)
	} else if text(v.Attrs, "units") == "" {
		t.Error("the uncertainty of the input has no units")
	}
	v, _ := f.variable("smap_sss")
	if got, want := text(v.Attrs, "ancillary_variables"), "smap_sss_uncertainty_input flags_input count smap_sss_uncertainty flags"; got != want {
		t.Errorf("ancillary_variables = %q, want %q", got, want)
	}
	if ours, ok := f.variable("flags"); !ok || !bytes.Equal(ours.Raw, p.Flags) {
		t.Error("no flags of the product")
	}
}

func TestAProductThatBreaksAPromiseIsRefused(t *testing.T) {
	first := func(p Product, flag byte) int { return bytes.IndexByte(p.Flags, flag) }
	tests := []struct {
		name string
		edit func(*Product)
		want string // part of the message
	}{
		{"filled with NaN", func(p *Product) { p.Value[first(*p, Interpolated)] = float32(math.NaN()) }, "filled with NaN"},
		{"filled with infinity", func(p *Product) { p.Value[first(*p, Interpolated)] = float32(math.Inf(1)) }, "filled with +Inf"},
		{"no uncertainty", func(p *Product) { p.Sigma[first(*p, Interpolated)] = float32(math.NaN()) }, "uncertainty NaN"},
		{"negative uncertainty", func(p *Product) { p.Sigma[first(*p, Interpolated)] = -1 }, "uncertainty -1"},
		{"quantiles crossed", func(p *Product) { p.Lower, p.Upper = p.Upper, p.Lower }, "quantiles"},
		{"quantiles missing", func(p *Product) { p.Lower = nil }, "lower has 0 cells"},
		{"land filled", func(p *Product) { p.Flags[first(*p, Land)] |= Interpolated }, "land"},
		{"rejected, not replaced", func(p *Product) { p.Flags[first(*p, 0)] = Rejected }, "rejected"},
		{"unknown flag", func(p *Product) { p.Flags[0] = 64 }, "unknown bits"},
		{"error of an observation that is none", func(p *Product) { p.Flags[first(*p, Interpolated)] |= OwnError }, "observation that is not there"},
		{"own error that is none", func(p *Product) {
			i := first(*p, 0)
			p.Flags[i], p.Sigma[i] = OwnError, float32(math.NaN())
		}, "uncertainty NaN"},
		{"negative uncertainty of an observation", func(p *Product) { p.Sigma[first(*p, 0)] = -1 }, "observed with the uncertainty -1"},
		{"bounds of other times", func(p *Product) { p.Bounds = make([][2]time.Time, 2) }, "2 bounds for 1 times"},
		{"bounds the wrong way round", func(p *Product) { p.Bounds = [][2]time.Time{{p.Times[0], p.Times[0]}} }, "end must come after"},
		{"windows of other times", func(p *Product) { p.Windows = make([]Window, 2) }, "2 windows for 1 times"},
		{"window without its own field", func(p *Product) {
			p.Windows = []Window{{p.Times[0].AddDate(0, 0, -3), p.Times[0].AddDate(0, 0, -1)}}
		}, "does not hold its own field"},
		{"mode that the windows contradict", func(p *Product) { p.Windows = []Window{{p.Times[0], p.Times[0].AddDate(0, 0, 1)}} }, `the windows say "delayed"`},
		{"gap without flag", func(p *Product) { p.Flags[first(*p, NotReconstructible)] = 0 }, "gap without a flag"},
		{"flags too short", func(p *Product) { p.Flags = p.Flags[1:] }, "flags has"},
		{"no such variable", func(p *Product) { p.Variable = "NANO" }, "no variable"},
		{"no creation time", func(p *Product) { p.Created = time.Time{} }, "time of creation"},
		{"no inputs", func(p *Product) { p.Inputs = nil }, "traceable"},
		{"input without hash", func(p *Product) { p.Inputs[0].SHA256 = "12" }, "sha256"},
		{"too many times", func(p *Product) { p.Times = append(p.Times, p.Times[0]) }, "2 times"},
		{"unknown space", func(p *Product) { p.Space = "ln" }, "space"},
		{"unknown mode", func(p *Product) { p.Mode = "" }, "mode"},
		{"blank in dataset", func(p *Product) { p.Dataset = "a b" }, "dataset"},
		{"no latitude", func(p *Product) { p.Source.Vars[1].Name, p.Source.Vars[1].Attrs = "q", nil }, "latitude"},
		{"data too short", func(p *Product) { p.Source.Vars[3].Raw = p.Source.Vars[3].Raw[4:] }, "bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := blackSea()
			tt.edit(&p)
			path := filepath.Join(t.TempDir(), "p.nc")
			err := WriteProduct(path, p)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("WriteProduct() = %v, want a message with %q", err, tt.want)
			}
			if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a refused product was written: %v", err)
			}
		})
	}
}
