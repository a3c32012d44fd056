package simulate

import (
	"bytes"
	"encoding/binary"
	"math"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"lacuna/internal/cdl"
)

func TestSixtyDaysHaveLateReplacedAndEmptyGranules(t *testing.T) {
	for seed := range uint64(5) {
		w := &World{cfg: Config{Seed: seed, Days: 60}.withDefaults(blackSeaChlorophyll()), recipe: blackSeaChlorophyll()}
		schedule := w.Schedule()
		firsts, lates, replacements, empties := 0, 0, 0, 0
		arrived := map[int]Delivery{}
		for k, d := range schedule {
			if k > 0 && d.At.Before(schedule[k-1].At) {
				t.Fatalf("seed %d: %v arrives after %v", seed, schedule[k-1], d)
			}
			delay := d.At.Sub(w.cfg.Start.AddDate(0, 0, d.Day+1))
			switch {
			case d.Revision == 2:
				replacements++
				if first, ok := arrived[d.Day]; !ok || first.Name != d.Name || first.Revision != 1 {
					t.Errorf("seed %d: %+v replaces %+v", seed, d, first)
				}
			case d.Late:
				lates++
				if delay < 24*time.Hour || delay > 4*24*time.Hour {
					t.Errorf("seed %d: late by %v", seed, delay)
				}
			case delay < 3*time.Hour || delay > 5*time.Hour:
				t.Errorf("seed %d: a punctual granule after %v", seed, delay)
			}
			if d.Revision == 1 {
				firsts++
			}
			if d.Empty {
				empties++
			}
			arrived[d.Day] = d
		}
		if firsts != 60 || len(arrived) != 60 || lates < 3 || replacements < 3 || empties != 2 {
			t.Errorf("seed %d: %d days, %d late, %d replaced, %d empty", seed, firsts, lates, replacements, empties)
		}
	}
}

func TestReplacementSeesMoreAndAgreesWhereBothSee(t *testing.T) {
	allProducts(t, func(t *testing.T, w *World) {
		first := map[int]Delivery{}
		pairs, more := 0, 0
		for _, d := range w.Schedule() {
			if d.Revision == 1 {
				first[d.Day] = d
				continue
			}
			if pairs++; pairs > 3 {
				continue
			}
			a, b := w.Granule(first[d.Day]), w.Granule(d)
			if a.Name != b.Name {
				t.Errorf("%s replaces %s", b.Name, a.Name)
			}
			if pairs == 1 && !same(b.Seen.Values, w.Day(d.Day).Seen.Values) {
				t.Errorf("day %d: the better version is not the best", d.Day)
			}
			seenA, _, _ := a.Seen.Coverage()
			seenB, _, _ := b.Seen.Coverage()
			if seenB > seenA {
				more++
			}
			for i, v := range a.Seen.Values {
				// Where a cell is seen better the noise shrinks, so only
				// chlorophyll, with one noise for all, agrees to the bit.
				if a.Seen.Observed(i) && (!b.Seen.Observed(i) || w.Product().Log && v != b.Seen.Values[i]) {
					t.Fatalf("day %d, cell %d: %g became %g", d.Day, i, v, b.Seen.Values[i])
				}
			}
		}
		// A day that is wholly overcast or whose first sensor saw all can tie.
		if pairs < 3 || more < 2 {
			t.Errorf("%d of 3 replacements see more, of %d", more, pairs)
		}
	})
}

func TestEmptyDeliveryHoldsNoObservation(t *testing.T) {
	allProducts(t, func(t *testing.T, w *World) {
		k := slices.IndexFunc(w.Schedule(), func(d Delivery) bool { return d.Empty })
		g := w.Granule(w.Schedule()[k])
		if seen, _, _ := g.Seen.Coverage(); seen != 0 {
			t.Errorf("%d cells seen", seen)
		}
		for i, v := range decode(t, g.File, w.Product().Variable) {
			if !math.IsNaN(v) {
				t.Fatalf("cell %d of the file holds %g", i, v)
			}
		}
	})
}

func TestNamesFollowTheProducers(t *testing.T) {
	want := map[string]string{
		"blk-chl":  "20240401_cmems_obs-oc_blk_bgc-plankton_my_l3-multi-1km_P1D.nc",
		"bal-nano": "20240401_cmems_obs-oc_bal_bgc-plankton_my_l3-multi-1km_P1D.nc",
		"med-sst":  "20240401000000-LACUNA-L3S_GHRSST-SSTsubskin-SIMULATED-MED-v02.0-fv01.0.nc",
		"smos-sss": "CATDS_CSF2QA_20240401T000000_20240401T235959_334_1.nc",
	}
	allProducts(t, func(t *testing.T, w *World) {
		if got := w.TruthGranule(0).Name; got != want[w.Product().Name] || path.Base(got) != got {
			t.Errorf("day 0 is named %s", got)
		}
	})
}

func TestFileHoldsTheObservations(t *testing.T) {
	allProducts(t, func(t *testing.T, w *World) {
		d := w.Schedule()[1]
		g := w.Granule(d)
		stored := decode(t, g.File, w.Product().Variable)
		observed := 0
		for i, v := range g.Seen.Values {
			// 0.006 is half a step of the coarsest packing.
			if g.Seen.Observed(i) {
				observed++
				if math.Abs(stored[i]-float64(v)) > 0.006 {
					t.Fatalf("cell %d: file has %g, seen %g", i, stored[i], v)
				}
			}
			if !w.Sea()[i] && !math.IsNaN(stored[i]) {
				t.Fatalf("cell %d: file has %g on land", i, stored[i])
			}
		}
		if observed == 0 {
			t.Error("no cell was observed, so the test proves nothing")
		}
	})
}

func TestTruthGranuleIsTheTruth(t *testing.T) {
	allProducts(t, func(t *testing.T, w *World) {
		g, truth := w.TruthGranule(4), w.Day(4).Truth
		if !same(g.Seen.Values, truth.Values) || !g.Seen.Time.Equal(truth.Time) {
			t.Error("not the truth of the day")
		}
		for i, v := range decode(t, g.File, w.Product().Variable) {
			if math.IsNaN(v) == w.Sea()[i] || w.Sea()[i] && math.Abs(v-float64(truth.Values[i])) > 0.006 {
				t.Fatalf("cell %d: file has %g, truth %g", i, v, truth.Values[i])
			}
		}
	})
}

func TestFilesAreConsistent(t *testing.T) {
	sizes := map[string]int{"byte": 1, "short": 2, "int": 4, "float": 4}
	allProducts(t, func(t *testing.T, w *World) {
		f := w.Granule(w.Schedule()[0]).File
		dims := map[string]int{}
		for _, d := range f.Dims {
			dims[d.Name] = d.Len
		}
		if dims["lat"] != 60 || dims["lon"] != 84 || dims["time"] != 1 {
			t.Errorf("dimensions %v", dims)
		}
		for _, v := range f.Vars {
			n := sizes[v.Type]
			for _, d := range v.Dims {
				n *= dims[d]
			}
			if n == 0 || len(v.Raw) != n {
				t.Errorf("%s has %d bytes, want %d", v.Name, len(v.Raw), n)
			}
			if slices.Contains([]string{"lat", "lon", "time"}, v.Name) && attr(v.Attrs, "_FillValue") != nil {
				t.Errorf("coordinate %s has a _FillValue", v.Name)
			}
			checkFill(t, v)
		}
		if s, _ := attr(f.Attrs, "comment").(string); !strings.Contains(s, "Simulated") {
			t.Error("the file does not say that it is simulated")
		}
		if attr(f.Attrs, "title") != w.Product().Dataset {
			t.Errorf("title %v", attr(f.Attrs, "title"))
		}
	})
}

// checkFill demands that attributes in packed space have the variable's type,
// as CF does.
func checkFill(t *testing.T, v cdl.Var) {
	t.Helper()
	for _, name := range []string{"_FillValue", "missing_value", "valid_min", "valid_max", "flag_values"} {
		a := attr(v.Attrs, name)
		if a == nil {
			continue
		}
		ok := false
		switch a.(type) {
		case []int8:
			ok = v.Type == "byte"
		case []int16:
			ok = v.Type == "short"
		case []int32:
			ok = v.Type == "int"
		case []float32:
			ok = v.Type == "float"
		}
		if !ok {
			t.Errorf("%s of %s is a %T, the variable a %s", name, v.Name, a, v.Type)
		}
	}
}

func TestTimeInTheFileIsThatOfTheField(t *testing.T) {
	allProducts(t, func(t *testing.T, w *World) {
		g := w.TruthGranule(2)
		var seconds int32
		for _, v := range g.File.Vars {
			if v.Name == "time" {
				binary.Read(bytes.NewReader(v.Raw), binary.LittleEndian, &seconds)
			}
		}
		got := time.Date(1981, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(seconds) * time.Second)
		if !got.Equal(g.Seen.Time) || got.Format(time.DateOnly) != "2024-04-03" {
			t.Errorf("file says %v, field %v", got, g.Seen.Time)
		}
	})
}

func attr(attrs []cdl.Attr, name string) any {
	for _, a := range attrs {
		if a.Name == name {
			return a.Value
		}
	}
	return nil
}

// decode undoes packing and fill as a CF reader would.
func decode(t *testing.T, f cdl.File, name string) []float64 {
	t.Helper()
	k := slices.IndexFunc(f.Vars, func(v cdl.Var) bool { return v.Name == name })
	if k < 0 {
		t.Fatalf("no variable %s", name)
	}
	v := f.Vars[k]
	var out []float64
	switch fill := attr(v.Attrs, "_FillValue").(type) {
	case []float32:
		for b := v.Raw; len(b) > 0; b = b[4:] {
			x := math.Float32frombits(binary.LittleEndian.Uint32(b))
			out = append(out, float64(x))
			if x == fill[0] {
				out[len(out)-1] = math.NaN()
			}
		}
	case []int16:
		scale := float64(attr(v.Attrs, "scale_factor").([]float32)[0])
		offset := float64(attr(v.Attrs, "add_offset").([]float32)[0])
		for b := v.Raw; len(b) > 0; b = b[2:] {
			x := int16(binary.LittleEndian.Uint16(b))
			out = append(out, float64(x)*scale+offset)
			if x == fill[0] {
				out[len(out)-1] = math.NaN()
			}
		}
	default:
		t.Fatalf("%s has fill %v", name, fill)
	}
	return out
}
