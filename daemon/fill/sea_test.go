package fill

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
)

// superior is a grid on Lake Superior, where an ellipse is water; the built-in
// mask calls all of it land.
func superior() (field.Grid, field.Mask) {
	grid := field.Grid{}
	for i := range 20 {
		grid.Lat = append(grid.Lat, 46.8+0.1*float64(i))
		grid.Lon = append(grid.Lon, -89+0.15*float64(i))
	}
	lake := make(field.Mask, grid.Len())
	for i := range lake {
		y, x := float64(i/20)-9.5, float64(i%20)-9.5
		lake[i] = y*y/49+x*x/81 < 1
	}
	return grid, lake
}

// lakeDay is a granule of a lake on a day, which shows the cells of the water that
// clear says.
func lakeDay(grid field.Grid, lake field.Mask, day int, clear func(i int) bool) ingest.Granule {
	at := time.Date(2024, 6, 1+day, 12, 0, 0, 0, time.UTC)
	values := make([]float32, grid.Len())
	for i := range values {
		values[i] = field.NaN()
		if lake[i] && clear(i) {
			values[i] = 12 + float32(i%20)/10 + float32(day)/20
		}
	}
	return ingest.Granule{
		Name: fmt.Sprintf("lake_%02d.nc", day), SHA256: fmt.Sprintf("%064d", day),
		Fields: []field.Field{{Grid: grid, Time: at, Values: values}}, Rejected: []field.Mask{make(field.Mask, grid.Len())},
		Source: ingest.Source{Variable: "lswt"},
	}
}

func lakeDays(n int) (field.Mask, []ingest.Granule) {
	grid, lake := superior()
	var days []ingest.Granule
	for d := range n {
		days = append(days, lakeDay(grid, lake, d, func(i int) bool { return (i/20+i%20/3+d)%3 == 0 })) // a third of it, in stripes that move on
	}
	return lake, days
}

// noFile is a reader that has no mask.
type noFile struct{}

func (noFile) ReadSea(context.Context, string, field.Grid) (field.Mask, error) {
	return nil, errors.New("there is no such file")
}

func TestALakeHasTheMaskThatItsDaysShow(t *testing.T) {
	lake, days := lakeDays(12)
	sea, err := SeaMask(t.Context(), SeaAuto, noFile{}, days[11], days)
	if err != nil {
		t.Fatal(err)
	}
	for i, water := range lake {
		if sea.Mask[i] != water {
			t.Fatalf("cell %d is water: %v, want %v", i, sea.Mask[i], water)
		}
	}
	for _, want := range []string{"100 % of the observed cells land", "learned from 12 days, 2024-06-01 to 2024-06-12 instead; name"} {
		if !strings.Contains(sea.Warning, want) {
			t.Errorf("the warning is %q, want %q", sea.Warning, want)
		}
	}
	if sea.Kind != "learned" || !strings.HasPrefix(sea.Origin, "learned: the cells that were observed on at least one of 12 days") || sea.Seen == nil {
		t.Errorf("a product would say %q", sea.Origin)
	}

	few, err := SeaMask(t.Context(), SeaAuto, noFile{}, days[1], days[:2])
	if err != nil {
		t.Fatal(err)
	}
	if n := few.Mask.Count(); n == 0 || n >= lake.Count() || !strings.Contains(few.Warning, "from 2 days, 2024-06-01 to 2024-06-02 instead, and cells that none of them shows are left out") || few.Seen != nil {
		t.Errorf("two days give a mask of %d cells of %d, and %q", n, lake.Count(), few.Warning)
	}

	mixed := days[11] // two thirds of it are sea by a mask of its own
	mixed.Fields = []field.Field{mixed.Fields[0]}
	mixed.Fields[0].Sea = make(field.Mask, len(lake))
	for i := range lake {
		mixed.Fields[0].Sea[i] = i%3 != 0
	}
	if sea, err := SeaMask(t.Context(), SeaAuto, noFile{}, mixed, days); err != nil || sea.Kind != "granule" || !strings.Contains(sea.Warning, "the granule's own sea mask calls 3") {
		t.Errorf("a mask that leaves a third of the observations on land is %q, %q, %v", sea.Kind, sea.Warning, err)
	}

	built, err := SeaMask(t.Context(), SeaBuiltin, noFile{}, days[11], days)
	if err != nil {
		t.Fatal(err)
	}
	if built.Mask.Count() != 0 || !strings.Contains(built.Warning, "set the sea mask to learned") {
		t.Errorf("the built-in mask has %d cells of sea here and says %q: the test needs a lake that is land", built.Mask.Count(), built.Warning)
	}
	if _, err := SeaMask(t.Context(), "mask.nc", noFile{}, days[11], days); err == nil {
		t.Error("a mask that cannot be read is no error")
	}
}

func TestASeaKeepsItsMask(t *testing.T) {
	_, days := lakeDays(12)
	own := make(field.Mask, days[0].Fields[0].Grid.Len())
	for i := range own {
		own[i] = true
	}
	days[11].Fields[0].Sea = own
	sea, err := SeaMask(t.Context(), SeaAuto, noFile{}, days[11], days)
	if err != nil || sea.Kind != "granule" || sea.Mask.Count() != len(own) || sea.Warning != "" {
		t.Errorf("the granule's own mask gives %q, %q, %v", sea.Kind, sea.Warning, err)
	}
	grid := days[0].Fields[0].Grid // of all days
	for k := range grid.Lat {
		grid.Lat[k], grid.Lon[k] = 42.8+0.01*float64(k), 33+0.01*float64(k) // in the middle of the Black Sea
	}
	days[11].Fields[0].Sea = nil
	sea, err = SeaMask(t.Context(), SeaAuto, noFile{}, days[11], days)
	if err != nil || sea.Kind != "builtin" || sea.Mask.Count() != len(own) || sea.Warning != "" || !strings.HasPrefix(sea.Origin, "built in: ") {
		t.Errorf("a sea has the mask %q, %q, %v", sea.Kind, sea.Warning, err)
	}
}

// Days that come later must not turn the mask round, once enough were there.
func TestAMaskOfADatasetDoesNotJump(t *testing.T) {
	lake, days := lakeDays(30)
	record := &Record{Seen: make(field.Mask, len(lake))}
	before := 0
	for i, g := range days {
		record.Add(g.Fields...)
		sea, err := record.Sea(t.Context(), SeaAuto, noFile{}, g)
		if err != nil {
			t.Fatal(err)
		}
		if n := sea.Mask.Count(); n < before || sea.Kind != "learned" {
			t.Fatalf("after day %d the %s mask has %d cells, before %d", i, sea.Kind, n, before)
		} else {
			before = n
		}
		if settled := record.Learned != nil; settled != (i+1 >= settledDays) {
			t.Errorf("after %d days it is settled: %v", i+1, settled)
		}
	}
	if record.Add(days[3].Fields...) {
		t.Error("a day that is known already counts again")
	}
	everywhere := days[0]
	everywhere.Fields = []field.Field{{Grid: days[0].Fields[0].Grid, Time: days[0].Fields[0].Time, Values: make([]float32, len(lake)), Sea: make(field.Mask, len(lake))}}
	for i := range lake {
		everywhere.Fields[0].Sea[i] = true // a mask of its own that agrees with every observation
	}
	if sea, err := record.Sea(t.Context(), SeaAuto, noFile{}, everywhere); err != nil || sea.Kind != "learned" {
		t.Errorf("a settled mask was given up for %q, %v", sea.Kind, err)
	}
}

// What is said of the coverage must be true of the lake, not of its observations.
func TestTheCoverageOfALakeIsHonest(t *testing.T) {
	lake, days := lakeDays(12)
	job := func(choice string) Job {
		sea, err := SeaMask(t.Context(), choice, noFile{}, days[11], days)
		if err != nil {
			t.Fatal(err)
		}
		fill := infer.DefaultConfig()
		fill.OI = infer.OI{LengthKM: 50, Days: 5, Nugget: 0.1}
		return Job{
			Dataset: "lake", Granule: days[11], History: days, Sea: sea.Mask, Seen: sea.Seen, SeaMask: sea.Origin, Fill: fill,
			Revision: 1, Created: time.Date(2024, 7, 1, 0, 0, 0, 0, time.UTC),
		}
	}
	seen := days[11].Fields[0].ObservedMask().Count()
	got, err := Analyse(t.Context(), job(SeaAuto), nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := float64(seen) / float64(lake.Count()); got.Observed != want || got.After != 1 {
		t.Errorf("covered %.3f before and %.3f after, want %.3f and 1", got.Observed, got.After, want)
	}
	for i, flags := range got.Analyses[0].Flags {
		if filled := flags&infer.Interpolated != 0; filled != (lake[i] && !days[11].Fields[0].Observed(i)) {
			t.Fatalf("cell %d of the lake %v is filled: %v", i, lake[i], filled)
		}
	}
	if !strings.HasPrefix(got.Product.SeaMask, "learned") {
		t.Errorf("the product says %q of its mask", got.Product.SeaMask)
	}
	got, err = Analyse(t.Context(), job(SeaBuiltin), nil)
	if err != nil || got.Observed != 0 || got.After != 0 {
		t.Errorf("where the mask has no sea it covers %.3f and %.3f, %v", got.Observed, got.After, err)
	}
}
