package samples

import (
	"math"
	"slices"
	"sync"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/field"
)

// A Covariate is another variable, or a map that stays, whose maps come with the days of
// a series.
type Covariate struct {
	Name  string `json:"name"`
	Units string `json:"units,omitempty"` // of its maps; empty: none are known
	// Stays says that it is one map for all days, such as a depth.
	Stays bool `json:"stays,omitempty"`
	// Uniform says that the part that all of the sea shares counts too, as of a season.
	Uniform bool `json:"uniform,omitempty"`
}

// A Channel says how the maps of a covariate become an input of a network: less a mean,
// and in units of a spread, both of days that were learned from.
//
// The mean of a variable is its smooth mean map, as that of the series itself, and what
// all of the sea shares on a day is taken out too: a temperature has more of the season
// than it tells. Of a map that stays, and of one that is the same everywhere, it is one
// number.
type Channel struct {
	Covariate
	Offset float64   `json:"offset,omitempty"` // the mean, where it is one number
	Mean   []float32 `json:"mean,omitempty"`   // the mean map; nil: there is none
	Std    float64   `json:"std,omitempty"`    // 0: no day that was learned from has a map that varies
	// Off says that the covariate does not pay: it counts as missing everywhere.
	Off bool `json:"off,omitempty"`
}

// farthest is how many spreads a value may lie off: beyond it a network would answer to
// what it never saw.
const farthest = 6

// In reports whether a network sees the channel at all.
func (c Channel) In() bool { return !c.Off && c.Std > 0 }

// Of returns a map of the covariate as the input of a network, NaN where it is missing;
// nil: it is missing everywhere.
func (c Channel) Of(values []float32, sea field.Mask) []float32 {
	if !c.In() || values == nil || c.Mean != nil && len(c.Mean) != len(values) {
		return nil
	}
	out, shared := c.less(values, sea)
	known := false
	for i, v := range out {
		out[i] = float32(min(max((float64(v)-shared)/c.Std, -farthest), farthest)) // NaN stays
		known = known || v == v
	}
	if !known {
		return nil
	}
	return out
}

// less returns a map less the mean, NaN where it is missing or on land, and the part of
// it that all of the sea shares and that does not count.
func (c Channel) less(values []float32, sea field.Mask) (out []float32, shared float64) {
	out = make([]float32, len(values))
	sum, known := 0.0, 0
	for i, v := range values {
		d := float64(v) - c.Offset
		if c.Mean != nil {
			d = float64(v) - float64(c.Mean[i])
		}
		if d-d != 0 || sea != nil && !sea[i] {
			out[i] = field.NaN()
			continue
		}
		out[i] = float32(d)
		sum, known = sum+d, known+1
	}
	if c.Mean == nil || c.Uniform || known == 0 {
		return out, 0
	}
	return out, sum / float64(known)
}

// LearnChannels returns the channels of the covariates of a series from some of its days.
func LearnChannels(s Series, days []Day) []Channel {
	out := make([]Channel, len(s.Covariates))
	for k, covariate := range s.Covariates {
		out[k].Covariate = covariate
		var frames []classical.Frame
		for _, d := range days {
			if k < len(d.Covariates) && d.Covariates[k] != nil {
				frames = append(frames, classical.Frame{Time: d.Time, Values: d.Covariates[k]})
			}
		}
		if len(frames) > 0 {
			out[k].learn(s, frames)
		}
	}
	return out
}

// learn finds mean and spread of maps.
func (c *Channel) learn(s Series, frames []classical.Frame) {
	for i, f := range frames { // land may have anything
		own := slices.Clone(f.Values)
		for cell := range own {
			if own[cell]-own[cell] != 0 || !s.Sea[cell] {
				own[cell] = field.NaN()
			}
		}
		frames[i].Values = own
	}
	sum, n := 0.0, 0
	for _, f := range frames {
		for _, v := range f.Values {
			if v == v {
				sum, n = sum+float64(v), n+1
			}
		}
	}
	if n == 0 {
		return
	}
	c.Offset = sum / float64(n)
	if !c.Stays && !c.Uniform {
		c.Mean = classical.Climatology(classical.Series{Grid: s.Grid, Sea: s.Sea, Frames: frames}, 0).Mean
		for i, m := range c.Mean {
			if m != m { // land, or sea that no map reaches
				c.Mean[i] = float32(c.Offset)
			}
		}
		c.Offset = 0
	}
	squares := 0.0
	for _, f := range frames {
		less, shared := c.less(f.Values, s.Sea)
		for _, v := range less {
			if v == v {
				squares += (float64(v) - shared) * (float64(v) - shared)
			}
		}
	}
	// Rounding alone makes no spread.
	if c.Std = math.Sqrt(squares / float64(n)); c.Std < 1e-6*max(math.Abs(sum/float64(n)), 1e-6) {
		c.Std = 0
	}
}

// Channels are the inputs that covariates give a network, for the days of an archive.
type Channels struct {
	archive *archive
	list    []Channel
	byDay   *sync.Map // day to [][]float32, maps of the whole grid
}

// Channels returns the inputs by the given channels, in their order. A covariate that the
// series of a day does not have, or has in other units, is missing.
func (a *archive) Channels(list []Channel) Channels {
	return Channels{archive: a, list: list, byDay: &sync.Map{}}
}

// Cut returns the inputs for the patch r, NaN where one is missing and nil where all of
// it is; nil: there are none.
func (c Channels) Cut(r Ref) [][]float32 {
	if len(c.list) == 0 {
		return nil
	}
	p := c.archive.placeOf[r.Day]
	kept, ok := c.byDay.Load(r.Day)
	if !ok {
		kept, _ = c.byDay.LoadOrStore(r.Day, c.of(p, r.Day))
	}
	out := make([][]float32, len(c.list))
	for k, m := range kept.([][]float32) {
		if m != nil {
			out[k] = p.CutMap(m, r.Window)
		}
	}
	return out
}

// of returns the inputs of a whole day.
func (c Channels) of(p *Place, day int) [][]float32 {
	out := make([][]float32, len(c.list))
	maps := c.archive.days[day].Covariates
	for k, channel := range c.list {
		i := slices.IndexFunc(p.covariates, func(v Covariate) bool { return v.Name == channel.Name })
		if i < 0 || i >= len(maps) || !channel.Takes(p.covariates[i].Units) {
			continue
		}
		out[k] = channel.Of(maps[i], p.Sea)
	}
	return out
}

// Takes reports whether maps in these units may be given to the channel.
func (c Channel) Takes(units string) bool { return units == c.Units || units == "" || c.Units == "" }

// LearnChannels returns the channels of the covariates of the first place, from all days
// of t: one that has others gives them nothing.
func (t Train) LearnChannels() []Channel {
	p := t.places[0]
	return LearnChannels(Series{Grid: p.Grid, Sea: p.Sea, Covariates: p.covariates}, t.days[p.first:p.end])
}

// ChannelsOf returns the channels of names, in their order. One whose constants are not
// known is missing everywhere.
func ChannelsOf(names []string, known []Channel) []Channel {
	var out []Channel
	for _, name := range names {
		c := Channel{Covariate: Covariate{Name: name}, Off: true}
		if i := slices.IndexFunc(known, func(c Channel) bool { return c.Name == name }); i >= 0 {
			c = known[i]
		}
		out = append(out, c)
	}
	return out
}
