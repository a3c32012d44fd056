package quicklook

import (
	"bytes"
	"image"
	"image/png"
	"slices"
	"testing"
)

func TestAContestShowsWhatWasGivenHiddenAndMadeOfIt(t *testing.T) {
	s := scene(40, 60)
	hidden, before := slices.Clone(s.Filled), slices.Clone(s.Filled)
	for i, seen := range s.Observed {
		if seen == seen {
			hidden[i] = s.Sigma[len(s.Sigma)-1] // it has no value there
		} else {
			before[i] = 0.1
		}
	}
	c := Contest{
		Title: "a window", Lat: s.Lat, Lon: s.Lon, Land: s.Land, Seen: s.Observed, Hidden: hidden, Before: before, After: s.Filled,
		BeforeBy: "optimal interpolation", Log: true,
	}
	var b bytes.Buffer
	if err := RenderContest(&b, c); err != nil {
		t.Fatal(err)
	}
	decoded, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	img := decoded.(*image.RGBA)
	r := newRaster(s.Lat, s.Lon, s.Land)
	at := func(panel int, fx, fy float64) any {
		return img.RGBAAt(marginPixel+panel%2*(r.width+marginPixel)+int(fx*float64(r.width)), titlePixel+headPixel+panel/2*(r.height+marginPixel+headPixel)+int(fy*float64(r.height)))
	}
	given, unseen := [2]float64{0.8, 0.2}, [2]float64{0.8, 0.8}
	if a, b := at(0, given[0], given[1]), at(1, given[0], given[1]); a == any(gap) || b != any(gap) {
		t.Errorf("a cell that was given is %v among those given and %v among those hidden", a, b)
	}
	if a, b := at(0, unseen[0], unseen[1]), at(1, unseen[0], unseen[1]); a != any(gap) || b == any(gap) {
		t.Errorf("a cell that was hidden is %v among those given and %v among those hidden", a, b)
	}
	if was, is, truth := at(2, unseen[0], unseen[1]), at(3, unseen[0], unseen[1]), at(1, unseen[0], unseen[1]); is != truth || was == truth {
		t.Errorf("a hidden cell is %v, was filled with %v before and %v after", truth, was, is)
	}
	c.Before = c.Before[1:]
	if err := RenderContest(&b, c); err == nil {
		t.Error("a map of another size was drawn")
	}
}
