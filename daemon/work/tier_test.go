package work

import (
	"testing"
	"time"

	"lacuna/ledger"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/infer"
	"lacuna/publish/netcdf"
)

func TestADatasetHasADeadlineByItself(t *testing.T) {
	set := Dataset{Fill: infer.DefaultConfig()}
	for _, tt := range []struct {
		what             string
		lane             ledger.Lane
		first            bool
		given            infer.Network
		step             time.Duration
		deadline, prompt time.Duration
	}{
		{"a daily granule", ledger.Live, true, infer.Network{}, 24 * time.Hour, time.Hour, time.Minute},
		{"an hourly granule", ledger.Live, true, infer.Network{}, time.Hour, 150 * time.Second, time.Minute},
		{"of a rhythm that is not known", ledger.Live, true, infer.Network{}, 0, time.Hour, time.Minute},
		{"made anew: nobody waits", ledger.Live, false, infer.Network{}, 24 * time.Hour, time.Hour, 0},
		{"a backlog", ledger.Backfill, true, infer.Network{}, 24 * time.Hour, time.Minute, 0},
		{"settings go first", ledger.Live, true, infer.Network{Deadline: time.Second, Prompt: 2 * time.Second}, 24 * time.Hour, time.Second, 2 * time.Second},
		{"a tier that is set", ledger.Live, true, infer.Network{Tier: infer.Full}, 24 * time.Hour, 0, 0},
	} {
		set.Fill.Network, set.Fill.Step = tt.given, tt.step
		got := set.paced(tt.lane, tt.first)
		if got.Network.Deadline != tt.deadline || got.Network.Prompt != tt.prompt || got.Network.Tier != tt.given.Tier {
			t.Errorf("%s: %+v, want a deadline of %v and a wait of %v", tt.what, got.Network, tt.deadline, tt.prompt)
		}
	}
}

func TestABetterTierIsPublishedWhateverItChanges(t *testing.T) {
	for _, tt := range []struct {
		before string // body of the publication
		now    *netcdf.Sampling
		want   bool
	}{
		{`{"sampling":{"tier":"fast","follows":"full"}}`, &netcdf.Sampling{Tier: "full"}, true},
		{`{"sampling":{"tier":"full"}}`, &netcdf.Sampling{Tier: "full"}, false},
		{`{"sampling":{"tier":"full"}}`, &netcdf.Sampling{Tier: "fast"}, false},
		{`{"sampling":{"tier":"fast"}}`, nil, false},
		{`{"model":"oi"}`, &netcdf.Sampling{Tier: "full"}, false}, // interpolation, which the values say
		{`damaged`, &netcdf.Sampling{Tier: "full"}, false},
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
