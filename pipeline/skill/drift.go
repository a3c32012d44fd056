package skill

import (
	"fmt"
	"math"
)

const (
	// recentDays are compared with the referenceDays before them: two weeks of
	// weather against two months.
	recentDays, referenceDays = 14, 60
	// leastRecent and leastReference are how many scores that takes.
	leastRecent, leastReference = 7, 20
	// driftRatio is from where on a rise of the error is worth waking somebody:
	// what a fine-tuning gains is of that order.
	driftRatio = 1.2
	// DriftSigmas is how far beyond chance it must lie. It is asked every day of
	// every dataset, and in steady weather one asking in some two hundred alarms
	// at this limit; at 2 it were one in twenty.
	DriftSigmas = 3
)

// DriftDays is how many of the latest scores DriftOf looks at.
const DriftDays = recentDays + referenceDays

// Drift is how well a dataset has been filled lately, against before.
type Drift struct {
	// Recent and Before are the typical mean squared errors of the latest days
	// and of the days before, in variances of the field: the geometric means,
	// for a stormy day must not drown the rest. 0: not known.
	Recent, Before float64
	RecentDays     int // behind Recent
	BeforeDays     int // behind Before
	// Sigmas is by how many standard errors the logarithms differ; positive
	// where it got worse. 0: not known.
	Sigmas float64
	Alarm  string // for people; empty: there is no drift
}

// DriftOf compares the latest mean squared errors of a dataset, in the order of
// days, with those before. It alarms where the error rose by more than a fifth and by
// more than chance explains; that errors of following days are alike is taken
// into account.
func DriftOf(errors []float64) Drift {
	var logs []float64
	for _, mse := range errors {
		if mse > 0 {
			logs = append(logs, math.Log(mse))
		}
	}
	logs = logs[max(0, len(logs)-recentDays-referenceDays):]
	cut := max(0, len(logs)-recentDays)
	recent, before := spreadOf(logs[cut:]), spreadOf(logs[:cut])
	news := Drift{RecentDays: recent.n, BeforeDays: before.n}
	if recent.n > 0 {
		news.Recent = math.Exp(recent.mean)
	}
	if before.n > 0 {
		news.Before = math.Exp(before.mean)
	}
	if recent.n < leastRecent || before.n < leastReference {
		return news
	}
	// Two weeks say little of their own variance and persistence, so both come
	// from the reference.
	e := before.variance * (1/before.independent(before.n) + 1/before.independent(recent.n))
	if e <= 0 {
		return news
	}
	rise := recent.mean - before.mean
	news.Sigmas = rise / math.Sqrt(e)
	if math.Exp(rise) > driftRatio && news.Sigmas > DriftSigmas {
		news.Alarm = fmt.Sprintf("the error of the last %d scored days is %.0f %% above that of the %d before: %.3f against %.3f variances of the field",
			recent.n, 100*(math.Exp(rise)-1), before.n, news.Recent, news.Before)
	}
	return news
}

// spread describes a series of numbers.
type spread struct {
	n              int
	mean, variance float64
	persistence    float64 // correlation of a number with the next
}

func spreadOf(xs []float64) spread {
	s := spread{n: len(xs)}
	if s.n == 0 {
		return s
	}
	for _, x := range xs {
		s.mean += x / float64(s.n)
	}
	var squares, products float64
	for i, x := range xs {
		squares += (x - s.mean) * (x - s.mean)
		if i > 0 {
			products += (x - s.mean) * (xs[i-1] - s.mean)
		}
	}
	if s.n > 1 && squares > 0 {
		s.variance = squares / float64(s.n-1)
		// A short series shows less persistence than there is, by about
		// (1+3r)/n. See Kendall, Biometrika 41 (1954), 403-404.
		r := products / squares
		s.persistence = min(max(r+(1+3*r)/float64(s.n), 0), 0.9)
	}
	return s
}

// independent returns how many independent numbers n of the series are worth.
func (s spread) independent(n int) float64 {
	return max(float64(n)*(1-s.persistence)/(1+s.persistence), 1)
}
