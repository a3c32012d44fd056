package version

import (
	"math"
	"time"

	"lacuna/pipeline/evaluate"
)

// A Scene is one window of the exam for people to look at: what was given, what
// was hidden, and what was made of it before and by the challenger. It is the
// window that hides most, whoever fills it well: a picture that was chosen by its
// answers would show what its maker likes. It decides nothing.
type Scene struct {
	Time          time.Time `json:"time"`
	Lat           []float64 `json:"lat"`
	Lon           []float64 `json:"lon"`
	Log10         bool      `json:"log10,omitempty"` // the levels are of logarithms
	Low           float64   `json:"low"`             // value of level 1, and of 255
	High          float64   `json:"high"`
	Land          []byte    `json:"land"` // 1: land
	Seen          []byte    `json:"seen"` // levels, row by row; 0: no value
	Hidden        []byte    `json:"hidden"`
	Before        []byte    `json:"before"`
	After         []byte    `json:"after"`
	BeforeBy      string    `json:"before_by"`      // what filled before
	BeforeError   float64   `json:"before_error"`   // mean square error on the hidden cells, in normalised anomalies
	AfterError    float64   `json:"after_error"`    // of the challenger there
	ObservedShare float64   `json:"observed_share"` // of the sea that was given
}

// Values returns levels as numbers in physical units, NaN where there is none.
func (s Scene) Values(levels []byte) []float32 {
	out := make([]float32, len(levels))
	for i, level := range levels {
		x := s.Low + (s.High-s.Low)*float64(level-1)/254
		switch {
		case level == 0:
			x = math.NaN()
		case s.Log10:
			x = math.Pow(10, x)
		}
		out[i] = float32(x)
	}
	return out
}

// shown returns the number of the case that a scene is made of.
func shown(exam *evaluate.Exam) int {
	best, most := 0, -1
	for i := range exam.Cases() {
		if n := count(exam.Overlay(i).Scored); n > most {
			best, most = i, n
		}
	}
	return best
}

func count(cells []bool) (n int) {
	for _, c := range cells {
		if c {
			n++
		}
	}
	return n
}

// sceneOf draws the case that is shown, from two answers to it.
func sceneOf(exam *evaluate.Exam, before, after []float32, by string) *Scene {
	i := shown(exam)
	o := exam.Overlay(i)
	if before == nil || after == nil {
		return nil
	}
	s := Scene{Time: o.Time, BeforeBy: by, Land: make([]byte, len(o.Sea)), Low: math.Inf(1), High: math.Inf(-1)}
	s.Lat, s.Lon, s.Log10 = exam.Axes(i)
	nothing := float32(math.NaN())
	seen, hidden := make([]float32, len(o.Sea)), make([]float32, len(o.Sea))
	sea, given := count(o.Sea), count(o.Visible)
	var was, is float64
	for cell := range o.Sea {
		seen[cell], hidden[cell] = nothing, nothing
		if !o.Sea[cell] {
			s.Land[cell] = 1
		}
		if o.Visible[cell] {
			seen[cell] = o.Values[cell]
		}
		if o.Scored[cell] {
			hidden[cell] = o.Values[cell]
			was += square(before[cell] - o.Values[cell])
			is += square(after[cell] - o.Values[cell])
		}
	}
	n := float64(max(1, count(o.Scored)))
	s.BeforeError, s.AfterError, s.ObservedShare = was/n, is/n, float64(given)/float64(max(1, sea))
	maps := [][]float32{exam.Mapped(i, seen), exam.Mapped(i, hidden), exam.Mapped(i, before), exam.Mapped(i, after)}
	for _, m := range maps {
		for cell, v := range m {
			if x := float64(v); o.Sea[cell] && !math.IsNaN(x) && !math.IsInf(x, 0) {
				s.Low, s.High = min(s.Low, x), max(s.High, x)
			}
		}
	}
	s.Seen, s.Hidden, s.Before, s.After = s.levels(maps[0], o.Sea), s.levels(maps[1], o.Sea), s.levels(maps[2], o.Sea), s.levels(maps[3], o.Sea)
	return &s
}

func square(x float32) float64 { return float64(x) * float64(x) }

// levels returns numbers as levels, of which a picture shows no more.
func (s Scene) levels(values []float32, sea []bool) []byte {
	out := make([]byte, len(values))
	for i, v := range values {
		if x := float64(v); sea[i] && x >= s.Low && x <= s.High { // neither NaN nor infinite
			out[i] = 1
			if s.High > s.Low {
				out[i] += byte(math.Round(254 * (x - s.Low) / (s.High - s.Low)))
			}
		}
	}
	return out
}
