package work

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"lacuna/ledger"
	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/samples"
	"lacuna/publish"
)

// neighbourBook are the granules of another dataset, and the products of some of them.
type neighbourBook struct {
	rows     []ledger.Granule
	products map[string]ledger.Publication
}

func (b neighbourBook) Window(context.Context, string, time.Time, time.Time) ([]ledger.Granule, error) {
	return b.rows, nil
}

func (b neighbourBook) Current(_ context.Context, _, granule string) (ledger.Publication, bool, error) {
	p, ok := b.products[granule]
	return p, ok, nil
}

// Of another dataset the product of a day is used, which has no gaps, else its granule. In
// near real time a product that was made with later days is not.
func TestAnotherDatasetGivesItsProducts(t *testing.T) {
	dir := t.TempDir()
	b := neighbourBook{products: map[string]ledger.Publication{}}
	for _, name := range []string{"nrt", "delayed", "swept", "none", "absent"} {
		b.rows = append(b.rows, ledger.Granule{Arrival: ledger.Arrival{Object: ledger.Object{Dataset: "sst", Name: name}, SpoolPath: "spool/" + name}, Absent: name == "absent"})
		if name == "none" {
			continue
		}
		mode := publish.Delayed
		if name == "nrt" || name == "swept" {
			mode = publish.NearRealTime
		}
		body, err := json.Marshal(publish.Product{Mode: mode, Variable: "analysed_sst"})
		if err != nil {
			t.Fatal(err)
		}
		p := ledger.Publication{File: filepath.Join(dir, name+".nc"), Body: string(body)}
		b.products[name] = p
		if name != "swept" {
			if err := os.WriteFile(p.File, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	find := Beside(b, func(string) ingest.Options { return ingest.Options{Variable: "sst"} })
	made := func(name string) string { return filepath.Join(dir, name+".nc") + " analysed_sst" }
	for ahead, want := range map[bool][]string{
		false: {made("nrt"), "spool/delayed sst", "spool/swept sst", "spool/none sst"},
		true:  {made("nrt"), made("delayed"), "spool/swept sst", "spool/none sst", made("absent")},
	} {
		got, err := find(t.Context(), "sst", time.Time{}, time.Time{}, ahead)
		var files []string
		for _, s := range got {
			files = append(files, s.Path+" "+s.Options.Variable)
		}
		if err != nil || !slices.Equal(files, want) {
			t.Errorf("with later days %v: %q, %v, want %q", ahead, files, err, want)
		}
	}
}

// A model sees the maps of its covariates as it learned from them: of the day or before,
// also in a delayed product. Without one the product says so.
func TestAModelNeverSeesACovariateOfALaterDay(t *testing.T) {
	b := newBesideDays(t, 0.9)
	const target = 62
	grid := b.days[target].Fields[0].Grid
	extras := impute.Extras{Last: true, Next: true, Analysis: true}
	v, err := infer.Untrained(impute.Design{Backbone: nn.BackboneUNet, Size: nn.Tiny, Variance: true, Departure: true, Extras: extras, Covariates: "sst"}, 7)
	if err != nil {
		t.Fatal(err)
	}
	v.Scaling = &infer.Scaling{Grid: grid, Transform: b.days[target].Transform, Scaling: samples.Scaling{Mean: make([]float32, grid.Len()), Std: 0.5}}
	v.Covariates = []samples.Channel{{Covariate: samples.Covariate{Name: "sst", Units: "kelvin"}, Mean: slices.Repeat([]float32{288}, grid.Len()), Std: 2}}
	m, err := infer.Load(v, infer.Device{Backend: enginetest.Open(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	job := b.job(target)
	job.Fill.Method, job.Fill.FutureDays, job.Fill.OI, job.Model = infer.MethodModel, 3, infer.OI{}, m
	seen, err := b.equip(t.Context(), job)
	if err != nil || len(seen.Explained.Maps) != 1 || seen.Explained.Names != "sst" || len(seen.Explained.Lacking) != 0 || len(seen.Explained.Inputs) != 1 {
		t.Fatalf("it sees %+v, %v", seen.Explained, err)
	}
	for n := target - 2; n <= target; n++ {
		g, err := b.world.Companion(n, 0.9)
		if err != nil {
			t.Fatal(err)
		}
		if n == target-1 {
			continue // a day old
		}
		if err := os.Remove(filepath.Join(b.files, g.Name)); err != nil {
			t.Fatal(err)
		}
	}
	before, err := b.equip(t.Context(), job)
	if err != nil || len(before.Explained.Maps) != 1 || sameMap(before.Explained.Maps[0].Values, seen.Explained.Maps[0].Values) {
		t.Fatalf("with the map of the day before it sees %+v, %v", before.Explained.Lacking, err)
	}
	g, err := b.world.Companion(target-1, 0.9)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(b.files, g.Name)); err != nil {
		t.Fatal(err)
	}
	lacking, err := b.equip(t.Context(), job)
	if err != nil || len(lacking.Explained.Maps) != 0 || !slices.Equal(lacking.Explained.Lacking, []string{"sst"}) {
		t.Errorf("with maps of later days only it sees %d, and lacks %q, %v", len(lacking.Explained.Maps), lacking.Explained.Lacking, err)
	}
}

func sameMap(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return x == y || x != x && y != y })
}
