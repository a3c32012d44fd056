package daemon

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"lacuna/daemon/retrain"
	"lacuna/ledger"
	"lacuna/pipeline/skill"
)

func TestWorseProductsAreAReasonToTrain(t *testing.T) {
	var days []ledger.Skill
	for day := range skill.DriftDays {
		mse := 0.10 + 0.01*float64(day%3)
		if day >= 60 {
			mse *= 1.6
		}
		days = append(days, ledger.Skill{MSE: mse, Pixels: 100})
	}
	if loss := skillLoss(skill.DriftOf(ledger.Errors(days))); loss == nil || *loss < 0.55 || *loss > 0.65 {
		t.Errorf("loss %v, want about 0.6", loss)
	}
	if loss := skillLoss(skill.DriftOf(ledger.Errors(days[:60]))); loss != nil {
		t.Errorf("steady days have lost %v", *loss)
	}
}

func TestTheTrainingServiceSeesTheGranulesOfItsDataset(t *testing.T) {
	book, err := ledger.Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = book.Close() })
	day := func(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }
	for n, dataset := range []string{"", "sea", "lake", "sea"} {
		if n == 0 {
			continue
		}
		name := day(n).Format(time.DateOnly)
		g, _, err := book.Arrive(t.Context(), ledger.Arrival{
			Object: ledger.Object{Dataset: dataset, Name: name}, SHA256: name, SpoolPath: "spool/" + name,
		}, day(9))
		if err != nil {
			t.Fatal(err)
		}
		if err := book.SetTimes(t.Context(), g.ID, []time.Time{day(n), day(n).Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	books := trainBooks{book, "sea"}
	got, err := books.Granules(t.Context(), day(2), day(9))
	want := retrain.Granule{Path: "spool/2026-01-03", Times: []time.Time{day(3), day(3).Add(time.Hour)}}
	if err != nil || len(got) != 1 || !slices.EqualFunc(got[0].Times, want.Times, time.Time.Equal) || got[0].Path != want.Path {
		t.Errorf("granules %+v, %v, want %+v", got, err, want)
	}
	if loss, err := books.SkillLoss(t.Context()); loss != nil || err != nil {
		t.Errorf("a loss without scores: %v, %v", loss, err)
	}
}

func TestWithoutAStoreNothingIsTrained(t *testing.T) {
	d := &Daemon{cfg: Config{Train: retrain.DefaultConfig(), Datasets: []Dataset{DefaultDataset()}}}
	if s := d.scheduler(DefaultDataset(), nil); s != nil {
		t.Error("there is a scheduler without a store")
	}
}
