package chaos

import (
	"fmt"
	"html"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// curve is a figure over time.
type curve struct {
	name string
	room float64 // by what it may vary without being a leak
	x, y []float64
}

// growth returns by what share of its mean the curve grows over its second half, by
// least squares, and the standard error of that. The first half warms up.
func (c curve) growth() (share, sure float64) {
	x, y := c.x[len(c.x)/2:], c.y[len(c.y)/2:]
	n := float64(len(x))
	if n < 4 {
		return 0, math.Inf(1)
	}
	var mx, my, xx, xy, squares float64
	for i := range x {
		mx, my = mx+x[i]/n, my+y[i]/n
	}
	for i := range x {
		xx, xy = xx+(x[i]-mx)*(x[i]-mx), xy+(x[i]-mx)*(y[i]-my)
	}
	slope := xy / xx
	for i := range x {
		miss := y[i] - my - slope*(x[i]-mx)
		squares += miss * miss
	}
	span, mean := x[len(x)-1]-x[0], math.Max(math.Abs(my), 1e-9)
	return slope * span / mean, math.Sqrt(squares/(n-2)/xx) * span / mean
}

// notFlat returns why the curve is not flat; empty where it is. It grows where it
// does so by more than a twentieth and by more than its room, and three standard
// errors say that this is no chance.
func (c curve) notFlat() string {
	const share, errors = 0.05, 3
	grows, sure := c.growth()
	half := c.y[len(c.y)/2:]
	var mean float64
	for _, v := range half {
		mean += v / float64(len(half))
	}
	if math.IsInf(sure, 1) {
		return fmt.Sprintf("%s: %d samples cannot tell whether it grows", c.name, len(c.x))
	}
	if grows-errors*sure > 0 && grows > share && grows*mean > c.room {
		return fmt.Sprintf("%s grows by %.1f ± %.1f %% over the second half: it is not flat", c.name, 100*grows, 100*sure)
	}
	return ""
}

func TestCurveTellsALeakFromNoise(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	make60 := func(at func(i float64) float64) curve {
		c := curve{name: "heap", room: 2}
		for i := range 60 {
			c.x, c.y = append(c.x, float64(i)/60), append(c.y, at(float64(i)))
		}
		return c
	}
	noise := func() float64 { return random.NormFloat64() }
	for _, tt := range []struct {
		name string
		at   func(i float64) float64
		leak bool
	}{
		{"flat", func(float64) float64 { return 50 }, false},
		{"noise", func(float64) float64 { return 50 + 3*noise() }, false},
		{"saw teeth of a collector", func(i float64) float64 { return 50 + 20*math.Mod(i, 7)/7 }, false},
		{"warming up, then flat", func(i float64) float64 { return 50 + math.Min(i, 25) + noise() }, false},
		{"shrinking", func(i float64) float64 { return 90 - i/2 + noise() }, false},
		{"less than its room", func(i float64) float64 { return 10 + i/40 }, false},
		{"a leak", func(i float64) float64 { return 50 + i/3 + noise() }, true},
		{"a slow leak without noise", func(i float64) float64 { return 50 + i/8 }, true},
		{"a leak under saw teeth", func(i float64) float64 { return 50 + i + 10*math.Mod(i, 5)/5 }, true},
		{"goroutines in steps", func(i float64) float64 { return 40 + 2*math.Floor(i/5) }, true},
	} {
		if why := make60(tt.at).notFlat(); (why != "") != tt.leak {
			t.Errorf("%s: %q, want a leak: %v", tt.name, why, tt.leak)
		}
	}
	if why := (curve{name: "short", x: []float64{1, 2}, y: []float64{1, 2}}).notFlat(); why == "" {
		t.Error("two samples are enough to call a curve flat")
	}
}

// plot returns a picture of curves, below one another, as SVG.
func plot(curves []curve) string {
	const width, height, left, gap = 720.0, 90.0, 170.0, 24.0
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" font-family="sans-serif" font-size="12">`+"\n",
		width, float64(len(curves))*(height+gap)+gap)
	for i, c := range curves {
		top := gap/2 + float64(i)*(height+gap)
		low, high := math.Min(0, slices.Min(c.y)), slices.Max(c.y)
		if high == low {
			high = low + 1
		}
		span := math.Max(c.x[len(c.x)-1]-c.x[0], 1e-9)
		var points []string
		for k := range c.x {
			points = append(points, fmt.Sprintf("%.1f,%.1f", left+(width-left-10)*(c.x[k]-c.x[0])/span, top+height*(1-(c.y[k]-low)/(high-low))))
		}
		fmt.Fprintf(&b, `<rect x="%.0f" y="%.1f" width="%.0f" height="%.0f" fill="none" stroke="#ccc"/>`+"\n", left, top, width-left-10, height)
		fmt.Fprintf(&b, `<polyline fill="none" stroke="#0b5394" stroke-width="1.5" points="%s"/>`+"\n", strings.Join(points, " "))
		fmt.Fprintf(&b, `<text x="4" y="%.1f">%s</text><text x="4" y="%.1f" fill="#777">%.3g .. %.3g</text>`+"\n",
			top+height/2, html.EscapeString(c.name), top+height/2+16, low, slices.Max(c.y))
	}
	return b.String() + "</svg>\n"
}

func TestPlotHasEveryCurveInsideItsFrame(t *testing.T) {
	text := plot([]curve{{name: "heap & more", x: []float64{0, 1, 2}, y: []float64{5, 10, 0}}, {name: "flat", x: []float64{0, 1}, y: []float64{3, 3}}})
	for _, want := range []string{"heap &amp; more", "170.0,57.0 440.0,12.0 710.0,102.0", "flat", "</svg>"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
