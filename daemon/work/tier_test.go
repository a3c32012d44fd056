package work

import (
	"errors"
	"testing"
	"time"

	"lacuna/daemon/fill"
	"lacuna/daemon/jobs"
	"lacuna/ledger"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/skill"
	"lacuna/publish"
	"lacuna/publish/netcdf"
)

func TestADatasetHasADeadlineByItself(t *testing.T) {
	set := Dataset{Fill: infer.DefaultConfig()}
	for _, tt := range []struct {
		what             string
		lane             ledger.Lane
		fields           int
		first            bool
		given            infer.Network
		step             time.Duration
		deadline, prompt time.Duration
	}{
		{"a daily granule", ledger.Live, 1, true, infer.Network{}, 24 * time.Hour, time.Hour, time.Minute},
		{"an hourly granule", ledger.Live, 1, true, infer.Network{}, time.Hour, 150 * time.Second, time.Minute},
		{"of a rhythm that is not known", ledger.Live, 1, true, infer.Network{}, 0, time.Hour, time.Minute},
		{"ten days in a file", ledger.Live, 10, true, infer.Network{}, 24 * time.Hour, time.Hour, 6 * time.Second},
		{"made anew: nobody waits", ledger.Live, 1, false, infer.Network{}, 24 * time.Hour, time.Hour, 0},
		{"a backlog", ledger.Backfill, 1, true, infer.Network{}, 24 * time.Hour, time.Minute, 0},
		{"settings go first", ledger.Live, 1, true, infer.Network{Deadline: time.Second, Prompt: 2 * time.Second}, 24 * time.Hour, time.Second, 2 * time.Second},
		{"a tier that is set", ledger.Live, 1, true, infer.Network{Tier: infer.Full}, 24 * time.Hour, 0, 0},
	} {
		set.Fill.Network, set.Fill.Step = tt.given, tt.step
		got := set.paced(tt.lane, tt.fields, tt.first)
		if got.Network.Deadline != tt.deadline || got.Network.Prompt != tt.prompt || got.Network.Tier != tt.given.Tier {
			t.Errorf("%s: %+v, want a deadline of %v and a wait of %v", tt.what, got.Network, tt.deadline, tt.prompt)
		}
	}
}

func TestABetterTierIsPublishedWhateverItChanges(t *testing.T) {
	for _, tt := range []struct {
		before string // body of the publication
		now    *publish.Sampling
		want   bool
	}{
		{`{"sampling":{"tier":"fast","follows":"full"}}`, &publish.Sampling{Tier: "full"}, true},
		{`{"sampling":{"tier":"full"}}`, &publish.Sampling{Tier: "full"}, false},
		{`{"sampling":{"tier":"full"}}`, &publish.Sampling{Tier: "fast"}, false},
		{`{"sampling":{"tier":"fast"}}`, nil, false},
		{`{"model":"oi"}`, &publish.Sampling{Tier: "full"}, false}, // interpolation, which the values say
		{`damaged`, &publish.Sampling{Tier: "full"}, false},
	} {
		if got := bettersTier(ledger.Publication{Body: tt.before}, tt.now); got != tt.want {
			t.Errorf("%+v after %s: %v, want %v", tt.now, tt.before, got, tt.want)
		}
	}
}

// The mean that is published is the one that erred less, pixel by pixel, on enough
// days, and never on days that were not there yet.
func TestTheMeanThatErredLessOnEarlierDaysIsPublished(t *testing.T) {
	day := func(i int) time.Time { return time.Date(2024, 5, 1+i, 12, 0, 0, 0, time.UTC) }
	days := func(n int, oneStep, members float64) (all []scoredMeans) {
		for i := range n {
			all = append(all, scoredMeans{Day: day(i), OneStep: oneStep, Members: members, Pixels: 100})
		}
		return all
	}
	large := append(days(10, 2, 1), scoredMeans{Day: day(10), OneStep: 1, Members: 2, Pixels: 5000})
	for _, tt := range []struct {
		what   string
		days   []scoredMeans
		before int
		want   impute.Centre
	}{
		{"too few days", days(9, 2, 1), 20, ""},
		{"members err less", days(10, 2, 1), 20, impute.MembersMean},
		{"they err alike", days(10, 1, 1), 20, impute.OneStep},
		{"one step errs less", days(10, 1, 2), 20, impute.OneStep},
		{"one large day outweighs ten small ones", large, 20, impute.OneStep},
		{"the large day is not over yet", large, 10, impute.MembersMean},
		{"the days are later ones", days(12, 2, 1), 3, ""},
	} {
		if got := betterMean(tt.days, day(tt.before)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.what, got, tt.want)
		}
	}
}

// The two means of a model that is followed are scored under the gaps of another
// day, and from the tenth such day on the better one is published.
func TestTheMeansOfAFollowedModelAreScoredAndTheBetterPublished(t *testing.T) {
	if testing.Short() {
		t.Skip("arithmetic for the most part")
	}
	w, days, sea := starterWorker(t, 16)
	w.set.Fill.Network.Members = 10 // the fewest whose spread is the uncertainty
	last := len(days) - 1
	job := fill.Job{Dataset: "sea", Granule: days[last], History: days[:last], Sea: sea, Fill: w.set.paced(ledger.Live, 1, false)}
	_, done, err := w.analyse(t.Context(), job)
	if err != nil || done.Model == nil {
		t.Fatalf("no starter was at hand: %v", err)
	}
	keep := func(s scored) {
		t.Helper()
		if s.job = done; s.departure == nil {
			s.departure = &skill.Departure{Day: s.day.Day, DE: 0.4, DD: 1, Cells: 9}
		}
		if err := w.keepScored(s); err != nil {
			t.Fatal(err)
		}
	}
	early := days[last].Fields[0].Time.AddDate(0, -1, 0)
	for d := range 2 * skill.TrustDays {
		keep(scored{day: skill.ScoredDay{Day: early.AddDate(0, 0, -d)}})
	}
	for i := 11; len(w.evidence().of(done.Model.Name()).Means) == 0 && i <= last; i++ { // the first whose gaps another day has
		g := ledger.Granule{Arrival: ledger.Arrival{SHA256: days[i].SHA256, Lane: ledger.Live}, Revision: 1}
		if _, err := w.scoreOverlay(t.Context(), g, scene{granule: days[i], history: days, sea: sea}); err != nil && !errors.Is(err, jobs.ErrNoOverlay) {
			t.Fatal(err)
		}
	}
	means := w.evidence().of(done.Model.Name()).Means
	if len(means) != 1 || means[0].Pixels == 0 || means[0].OneStep == means[0].Members || !(means[0].OneStep > 0 && means[0].Members > 0) {
		t.Fatalf("kept of the two means: %+v", means)
	}
	keep(scored{day: skill.ScoredDay{Day: means[0].Day}}) // random weights would no longer be followed
	published := func() *netcdf.Sampling {
		t.Helper()
		outcome, _, err := w.analyse(t.Context(), job)
		if err != nil || outcome.Product.Sampling == nil {
			t.Fatalf("not filled by networks: %v", err)
		}
		return outcome.Product.Sampling
	}
	if got := published(); got.Mean != string(impute.OneStep) || got.Tier != string(infer.Full) || got.Members != 10 {
		t.Errorf("with one scored day the product is %+v", got)
	}
	for d := range skill.TrustDays {
		day := early.AddDate(0, 0, -d)
		keep(scored{day: skill.ScoredDay{Day: day}, means: &scoredMeans{Day: day, OneStep: 2, Members: 1, Pixels: 1_000_000}})
	}
	if got := published(); got.Mean != string(impute.MembersMean) {
		t.Errorf("after ten days on which the members erred less the product is %+v", got)
	}
}
