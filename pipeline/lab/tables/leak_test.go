package tables

import (
	"slices"
	"testing"

	"lacuna/pipeline/evaluate"
	"lacuna/pipeline/field"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/samples"
)

// Every method answers one case twice: unchanged, and with 1e6 in all scored
// cells. Training days are the same in both.
func TestScoredValuesDoNotLeakIntoAnAnswer(t *testing.T) {
	if testing.Short() {
		t.Skip("trains eight networks; leave -short out to run it")
	}
	rows := []Row{
		{Name: "climatology", By: Climatology},
		{Name: "persistence", By: Persistence},
		{Name: "oi", By: OI},
		{Name: "dineof", By: DINEOF},
		{Name: "imputer", By: OneStep, Network: Network{Preset: presetLacuna, Strategy: "empirical", Extras: &impute.Extras{Last: true, Next: true, Background: true, Analysis: true}}},
		members(), missdiff(), dindiff(), dincae(), ambient(0.3),
	}
	rows[5].Network.Strategy = "empirical"
	rows[6].Sampler.Config.Members, rows[6].Sampler.Config.Steps, rows[6].Sampler.Config.Jumps = 2, 2, 1
	rows[8].By = OneStep
	job := tiny(t, Table{Name: "leak", Mode: impute.Delayed, Rows: rows})
	honest, err := begin(job, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer honest.close()
	if err := honest.surround(t.Context()); err != nil {
		t.Fatal(err)
	}
	spoiled := spoil(t, honest)
	for i, e := range honest.entries {
		honest.at = i
		answers, end, err := honest.method(t.Context(), e)
		if err != nil {
			t.Fatalf("%s: %v", e.row.Name, err)
		}
		plain, err := honest.examsOf(e.mode)
		if err != nil {
			t.Fatal(err)
		}
		want, got := ask(t, answers, plain.main), ask(t, answers, spoiled)
		if !slices.Equal(want.Mean, got.Mean) || !slices.Equal(want.Sigma, got.Sigma) {
			t.Errorf("the answer of %s changes with hidden values", e.row.Name)
		}
		for m := range want.Members {
			if !slices.Equal(want.Members[m], got.Members[m]) {
				t.Errorf("member %d of %s changes with hidden values", m, e.row.Name)
			}
		}
		end()
	}
}

// spoil returns the exam of a run with 1e6 in the archive wherever the first
// case is scored.
func spoil(t *testing.T, r *run) *evaluate.Exam {
	t.Helper()
	o := r.overlays[0]
	series := r.job.Series
	series.Days = slices.Clone(series.Days)
	at := slices.IndexFunc(series.Days, func(d samples.Day) bool { return d.Time.Equal(o.Time) })
	values := slices.Clone(series.Days[at].Values)
	for i, scored := range o.Scored {
		if scored {
			values[(o.Window.Row+i/o.Window.Width)*series.Grid.Width()+o.Window.Col+i%o.Window.Width] = 1e6
		}
	}
	series.Days[at].Values = values
	_, held, err := series.Split(r.s.Split)
	if err != nil {
		t.Fatal(err)
	}
	around := r.around
	around.Days = held
	around.Analyser = impute.OI{Days: held, Settings: r.around.Analyser.(impute.OI).Settings}
	o.Patch = held.Cut(o.Ref)
	if slices.Max(o.Values) < 1e5 {
		t.Fatal("no value was replaced")
	}
	exam, err := evaluate.NewExam(held, around, []samples.Overlay{o}, r.s.Mode)
	if err != nil {
		t.Fatal(err)
	}
	return exam
}

// ask returns the answer to the first case of an exam.
func ask(t *testing.T, answers methodFor, x *evaluate.Exam) evaluate.Answer {
	t.Helper()
	c, err := x.Case(0)
	if err != nil {
		t.Fatal(err)
	}
	out, err := answers(x).Fill(t.Context(), []evaluate.Case{c})
	if err != nil {
		t.Fatal(err)
	}
	return out[0]
}

// A prior is stopped by masks of days that choose. Were it chosen by those of the
// overlays, other gaps there would give another one, and methods that draw from it
// would have seen the gaps that they are judged under.
func TestMasksOfDaysThatJudgeDoNotChooseThePrior(t *testing.T) {
	table := Table{Name: "prior", Mode: impute.Single, Rows: []Row{{Name: "oi", By: OI}}}
	train := func(change func(r *run, days []samples.Day)) []byte {
		t.Helper()
		job := tiny(t, table)
		plain, err := begin(job, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer plain.close()
		job.Series.Days = slices.Clone(job.Series.Days)
		change(plain, job.Series.Days)
		job.Folder = t.TempDir()
		r, err := begin(job, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer r.close()
		if _, err = r.open(); err != nil {
			t.Fatal(err)
		}
		r.s.Prior.EvaluateEvery = 1 // the best of six
		data, err := r.trainPrior(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	riddled := func(of func(r *run) []samples.Date) func(*run, []samples.Day) {
		return func(r *run, days []samples.Day) {
			for i, d := range days {
				if slices.Contains(of(r), samples.DateOf(d.Time)) {
					values := slices.Clone(d.Values)
					for c := range values {
						if (c/7+i)%3 == 0 {
							values[c] = field.NaN()
						}
					}
					days[i].Values = values
				}
			}
		}
	}
	want := train(func(*run, []samples.Day) {})
	if !slices.Equal(want, train(riddled(func(r *run) []samples.Date { return r.days.Judge }))) {
		t.Error("gaps of days that judge change the prior")
	}
	if slices.Equal(want, train(riddled(func(r *run) []samples.Date { return r.days.Choose }))) {
		t.Error("gaps of days that choose change nothing")
	}
}
