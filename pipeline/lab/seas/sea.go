package seas

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"lacuna/pipeline/field"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/samples/pack"
)

// A sea is a series with its days assigned.
type sea struct {
	name   string
	series samples.Series
	judge  samples.HeldOut // judge days; scaled by the days that are not judged
	choose samples.HeldOut // choose days among the learn days, scaled by the learn days; none where it does not teach
	rest   samples.Series  // days that are not judged
	within samples.SplitConfig
	place  *samples.Place // its place among the learn days of all seas; nil: it is judged only
	refs   []samples.Ref  // its patches to learn from
}

// teaches reports whether the sea has days to learn from.
func (s *sea) teaches() bool { return s.place != nil }

// Limits of a series.
const (
	shortDays = 40 // with fewer the split of a long series leaves next to nothing to judge
	leastDays = 4  // days that are not judged, with fewer there is nothing to learn
)

// chooseOf returns how the choose days are cut off the end of each stretch of
// days that are not judged.
func chooseOf(days int) samples.SplitConfig {
	if days >= shortDays {
		return samples.SplitConfig{HeldOut: 0.15, GapDays: samples.DefaultSplit().GapDays / 2, Blocks: 1}
	}
	return samples.SplitConfig{HeldOut: max(0.25, 2/float64(days)), GapDays: days / 12, Blocks: 1}
}

// readSeas reads the packs of a folder, in the order of their names.
func readSeas(folder string) ([]*sea, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.pack"))
	if err != nil {
		return nil, err
	}
	if len(files) < 2 {
		return nil, fmt.Errorf("%d packs in %s: two are needed, one to learn from and one to judge", len(files), folder)
	}
	var out []*sea
	for _, path := range files {
		s, err := readSea(path)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		out = append(out, s)
	}
	return out, nil
}

func readSea(path string) (*sea, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // read-only: a failed close loses nothing
	series, err := pack.Read(f)
	if err != nil {
		return nil, err
	}
	return newSea(strings.TrimSuffix(filepath.Base(path), ".pack"), series)
}

// newSea assigns the days of a series.
func newSea(name string, series samples.Series) (*sea, error) {
	s := &sea{name: name, series: series, rest: series}
	if len(series.Days) < shortDays {
		return s, s.halve()
	}
	known, judge, err := series.Split(samples.DefaultSplit())
	if err != nil {
		return nil, err
	}
	s.judge, s.rest.Days = judge, daysOf(series, known)
	s.within = chooseOf(len(s.rest.Days))
	return s, nil
}

// halve judges the later half of a short series, which has too few days to judge
// otherwise, with a gap that it can afford.
func (s *sea) halve() error {
	n := len(s.series.Days)
	first := n / 2
	if first < 2 {
		return fmt.Errorf("%d days are too few to judge", n)
	}
	// Blank days long before the first, so that they say nothing, make up the
	// number of days that a scaling is learned from in a service.
	padded := s.series
	padded.Days = nil
	start := s.series.Days[0].Time.AddDate(-1, 0, 0)
	for i := range max(samples.ScalingDays-first, 0) {
		padded.Days = append(padded.Days, samples.Day{Time: start.AddDate(0, 0, i), Values: blank(s.series.Grid.Len())})
	}
	padded.Days = append(padded.Days, s.series.Days...)
	var err error
	s.judge, err = padded.Since(s.series.Days[first].Time)
	s.rest.Days = s.series.Days[:max(first-n/12, 2)]
	s.within = chooseOf(len(s.rest.Days))
	return err
}

func blank(cells int) []float32 {
	out := make([]float32, cells)
	for i := range out {
		out[i] = field.NaN()
	}
	return out
}

// daysOf returns the days of a series that a side of its split holds.
func daysOf(series samples.Series, of samples.Train) []samples.Day {
	var out []samples.Day
	next := 0
	for _, d := range series.Days {
		if next < of.Days() && d.Time.Equal(of.Time(next)) {
			out = append(out, d)
			next++
		}
	}
	return out
}

// together puts the learn days of all seas that teach side by side, each in its
// own scaling, and gives each its place and patches there.
func together(all []*sea, side int) (samples.Train, error) {
	var train samples.Train
	var teachers []*sea
	for _, s := range all {
		if len(s.rest.Days) < leastDays {
			continue
		}
		own, choose, err := s.rest.Split(s.within)
		if err != nil {
			return train, fmt.Errorf("%s: %w", s.name, err)
		}
		if len(teachers) == 0 {
			train = own
		} else if train, err = train.Beside([]samples.Series{s.rest}, s.within); err != nil {
			return train, fmt.Errorf("%s: %w", s.name, err)
		}
		s.choose = choose
		teachers = append(teachers, s)
	}
	if len(teachers) == 0 {
		return train, fmt.Errorf("none of the %d seas has %d days to learn from", len(all), leastDays)
	}
	bySea := map[*samples.Place][]samples.Ref{}
	for _, r := range train.Refs(side, max(side/2, 1), partition.MinObservedCells) {
		p := train.Place(r.Day)
		bySea[p] = append(bySea[p], r)
	}
	for i, s := range teachers {
		s.place = train.Places()[i]
		if s.refs = bySea[s.place]; len(s.refs) == 0 {
			s.place = nil // no window of it has observations enough
		}
	}
	return train, nil
}
