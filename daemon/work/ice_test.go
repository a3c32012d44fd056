package work

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/feed"
	"lacuna/daemon/fill"
	"lacuna/daemon/state"
	"lacuna/internal/cdl"
	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/quality"
	"lacuna/pipeline/simulate"
	"lacuna/publish/netcdf"
)

// icyDays writes days of a simulated sea whose granules have a share of ice in
// percent: 40 in the rows of the north, 10 in those below, and nothing elsewhere.
// They are read with ice settings.
func icyDays(t *testing.T, w *Worker, ice quality.Ice, n int) (*simulate.World, []ingest.Granule, field.Mask) {
	t.Helper()
	world, err := simulate.New(simulate.Config{Product: "blk-chl", Height: 40, Width: 60, Days: 40, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	grid := world.Grid()
	icy, shares := make(field.Mask, grid.Len()), make([]byte, grid.Len())
	for i := range icy {
		switch row := i / grid.Width(); {
		case grid.Lat[row] > 43:
			icy[i], shares[i] = true, 40
		case grid.Lat[row] > 42.5:
			shares[i] = 10
		default:
			shares[i] = 255
		}
	}
	var days []ingest.Granule
	for _, d := range world.Schedule() {
		made := world.Granule(d)
		if d.Revision > 1 || made.Seen.ObservedMask().Count() == 0 || len(days) == n {
			continue
		}
		own := slices.IndexFunc(made.File.Vars, func(v cdl.Var) bool { return v.Name == world.Product().Variable })
		made.File.Vars = append(made.File.Vars, cdl.Var{
			Name: "ice", Type: "ubyte", Dims: made.File.Vars[own].Dims, Raw: shares,
			Attrs: []cdl.Attr{{Name: "standard_name", Value: "sea_ice_area_fraction"}, {Name: "units", Value: "%"}, {Name: "_FillValue", Value: []uint8{255}}},
		})
		path := filepath.Join(t.TempDir(), made.Name)
		if err := feed.Write(path, made); err != nil {
			t.Fatal(err)
		}
		g, err := w.Reader.Read(t.Context(), path, fill.Reading(ingest.Options{}, ice))
		if err != nil {
			t.Fatal(err)
		}
		days = append(days, g)
	}
	slices.SortFunc(days, func(a, b ingest.Granule) int { return a.Fields[0].Time.Compare(b.Fields[0].Time) })
	return world, days, icy
}

// icyOutcome fills the last of some days with ice settings, after change has had
// its way with them.
func icyOutcome(t *testing.T, ice quality.Ice, change func(days []ingest.Granule, icy field.Mask)) (fill.Outcome, ingest.Granule, field.Mask, field.Mask) {
	t.Helper()
	w := newTestWorker(t)
	w.set.Fill.Method, w.cfg.State = "oi", state.Dir(t.TempDir())
	w.set.Fill.OI = infer.OI{LengthKM: 50, Days: 5, Nugget: 0.1}
	w.screen.Ice = ice
	world, days, icy := icyDays(t, w, ice, 8)
	if change != nil {
		change(days, icy)
	}
	last := len(days) - 1
	s := scene{granule: days[last], history: days[:last], sea: world.Sea()}
	if err := w.screened(t.Context(), &s); err != nil {
		t.Fatal(err)
	}
	outcome, _, err := w.analyse(t.Context(), fill.Job{
		Dataset: "sea", Granule: s.granule, History: s.history, Sea: s.sea, Fill: w.set.Fill, Screened: s.screened, Revision: 1, Created: time.Unix(0, 0),
	})
	if err != nil {
		t.Fatal(err)
	}
	return outcome, days[last], icy, world.Sea()
}

func TestSeaUnderIceIsFlaggedAndHasNoValue(t *testing.T) {
	ice := quality.DefaultIce()
	ice.From = quality.OfGranule
	outcome, g, icy, sea := icyOutcome(t, ice, nil)
	a, taken := outcome.Analyses[0], 0
	for i, flags := range a.Flags {
		switch {
		case !sea[i] && !g.Fields[0].Observed(i):
			if flags != infer.Land {
				t.Fatalf("land has the flags %b", flags)
			}
		case icy[i]:
			if outcome.Product.IcePercent[i] != 40 {
				t.Fatalf("the product has %d %% of ice in a cell with 40", outcome.Product.IcePercent[i])
			}
			if flags&(infer.SeaIce|infer.NotReconstructible) != infer.SeaIce|infer.NotReconstructible || !math.IsNaN(float64(a.Value[i])) {
				t.Fatalf("a cell under ice has the flags %b and the value %g", flags, a.Value[i])
			}
			if g.Fields[0].Observed(i) {
				taken++
			}
		case flags&infer.SeaIce != 0 || math.IsNaN(float64(a.Value[i])):
			t.Fatalf("open water has the flags %b and the value %g", flags, a.Value[i])
		}
	}
	if want := []netcdf.Refusal{{Test: "ice", Pixels: taken}}; taken == 0 || !slices.Equal(outcome.Product.Refused, want) {
		t.Errorf("the product tells of %v, want %v", outcome.Product.Refused, want)
	}
	if last := len(icy) - 1; !slices.Contains(outcome.Product.IcePercent, 10) || !slices.Contains(outcome.Product.IcePercent, netcdf.NoIce) || len(outcome.Product.IcePercent) != last+1 {
		t.Error("the product does not have the shares of ice of the granule")
	}
	if outcome.After != 1 {
		t.Errorf("%g of the open water has a value: ice counts as sea that is not filled", outcome.After)
	}
	file := filepath.Join(t.TempDir(), "product.nc")
	if err := netcdf.WriteProduct(file, outcome.Product); err != nil {
		t.Error(err)
	}
	// Values under ice reach nothing, whatever they are, on any day.
	other, _, _, _ := icyOutcome(t, ice, func(days []ingest.Granule, icy field.Mask) {
		for _, g := range days {
			for i := range icy {
				if icy[i] {
					g.Fields[0].Values[i] *= 1000
				}
			}
		}
	})
	if !slices.EqualFunc(other.Analyses[0].Value, a.Value, sameFloat) || !slices.EqualFunc(other.Analyses[0].Sigma, a.Sigma, sameFloat) {
		t.Error("a value under ice changes the analysis")
	}
}

func TestIceThatIsFilledIsOnlyFlagged(t *testing.T) {
	ice := quality.DefaultIce()
	plain, g, icy, _ := icyOutcome(t, ice, nil)
	ice.From, ice.Fill = quality.OfGranule, true
	outcome, _, _, _ := icyOutcome(t, ice, nil)
	if !slices.EqualFunc(outcome.Analyses[0].Value, plain.Analyses[0].Value, sameFloat) {
		t.Error("ice that is filled changes values")
	}
	for i, flags := range outcome.Analyses[0].Flags {
		if (flags&infer.SeaIce != 0) != (icy[i] && flags&infer.Land == 0) || flags&^infer.SeaIce != plain.Analyses[0].Flags[i] {
			t.Fatalf("flags are %b, without ice %b", flags, plain.Analyses[0].Flags[i])
		}
	}
	if plain.Product.SeaIce != "" || plain.Product.Refused != nil {
		t.Error("a product tells of ice that was not looked for")
	}
	if err := netcdf.WriteProduct(filepath.Join(t.TempDir(), g.Name), outcome.Product); err != nil {
		t.Error(err)
	}
}

// The maps of a file on another grid: the granule before has ice, those of a week
// ago say nothing.
func TestIceOfAFileIsThatOfTheDay(t *testing.T) {
	w := newTestWorker(t)
	_, days := someDays(t, w, 2)
	grid, at := days[0].Fields[0].Grid, days[1].Fields[0].Time
	coarse := func(axis []float64) (out []float64) {
		for i := 0; i < len(axis); i += 2 {
			out = append(out, axis[i])
		}
		return out
	}
	lat, lon := coarse(grid.Lat), coarse(grid.Lon)
	write := func(ages ...time.Duration) string {
		file := cdl.File{Dims: []cdl.Dim{{Name: "time", Len: len(ages)}, {Name: "lat", Len: len(lat)}, {Name: "lon", Len: len(lon)}}}
		doubles := func(values []float64) (raw []byte) {
			for _, v := range values {
				raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(v))
			}
			return raw
		}
		var times, shares []float64
		for n, age := range ages {
			times = append(times, at.Add(-age).Sub(time.Unix(0, 0)).Hours())
			shares = append(shares, slices.Repeat([]float64{float64(n) / 10}, len(lat)*len(lon))...)
		}
		text := func(units, name string) []cdl.Attr {
			return []cdl.Attr{{Name: "units", Value: units}, {Name: "standard_name", Value: name}}
		}
		file.Vars = []cdl.Var{
			{Name: "time", Type: "double", Dims: []string{"time"}, Raw: doubles(times), Attrs: text("hours since 1970-01-01", "time")},
			{Name: "lat", Type: "double", Dims: []string{"lat"}, Raw: doubles(lat), Attrs: text("degrees_north", "latitude")},
			{Name: "lon", Type: "double", Dims: []string{"lon"}, Raw: doubles(lon), Attrs: text("degrees_east", "longitude")},
			{Name: "conc", Type: "double", Dims: []string{"time", "lat", "lon"}, Raw: doubles(shares), Attrs: text("1", "sea_ice_area_fraction")},
		}
		path := filepath.Join(t.TempDir(), "ice.nc")
		if err := feed.Write(path, simulate.Granule{Name: "ice.nc", File: file}); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const day = 24 * time.Hour
	for _, tt := range []struct {
		name  string
		ages  []time.Duration
		known bool
		ice   bool
	}{
		{"of the day before", []time.Duration{8 * day, 7 * day, day}, true, true},
		{"of days too old", []time.Duration{9 * day, 8 * day, 7 * day}, false, false},
		{"of the open sea of the day", []time.Duration{0, day, 2 * day}, true, false},
		{"one map for all days", []time.Duration{90 * day}, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			screen := fill.Screening{Ice: quality.Ice{From: write(tt.ages...), Above: 0.2}, Reader: w.Reader}
			got, _, found, err := screen.Granule(t.Context(), days[1], days[:1], nil)
			if err != nil {
				t.Fatal(err)
			}
			if (found.Ice != nil) != tt.known {
				t.Fatalf("ice is known: %v", found.Ice != nil)
			}
			if tt.known && (found.Ice[0].Count() == grid.Len()) != tt.ice {
				t.Errorf("%d cells of %d are under ice", found.Ice[0].Count(), grid.Len())
			}
			if got.Empty() != tt.ice || days[1].Empty() {
				t.Error("what is under ice is still observed, or the caller's granule was changed")
			}
		})
	}
	screen := fill.Screening{Ice: quality.Ice{From: filepath.Join(t.TempDir(), "none.nc"), Above: 0.2}, Reader: w.Reader}
	if _, _, _, err := screen.Granule(t.Context(), days[1], nil, nil); err == nil || !strings.Contains(err.Error(), "sea ice") || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}
