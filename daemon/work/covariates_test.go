package work

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/covariates"
	"lacuna/daemon/feed"
	"lacuna/daemon/fill"
	"lacuna/daemon/state"
	"lacuna/ledger"
	"lacuna/pipeline/covariate"
	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/simulate"
	"lacuna/publish/netcdf"
)

// besideDays is a worker of a simulated sea with a temperature beside it, a file a day.
type besideDays struct {
	*Worker
	world *simulate.World
	days  []ingest.Granule
	files string
}

func newBesideDays(t *testing.T, correlation float64) besideDays {
	t.Helper()
	world, err := simulate.New(simulate.Config{Product: "blk-chl", Height: 24, Width: 36, Days: 66, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	b := besideDays{Worker: newTestWorker(t), world: world, files: t.TempDir()}
	for n := range world.Days() {
		b.days = append(b.days, ingest.Granule{Name: fmt.Sprintf("day%d.nc", n), SHA256: fmt.Sprint("day ", n), Fields: []field.Field{world.Day(n).Seen}, Transform: field.Transform{Log10: true, Floor: 1e-3}})
		g, err := world.Companion(n, correlation)
		if err != nil {
			t.Fatal(err)
		}
		if err := feed.Write(filepath.Join(b.files, g.Name), g); err != nil {
			t.Fatal(err)
		}
		b.decoded[b.days[n].SHA256] = b.days[n]
	}
	b.cfg.State, b.Books = state.Dir(t.TempDir()), shelf{days: b.days}
	b.set.Covariates = []covariate.Config{{Name: "sst", File: filepath.Join(b.files, "{year}{month}{day}_sst.nc"), Variable: "analysed_sst", MaxAgeDays: 2}}
	b.beside = &covariates.Covariates{List: b.set.Covariates, Reader: b.Reader, Log: func(text string) { t.Log(text) }}
	return b
}

// job returns the job of a day in near real time, by optimal interpolation with scales of
// the configuration, which saves their tuning.
func (b besideDays) job(n int) fill.Job {
	cfg := infer.DefaultConfig()
	cfg.Method, cfg.PastDays, cfg.FutureDays, cfg.OI = "oi", 10, 0, infer.OI{LengthKM: 80, Days: 5, Nugget: 0.2}
	return fill.Job{Dataset: "sea", Granule: b.days[n], History: b.days[:n], Sea: b.world.Sea(), Fill: cfg, Revision: 1, Created: time.Unix(0, 0)}
}

// The service finds out by itself that a covariate pays, keeps that with its evidence, uses
// it without knowing of later days, and tells it in the product; noise changes nothing.
func TestTheServiceUsesACovariateThatPays(t *testing.T) {
	if testing.Short() {
		t.Skip("arithmetic for the most part")
	}
	b := newBesideDays(t, 0.9)
	const target = 62
	job, err := b.equip(t.Context(), b.job(target))
	if err != nil {
		t.Fatal(err)
	}
	if job.Explained.Names != "sst" || len(job.Explained.Drift) == 0 || len(job.Explained.Lacking) != 0 {
		t.Fatalf("explained is %q with %d maps, lacking %q, by %+v", job.Explained.Names, len(job.Explained.Drift), job.Explained.Lacking, job.Constants)
	}
	if !strings.Contains(methodOf(job), "with sst") {
		t.Errorf("the method is %q: it errs otherwise, and needs a calibration of its own", methodOf(job))
	}
	kept, err := os.ReadFile(b.cfg.State.Constants("sea"))
	if err != nil || !strings.Contains(string(kept), `"slope"`) || !strings.Contains(string(kept), `"interval"`) {
		t.Errorf("kept is %s, %v: want the regression with its evidence", kept, err)
	}
	outcome, err := fill.Analyse(t.Context(), job, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := outcome.Product
	if p.Covariates != "sst" || p.Neighbours() >= len(p.Inputs)-1 || p.Inputs[len(p.Inputs)-1].Role != netcdf.RoleCovariate {
		t.Errorf("the product tells %q, of inputs %+v", p.Covariates, p.Inputs)
	}
	// Files of later days are as if they were not.
	for n := target + 1; n < b.world.Days(); n++ {
		g, err := b.world.Companion(n, 0.9)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(b.files, g.Name)); err != nil {
			t.Fatal(err)
		}
	}
	again, err := b.equip(t.Context(), b.job(target))
	if err != nil || !slices.EqualFunc(job.Explained.Drift, again.Explained.Drift, func(x, y infer.Drift) bool { return slices.Equal(x.Values, y.Values) }) {
		t.Errorf("without the files of later days the drift is another, or %v", err)
	}
	// A day whose maps are too old is filled without, and says so.
	for n := target - 2; n <= target; n++ {
		g, err := b.world.Companion(n, 0.9)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(b.files, g.Name)); err != nil {
			t.Fatal(err)
		}
	}
	lacking, err := b.equip(t.Context(), b.job(target))
	if err != nil || !slices.Equal(lacking.Explained.Lacking, []string{"sst"}) {
		t.Fatalf("lacking is %q, %v", lacking.Explained.Lacking, err)
	}
	if outcome, err = fill.Analyse(t.Context(), lacking, nil); err != nil || !strings.Contains(strings.Join(outcome.Product.Caveats, "\n"), "sst: no map of this day is there") {
		t.Errorf("caveats are %q, %v", outcome.Product.Caveats, err)
	}
	// When one comes the product is reopened, once, and no other is.
	log := &reopenings{Books: b.Books}
	b.Books, b.set.Reanalysis = log, DefaultReanalysis()
	if err := b.lookBeside(t.Context()); err != nil || len(log.asked) > 0 {
		t.Fatalf("before any map has come %+v are reopened, %v", log.asked, err)
	}
	g, err := b.world.Companion(target, 0.9)
	if err != nil {
		t.Fatal(err)
	}
	if err := feed.Write(filepath.Join(b.files, g.Name), g); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := b.lookBeside(t.Context()); err != nil || len(log.asked) != 1 || log.asked[0].Why != "maps of sst came or changed" {
			t.Errorf("reopened are %+v, %v", log.asked, err)
		}
	}
}

// reopenings are the products that a worker asks to be reopened.
type reopenings struct {
	Books
	asked []ledger.Reopening
}

func (r *reopenings) Reopen(_ context.Context, asked ledger.Reopening, _ ledger.Placement, _ time.Time) (bool, error) {
	r.asked = append(r.asked, asked)
	return true, nil
}

// A covariate of noise leaves the product as it is without any, to the bit.
func TestNoiseLeavesTheProductAsItIs(t *testing.T) {
	if testing.Short() {
		t.Skip("arithmetic for the most part")
	}
	b := newBesideDays(t, 0)
	const target = 62
	noisy, err := b.equip(t.Context(), b.job(target))
	if err != nil {
		t.Fatal(err)
	}
	if r := noisy.Constants.Covariates; r.Any() || len(r.Judged) != 1 || r.Judged[0].Gain == nil {
		t.Fatalf("noise was judged %+v", r)
	}
	b.beside, b.set.Covariates = &covariates.Covariates{}, nil
	plain, err := b.equip(t.Context(), b.job(target))
	if err != nil {
		t.Fatal(err)
	}
	one, err := fill.Analyse(t.Context(), noisy, nil)
	if err != nil {
		t.Fatal(err)
	}
	two, err := fill.Analyse(t.Context(), plain, nil)
	if err != nil {
		t.Fatal(err)
	}
	bits := func(a, b float32) bool { return a == b || a != a && b != b }
	if !slices.EqualFunc(one.Product.Value, two.Product.Value, bits) || !slices.EqualFunc(one.Product.Sigma, two.Product.Sigma, bits) || one.Product.Covariates != "" || len(one.Product.Inputs) != len(two.Product.Inputs) {
		t.Error("noise beside it changes the product")
	}
}

// Other covariates than were judged are judged with the next granule; the same are not.
func TestOtherCovariatesAreJudgedAnew(t *testing.T) {
	judged := fill.Tunings{}.Add(fill.Tuning{Known: 60, Constants: infer.Constants{Covariates: &covariate.Regression{Judged: []covariate.Verdict{{Name: "sst"}}}}})
	for _, tt := range []struct {
		names []string
		due   bool
	}{{[]string{"sst"}, false}, {[]string{"sst", "sst.gradient"}, true}, {nil, true}} {
		if got := judged.With(tt.names).Due(61); got != tt.due {
			t.Errorf("with %q another tuning is due %v, want %v", tt.names, got, tt.due)
		}
	}
	if (fill.Tunings{}).Add(fill.Tuning{Known: 60}).With(nil).Due(61) {
		t.Error("a dataset without covariates is tuned again")
	}
}
