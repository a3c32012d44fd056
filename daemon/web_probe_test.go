package daemon

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

func TestProbeShowsWhatIsInTheFile(t *testing.T) {
	skipInShort(t)
	s := openSite(t, 40, 60, 6)
	b := openBrowser(t, s.at)
	b.window(t, 1280, 1000, false)
	b.open(t, s.day(4))
	b.await(t, "the map", `document.getElementById("maps").dataset.ready`)
	for _, name := range []string{"before", "after", "sigma", "flags"} {
		colours := ask[int](t, b, fmt.Sprintf(`(() => {
			const c = document.getElementById("map-%s");
			const px = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
			const seen = new Set();
			for (let i = 0; i < px.length; i += 4) seen.add(px[i] << 16 | px[i+1] << 8 | px[i+2]);
			return seen.size;
		})()`, name))
		if least := map[bool]int{true: 3, false: 20}[name == "flags"]; colours < least {
			t.Errorf("map %s has %d colours, want at least %d", name, colours, least)
		}
	}

	file := s.product(t, 4)
	values, sigmas, flags := read(t, file, "CHL"), read(t, file, "CHL_uncertainty"), raw(t, read(t, file, "flags"), "flags")
	grid := values.Fields[0].Grid
	north := grid.Lat[0] > grid.Lat[len(grid.Lat)-1]
	check := func(what string) {
		t.Helper()
		p := b.probe(t)
		row := p.row
		if !north {
			row = len(grid.Lat) - 1 - p.row
		}
		cell := row*len(grid.Lon) + p.col
		if p.flags != int(flags[cell]) {
			t.Errorf("%s: the probe says flag %d at row %d, column %d, the file %d", what, p.flags, row, p.col, flags[cell])
		}
		if want := values.Fields[0].Values[cell]; !same(p.value, want) {
			t.Errorf("%s: the probe says %v at row %d, column %d, the file %v", what, p.value, row, p.col, want)
		}
		if want := sigmas.Fields[0].Values[cell]; !same(p.sigma, want) {
			t.Errorf("%s: the probe says ±%v at row %d, column %d, the file %v", what, p.sigma, row, p.col, want)
		}
		if where := fmt.Sprintf("%.3f° N %.3f° E", grid.Lat[row], grid.Lon[p.col]); !strings.Contains(p.text, where) {
			t.Errorf("%s: the probe says %q, want %s in it", what, p.text, where)
		}
	}
	for _, at := range [][2]float64{{0.3, 0.6}, {0.52, 0.4}, {0.71, 0.66}, {0.02, 0.02}, {0.97, 0.5}} {
		b.point(t, "map-after", input.DispatchMouseEventTypeMouseMoved, at[0], at[1])
		check(fmt.Sprintf("pointer at %v", at))
	}

	b.point(t, "map-sigma", input.DispatchMouseEventTypeMousePressed, 0.45, 0.5)
	b.point(t, "map-sigma", input.DispatchMouseEventTypeMouseReleased, 0.45, 0.5)
	before := b.probe(t)
	b.do(t, chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowDown))
	check("keys")
	if after := b.probe(t); after.col != before.col+1 || after.row != before.row+2 {
		t.Errorf("one to the right and two down of %d, %d is %d, %d", before.row, before.col, after.row, after.col)
	}

	whole := ask[string](t, b, `document.getElementById("map-before").toDataURL()`)
	b.do(t, chromedp.KeyEvent("+"), chromedp.KeyEvent("+"))
	b.zoomed(t, 2.25)
	if ask[string](t, b, `document.getElementById("map-before").toDataURL()`) == whole {
		t.Error("a zoom on the uncertainty left the map before as it was")
	}
	b.point(t, "map-flags", input.DispatchMouseEventTypeMouseMoved, 0.31, 0.62)
	check("pointer on a zoomed map")
	b.point(t, "map-before", input.DispatchMouseEventTypeMouseWheel, 0.31, 0.62)
	b.point(t, "map-before", input.DispatchMouseEventTypeMouseMoved, 0.32, 0.62)
	check("pointer after a turn of the wheel")
	b.do(t, chromedp.Click(chromedp.CSS("#zoom-all")))
	b.zoomed(t, 1)
	if faults := b.faults(); len(faults) > 0 {
		t.Errorf("the browser says %q", faults)
	}
}

func same(a, b float32) bool { return a == b || (a != a && b != b) }

// probed is the reading of the probe on a map.
type probed struct {
	row, col, flags int
	value, sigma    float32 // NaN: none
	text            string
}

func (b *browser) probe(t *testing.T) probed {
	t.Helper()
	data := ask[map[string]string](t, b, `({...document.getElementById("probe").dataset})`)
	number := func(key string) float32 {
		x, err := strconv.ParseFloat(data[key], 64)
		if err != nil {
			return float32(math.NaN())
		}
		return float32(x)
	}
	return probed{
		row: int(number("row")), col: int(number("col")), flags: int(number("flags")),
		value: number("value"), sigma: number("sigma"), text: b.text(t, "#probe"),
	}
}

// point sends a mouse event to a place of a map, given as shares of its width and
// height.
func (b *browser) point(t *testing.T, id string, what input.DispatchMouseEventType, x, y float64) {
	t.Helper()
	at := ask[[]float64](t, b, fmt.Sprintf(`(() => {
		const canvas = document.getElementById(%q);
		canvas.scrollIntoView({block: "nearest", behavior: "instant"});
		const box = canvas.getBoundingClientRect();
		return [box.left + %v * box.width, box.top + %v * box.height];
	})()`, id, x, y))
	b.do(t, chromedp.MouseEvent(what, at[0], at[1], func(p *input.DispatchMouseEventParams) {
		switch what {
		case input.DispatchMouseEventTypeMouseWheel:
			p.DeltaX, p.DeltaY = 1, -120 // the protocol leaves out a zero, and the browser needs it
		case input.DispatchMouseEventTypeMousePressed, input.DispatchMouseEventTypeMouseReleased:
			p.Button, p.ClickCount = input.MouseButtonLeft, 1
		}
	}))
}

func (b *browser) zoomed(t *testing.T, want float64) {
	t.Helper()
	b.await(t, fmt.Sprintf("a zoom of %v", want), fmt.Sprintf(`Math.abs(Number(document.getElementById("stage").dataset.zoom) - %v) < 0.01`, want))
}
