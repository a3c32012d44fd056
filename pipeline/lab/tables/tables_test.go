package tables

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"lacuna/pipeline/engine"
	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/evaluate"
	"lacuna/pipeline/field"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/learn"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/prior"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/simulate"
	"lacuna/pipeline/version"
)

// seas returns a simulated series and its truth, made once for all tests.
var seas = sync.OnceValues(func() (sea simulated, err error) {
	world, err := simulate.New(simulate.Config{Product: "blk-chl", Height: 32, Width: 32, Days: 80, Seed: 3})
	if err != nil {
		return sea, err
	}
	var seen []field.Field
	for d := range world.Days() {
		day := world.Day(d)
		seen, sea.truth = append(seen, day.Seen), append(sea.truth, day.Truth)
	}
	sea.series, err = samples.New(seen, world.Sea(), field.Transform{Log10: true, Floor: 1e-3})
	return sea, err
})

type simulated struct {
	series samples.Series
	truth  []field.Field
}

// tiny returns a job that takes seconds.
func tiny(t *testing.T, table Table) Job {
	t.Helper()
	sea, err := seas()
	if err != nil {
		t.Fatal(err)
	}
	s := Default(nn.Tiny, false).With(Budget{Steps: 4, PriorSteps: 6, Batch: 2, Side: 16, Overlays: 8, Mode: table.Mode})
	s.Split = samples.SplitConfig{HeldOut: 0.4, GapDays: 3, Blocks: 1}
	s.Prior.Batch, s.Prior.EvaluateMasks, s.Prior.Sampling.Steps, s.Prior.Sampling.Batch = 4, 4, 2, 4
	s.Prior.CalibrateMasks = prior.ReferenceMasks // the fewest that make a reference, which no table asks
	s.Target.Tolerance = 0.4                      // the first strengths that are tried will do
	s.Pool = partition.PoolConfig{Size: 8, Uses: 2, Batch: 4}
	s.Drawing.Members, s.Drawing.ODE = 2, impute.ODE{Steps: 2, Jumps: 1}
	s.DINDiffDraws, s.DINDiffSteps = 2, 2
	s.MaskPatches, s.MaskDraws, s.QueryPatches, s.QueryDraws = 1, 2, 2, 2
	return Job{Table: table, Settings: s, Series: sea.series, Dataset: "simulated", Label: "CHL", Folder: t.TempDir(), Engine: func() (*engine.Engine, error) { return enginetest.Open(t), nil }}
}

func free(t *testing.T, mode impute.Mode, names ...string) Table {
	t.Helper()
	table, err := Free(names, mode)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestEveryTableCanBeTrained(t *testing.T) {
	byName := map[string]Row{}
	for _, table := range All() {
		if err := table.Validate(); err != nil {
			t.Error(err)
		}
		for _, side := range []int{64, 128, 256} {
			s := Default(nn.Base, true).With(Budget{Side: side, Mode: table.Mode})
			if err := s.Validate(); err != nil {
				t.Errorf("side %d: %v", side, err)
			}
			for _, row := range table.Rows {
				if !row.trains() {
					continue
				}
				if err := row.Network.config(s.Train).Validate(); err != nil {
					t.Errorf("table %s, row %s, side %d: %v", table.Name, row.Name, side, err)
				}
			}
		}
		for _, row := range table.Rows {
			if other, ok := byName[row.Name]; ok {
				a, _ := keyOf(row)
				if b, _ := keyOf(other); a != b {
					t.Errorf("%s is one thing in table %s and another elsewhere", row.Name, table.Name)
				}
			}
			byName[row.Name] = row
		}
	}
}

func TestPresetsDifferInTheirDocumentedSettings(t *testing.T) {
	budget := Default(nn.Small, false).Train
	frame := paper("empirical").Network.config(budget)
	if frame.Design.Extras != (impute.Extras{}) || frame.Design.Variance || frame.Steps != budget.Steps || frame.Clean != learn.DefaultConfig().AsPaper().Clean {
		t.Errorf("the published imputer sees %+v", frame.Design)
	}
	if miss := missdiff().Network.config(budget); miss.LossOn != learn.OnObserved || miss.Clean != 0 {
		t.Errorf("missdiff is trained with %+v", miss)
	}
	if d := dincae().Network.config(budget); !d.Design.Variance || d.Beta != 0 || d.Clean != 1 || d.Design.Departure || !d.Design.Extras.Last {
		t.Errorf("dincae is trained with %+v", d)
	}
	if observed := ambientObserved().Network.config(budget); observed.LossOn != learn.OnObserved {
		t.Error("the second loss of ambientdiff is that of the first")
	}
	if i := imputer().Network.config(budget); i.Design != budget.Design {
		t.Errorf("the product's network is %+v, want that of the budget", i.Design)
	}
}

func TestMistakesInAListAreFound(t *testing.T) {
	for _, names := range [][]string{{"nonsense"}, {"paper:nonsense"}, {"paper:pixel:2"}, {"imputer:block8:0.3"}, {"oi", "oi"}, {}} {
		if _, err := Free(names, impute.Past); err == nil {
			t.Errorf("%v was accepted", names)
		}
	}
	if _, err := Of("nonsense"); err == nil {
		t.Error("a table of nonsense was found")
	}
	for _, name := range []string{"kriging", "champion"} {
		if _, err := Run(t.Context(), tiny(t, free(t, impute.Past, name)), nil); err == nil {
			t.Errorf("%s ran without its requirements", name)
		}
	}
}

// TestEveryTableIsMade makes all tables at a tiny size. They share networks,
// programs and analyses, as the jobs of a longer run do.
func TestEveryTableIsMade(t *testing.T) {
	if testing.Short() {
		t.Skip("trains some forty networks for a few steps; leave -short out to run it")
	}
	sea, err := seas()
	if err != nil {
		t.Fatal(err)
	}
	kept, runners, analyses := t.TempDir(), (*Runners)(nil), learn.NewAnalyses(64)
	for _, table := range All() {
		job := tiny(t, table)
		if runners == nil {
			if runners, err = NewRunners(enginetest.Open(t), job.Settings.Runner); err != nil {
				t.Fatal(err)
			}
			defer runners.Close()
		}
		job.Kept, job.Runners, job.Analyses, job.Plain = kept, runners, analyses, table.Name != "classical"
		job.quicken()
		switch table.Name {
		case "mnar":
			job.Truth = sea.truth
		case "gaussian":
			job.Gaussian, job.Analyses, job.Settings.Overlays.Count = evaluate.NewGaussianSea(16), nil, 0
			if job.Series, err = job.Gaussian.Series(80); err != nil {
				t.Fatal(err)
			}
		}
		results, err := Run(t.Context(), job, nil)
		if err != nil {
			t.Fatalf("table %s: %v", table.Name, err)
		}
		checkTable(t, job, results)
	}
}

// quicken shortens the samplers, and drops the last rows of tables whose rows
// differ in numbers only.
func (j *Job) quicken() {
	rows := slices.Clone(j.Table.Rows)
	if name := j.Table.Name; name == "sensitivity" || name == "anchors" || name == "ratio" {
		rows = rows[:3]
	}
	for i := range rows {
		c := &rows[i].Sampler.Config
		if n := &rows[i].Network; n.Strategy == "guided" && n.Guidance == nil && j.Table.Name != "classical" {
			n.Guidance = &Guidance{Anchor: prior.AnchorCoherent, Weight: 100, Steps: 2} // tuning a strength takes seconds
		}
		c.Members, c.Steps, c.Jumps, c.Every, c.Length = min(c.Members, 2), min(c.Steps, 3), min(c.Jumps, 2), min(c.Every, 2), min(c.Length, 1)
	}
	j.Table.Rows = rows
}

func checkTable(t *testing.T, job Job, results evaluate.Results) {
	t.Helper()
	if len(results.Rows) != len(job.Table.Rows) {
		t.Fatalf("table %s has %d rows, want %d", job.Table.Name, len(results.Rows), len(job.Table.Rows))
	}
	mse := map[string]float64{}
	for i, row := range results.Rows {
		mse[row.Method] = row.MSE.Mean
		if !(row.MSE.Mean > 0) || row.Scores.GapMSE == nil && job.Gaussian == nil {
			t.Errorf("table %s: %s has scores %+v", job.Table.Name, row.Method, row.Scores)
		}
		if (row.Difference == nil) != (i == 0) {
			t.Errorf("table %s: %s is compared with %s: %+v", job.Table.Name, row.Method, results.Reference, row.Difference)
		}
	}
	want := []string{ResultsFile, MarkdownFile, TimingFile}
	switch job.Table.Name {
	case "classical":
		want = append(want, "maps.png", "map-imputer.png", "distance.png", "reliability.png", "rank-members.png", "query.png", "anchors.png")
		if mse["oi"] >= mse["climatology"] {
			t.Errorf("optimal interpolation leaves %.3f, the mean map %.3f", mse["oi"], mse["climatology"])
		}
	case "texture":
		if !(mse["texture-0"] < mse["texture-0.5"] && mse["texture-0.5"] < mse["texture-1"]) {
			t.Errorf("texture costs nothing: %v", mse)
		}
	case "gaussian":
		if mse["kriging"] >= mse["oi"] {
			t.Errorf("exact kriging leaves %.3f, optimal interpolation %.3f", mse["kriging"], mse["oi"])
		}
	}
	for _, name := range want {
		if info, err := os.Stat(filepath.Join(job.Folder, name)); err != nil || info.Size() == 0 {
			t.Errorf("table %s: %s: %v", job.Table.Name, name, err)
		}
	}
}

func TestARunThatIsStoppedEndsWithTheSameBytes(t *testing.T) {
	if testing.Short() {
		t.Skip("makes a table several times; leave -short out to run it")
	}
	table := free(t, impute.Single, "paper:empirical", "recursive", "dindiff", "climatology")
	table.Rows[1].Network.Strategy = "empirical"
	for i := range table.Rows {
		c := &table.Rows[i].Sampler.Config
		c.Members, c.Steps, c.Jumps = min(c.Members, 2), min(c.Steps, 2), min(c.Jumps, 2)
	}
	whole := tiny(t, table)
	whole.Settings.Seeds = 2
	if _, err := Run(t.Context(), whole, nil); err != nil {
		t.Fatal(err)
	}
	broken := whole
	broken.Folder = t.TempDir()
	stops := 0
	for range 20 {
		ctx, stop := context.WithCancel(t.Context())
		first := -1
		_, err := Run(ctx, broken, func(p Progress) {
			if first < 0 {
				first = p.Done
			}
			if p.Done > first+1 || p.Phase == "training" && p.Step == 2 && stops%2 == 0 {
				stop()
			}
		})
		stop()
		if err == nil {
			break
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		stops++
	}
	if stops < 3 {
		t.Errorf("the run was stopped %d times, want some", stops)
	}
	want, got := readFile(t, whole.Folder), readFile(t, broken.Folder)
	if !slices.Equal(want, got) {
		t.Errorf("results of a run that was stopped %d times differ", stops)
	}
	asked := 0
	if _, err := Run(t.Context(), broken, func(p Progress) {
		if p.Phase == "training" || p.Phase == "scoring" {
			asked++
		}
	}); err != nil || asked > 0 {
		t.Errorf("a run that is done trained or scored %d times more: %v", asked, err)
	}
}

func readFile(t *testing.T, folder string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder, ResultsFile))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A champion that is the network of another row must score as that does.
func TestTheChampionOfAStoreIsARow(t *testing.T) {
	job := tiny(t, free(t, impute.Single, "paper:empirical"))
	if _, err := Run(t.Context(), job, nil); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(job.Folder + "/networks/*.onnx")
	if err != nil || len(files) != 1 {
		t.Fatalf("networks %v, %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	job.Stored = map[string]version.Parts{RowChampion: {version.PartImputer: data}}
	job.Table = free(t, impute.Single, "paper:empirical", "champion")
	results, err := Run(t.Context(), job, nil)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := results.Rows[0].MSE.Mean, results.Rows[1].MSE.Mean; a != b {
		t.Errorf("the network scores %g as a row and %g as the champion", a, b)
	}
}

// A network that begins with the weights of another and learns nothing scores as that
// does, and one that begins with random weights does not.
func TestATrainingBeginsWithTheWeightsThatARowNames(t *testing.T) {
	job := tiny(t, free(t, impute.Single, "paper:empirical"))
	before, err := Run(t.Context(), job, nil)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(job.Folder + "/networks/*.onnx")
	if err != nil || len(files) != 1 {
		t.Fatalf("networks %v, %v", files, err)
	}
	still := job.Table.Rows[0]
	still.Name, still.Network.Recipe = "from random weights", []byte(`{"learning_rate": 1e-12}`)
	begun := still
	begun.Name, begun.Network.Start = "from those of another", files[0]
	job.Table.Rows = []Row{still, begun}
	after, err := Run(t.Context(), job, nil)
	if err != nil {
		t.Fatal(err)
	}
	want, random, got := before.Rows[0].MSE.Mean, after.Rows[0].MSE.Mean, after.Rows[1].MSE.Mean
	if math.Abs(got-want) > 1e-6 || math.Abs(random-want) < 1e-4 {
		t.Errorf("the network scores %g, one that begins with its weights %g, and one that does not %g", want, got, random)
	}
}

func TestOtherSettingsAreOtherRows(t *testing.T) {
	job := tiny(t, free(t, impute.Past, "oi", "persistence"))
	if _, err := Run(t.Context(), job, nil); err != nil {
		t.Fatal(err)
	}
	before := readFile(t, job.Folder)
	job.Settings.Mode = impute.Delayed
	results, err := Run(t.Context(), job, nil)
	if err != nil {
		t.Fatal(err)
	}
	if slices.Equal(before, readFile(t, job.Folder)) || results.Mode != "delayed" {
		t.Error("a row of another mode was taken for this one")
	}
}

func TestRealCloudsAreScoredBesideOverlays(t *testing.T) {
	sea, err := seas()
	if err != nil {
		t.Fatal(err)
	}
	job := tiny(t, free(t, impute.Past, "oi", "climatology"))
	job.Truth = sea.truth
	job.Settings.Overlays.Count = 24
	results, err := Run(t.Context(), job, nil)
	if err != nil {
		t.Fatal(err)
	}
	oi, mean := results.Rows[0].Truth, results.Rows[1].Truth
	if oi == nil || mean == nil {
		t.Fatal("no row was scored against the truth")
	}
	if oi.Gaps >= mean.Gaps || oi.Overlay >= mean.Overlay {
		t.Errorf("optimal interpolation leaves %+v, the mean map %+v", *oi, *mean)
	}
	// Observations carry noise that the truth does not.
	if oi.Overlay >= results.Rows[0].MSE.Mean {
		t.Errorf("against the truth the error is %.3f, against noisy observations %.3f", oi.Overlay, results.Rows[0].MSE.Mean)
	}
}

// The calibrated row has the map of the plain one, and a sigma that other days
// than its own calibrated.
func TestCalibratedInterpolationHasTheSameMap(t *testing.T) {
	job := tiny(t, free(t, impute.Past, "oi", "oi-calibrated", "oi-tuned"))
	job.Settings.Overlays.Count, job.Plain = 16, true
	results, err := Run(t.Context(), job, nil)
	if err != nil {
		t.Fatal(err)
	}
	oi, calibrated, tuned := results.Rows[0], results.Rows[1], results.Rows[2]
	if oi.MSE != calibrated.MSE || tuned.MSE == oi.MSE {
		t.Errorf("MSE is %v, calibrated %v, tuned %v: want the second as the first, and the third another", oi.MSE, calibrated.MSE, tuned.MSE)
	}
	if *oi.Scores.CRPS == *calibrated.Scores.CRPS || calibrated.SelfCalibrated {
		t.Errorf("CRPS is %v and calibrated %v (on itself: %v)", *oi.Scores.CRPS, *calibrated.Scores.CRPS, calibrated.SelfCalibrated)
	}
}
