package fill

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/fill/filltest"
	"lacuna/modelstore"
	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/skill"
)

// starterJob is a job for a starter of random weights, with n days.
func starterJob(t *testing.T, n int) Job {
	t.Helper()
	device := modelDevice(t)
	v := filltest.Starter(t, "CHL", "log10")
	model, err := LoadModel(v, device)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(model.Close)
	days, _, sea := simulatedOn(t, 32, 48, 8, n) // its days are filled again and again
	job := Job{Dataset: "new", Granule: days[len(days)-1], History: days[:len(days)-1], Sea: sea, Fill: infer.DefaultConfig(), Model: model}
	job.Fill.Method, job.Fill.FutureDays, job.Fill.Step = infer.MethodModel, infer.JudgedFutureDays, 24*time.Hour
	learned, err := LearnLocalScaling(job.Known(), sea, job.Granule.Transform)
	if err != nil {
		t.Fatal(err)
	}
	job.Scaling = &learned
	return job
}

// What a day says of the model must not know the truth of that day: if the hidden
// values change, the departure stays and the error does not.
func TestADayThatIsWeighedHidesItsTruth(t *testing.T) {
	if testing.Short() {
		t.Skip("is about figures, not about what happens at the same time")
	}
	job := starterJob(t, 14)
	weigh := func() []skill.Departure {
		t.Helper()
		days, err := Weigh(t.Context(), job, func(int, int) {})
		if err != nil {
			t.Fatal(err)
		}
		return days
	}
	plain := weigh()
	if len(plain) < skill.TrustDays {
		t.Fatalf("%d of %d days were weighed", len(plain), len(job.fields()))
	}
	at := slices.IndexFunc(job.fields(), func(f field.Field) bool { return f.Time.Equal(plain[4].Day) })
	days := job.fields()
	_, hidden, _ := Overlay(days[at], slices.Concat(days[:at], days[at+1:]), days[at].Time.String())
	for i := range job.History {
		if f := &job.History[i].Fields[0]; f.Time.Equal(plain[4].Day) {
			f.Values = slices.Clone(f.Values)
			for c, h := range hidden {
				if h {
					f.Values[c] *= 2
				}
			}
		}
	}
	moved := weigh()
	if moved[4].DD != plain[4].DD || moved[4].DE == plain[4].DE || plain[4].DD == 0 {
		t.Errorf("with another truth %+v became %+v, want the same departure and another error", plain[4], moved[4])
	}
	if moved[5].DD == plain[5].DD {
		t.Error("a day does not know its neighbour: nothing was tested")
	}
}

func TestInNearRealTimeOnlyEarlierDaysScaleAndWeigh(t *testing.T) {
	job := starterJob(t, 14)
	all := job.fields()
	job.History = append(job.History, job.Granule)
	job.Granule = job.History[6] // with days after it
	at := job.Granule.Fields[0].Time
	scored := make([]skill.Departure, 0, len(all))
	for _, f := range all {
		scored = append(scored, skill.Departure{Day: f.Time, DE: 1, DD: 1, Cells: 1})
	}
	if got := len(job.Known()); got != len(all) {
		t.Errorf("delayed, %d of %d days scale the model", got, len(all))
	}
	if got := job.Trusted(scored, nil).Days; got != len(all) {
		t.Errorf("delayed, %d of %d days weigh the model", got, len(all))
	}
	job.Fill.FutureDays = 0
	earlier := 0
	for _, f := range all {
		if f.Time.Before(at) {
			earlier++
		}
	}
	if got := job.Known(); len(got) != earlier || slices.ContainsFunc(got, func(f field.Field) bool { return !f.Time.Before(at) }) {
		t.Errorf("in near-real-time %d days scale the model, want the %d before", len(got), earlier)
	}
	if got := job.Trusted(scored, nil).Days; got != earlier {
		t.Errorf("in near-real-time %d days weigh the model, want the %d before", got, earlier)
	}
}

func TestWithFewDaysNothingIsWeighed(t *testing.T) {
	job := starterJob(t, 12)
	job.History = job.History[:skill.TrustDays-2]
	days, err := Weigh(t.Context(), job, func(int, int) { t.Error("a day was scored") })
	if err != nil || days != nil || job.Trusted(days, nil) != (skill.Trust{Wanted: skill.TrustDays}) {
		t.Errorf("%v, %v", days, err)
	}
}

func TestAProductSaysHowFarItsModelWasFollowed(t *testing.T) {
	job := starterJob(t, 12)
	job.Revision, job.Created, job.Fill.Details = 1, time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC), true
	for _, tt := range []struct {
		trust  *skill.Trust
		model  string
		method string
		caveat string
	}{
		{nil, job.Model.Name(), "a neural network that was trained on gappy maps of the same quantity elsewhere", "no reliability"},
		{&skill.Trust{Weight: 0.25, Days: 30}, job.Model.Name(), "for 0.25 of the way from there, by a neural network", "no reliability"},
		{&skill.Trust{Days: 3}, "oi", "optimal interpolation in space and time", ""},
	} {
		job.Trust = tt.trust
		outcome, err := Analyse(t.Context(), job, nil)
		if err != nil {
			t.Fatal(err)
		}
		p := outcome.Product
		if p.Model != tt.model || !strings.Contains(p.Method, tt.method) || (p.Trust == nil) != (tt.trust == nil) {
			t.Errorf("%+v: filled by %q, model %s, %+v", tt.trust, p.Method, p.Model, p.Trust)
		}
		if tt.trust != nil && (p.Trust.Weight != tt.trust.Weight || p.Trust.Days != tt.trust.Days || p.Trust.Model != job.Model.Name()) {
			t.Errorf("%+v became %+v", tt.trust, p.Trust)
		}
		if text := strings.Join(p.Caveats, "\n"); !strings.Contains(text, tt.caveat) || tt.caveat == "" && text != "" {
			t.Errorf("%+v: the caveats are %q, want %q", tt.trust, text, tt.caveat)
		}
	}
	job.Trust, job.Fill.PastDays = nil, 10
	outcome, err := Analyse(t.Context(), job, nil)
	if err != nil || !strings.Contains(strings.Join(outcome.Product.Caveats, "\n"), "do not hold for this window, 10 days back and 10 days ahead") {
		t.Errorf("with another window the caveats are %q, %v", outcome.Product.Caveats, err)
	}
}

func TestAChoiceSaysHowFarItIsFollowedAndTheLogWhenThatBegins(t *testing.T) {
	device := modelDevice(t)
	var log strings.Builder
	models := NewModels(ModelParts{
		Starters: []*modelstore.Version{filltest.Starter(t, "CHL", "log10")}, Log: slog.New(slog.NewTextHandler(&log, nil)),
		Open: func() (infer.Device, error) { return device, nil },
	})
	defer models.Close()
	var evidence skill.Trust
	asked := Case{
		Dataset: "chl", Fill: infer.Config{Method: infer.MethodAuto}, Granule: chlorophyllGranule(""),
		Scaling:  func() (LocalScaling, error) { return LocalScaling{Days: 20}, nil },
		Evidence: func(Choice) skill.Trust { return evidence },
	}
	for _, tt := range []struct {
		trust  skill.Trust
		want   string
		logged bool
	}{
		{skill.Trust{Days: 3}, "not followed yet: that takes 10 scored days, and there are 3", true},
		{skill.Trust{Days: 4}, "and there are 4", false},
		{skill.Trust{Days: 40}, "40 scored days do not show that it betters optimal interpolation", false},
		{skill.Trust{Days: 41, Weight: 0.4}, "followed to 0.40 of its way, from 41 scored days", true},
		{skill.Trust{Days: 42, Weight: 0.5}, "followed to 0.50", false},
	} {
		evidence = tt.trust
		log.Reset()
		got := models.Choose(asked)
		if !strings.Contains(got.String(), tt.want) || got.Trust == nil || got.Trust.Days != tt.trust.Days || got.Trust.Weight != tt.trust.Weight {
			t.Errorf("%+v: %v, want %q", tt.trust, got, tt.want)
		}
		if strings.Contains(log.String(), "filler chosen") != tt.logged {
			t.Errorf("%+v: logged %q, want a line: %v", tt.trust, log.String(), tt.logged)
		}
	}
	asked.Evidence = nil
	if got := models.Choose(asked); got.Trust == nil || got.Trust.Weight != 0 {
		t.Errorf("without evidence the starter is followed: %v", got)
	}
}

func TestALargeGridIsWeighedWhereTheDaysShowMost(t *testing.T) {
	const h, w = 200, 300
	grid := field.Grid{Lat: make([]float64, h), Lon: make([]float64, w)}
	for i := range grid.Lat {
		grid.Lat[i] = float64(i) / 10
	}
	for j := range grid.Lon {
		grid.Lon[j] = float64(j) / 10
	}
	day := field.Field{Grid: grid, Values: make([]float32, h*w), Sea: make(field.Mask, h*w)}
	for c := range day.Values {
		day.Values[c], day.Sea[c] = field.NaN(), c%2 == 0
		if r, col := c/w, c%w; r >= 60 && r < 180 && col >= 170 {
			day.Values[c] = float32(c)
		}
	}
	p := pieceOf([]field.Field{day})
	cut := p.of(day)
	if cut.Grid.Height() != weighedSide || cut.Grid.Width() != weighedSide || cut.ObservedMask().Count() < 13000 {
		t.Fatalf("%+v shows %d cells", p, cut.ObservedMask().Count())
	}
	for _, at := range []int{0, weighedSide*weighedSide - 1, 70*weighedSide + 41} {
		from := (p.row+at/weighedSide)*w + p.col + at%weighedSide
		if !slices.EqualFunc(cut.Values[at:at+1], day.Values[from:from+1], func(a, b float32) bool { return a == b || a != a && b != b }) || cut.Sea[at] != day.Sea[from] ||
			cut.Grid.Lat[at/weighedSide] != grid.Lat[from/w] || cut.Grid.Lon[at%weighedSide] != grid.Lon[from%w] {
			t.Errorf("cell %d is not cell %d of the grid", at, from)
		}
	}
	day.Grid.Lat, day.Values, day.Sea = grid.Lat[:50], day.Values[:50*w], nil
	if small := pieceOf([]field.Field{day}); small.high != 50 || small.of(day).Sea != nil {
		t.Errorf("of a lower grid it is %+v", small)
	}
}
