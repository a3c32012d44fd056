package daemon

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"lacuna/internal/figure"
)

// axe returns the program that looks for what keeps people from using a page.
func axe(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(os.Getenv("LACUNA_AXE"), "axe-*.min.js"))
	if err != nil || os.Getenv("LACUNA_AXE") == "" || len(found) != 1 {
		t.Skip("LACUNA_AXE is no folder with axe-core: ops/setup/axe.sh puts it there")
	}
	program, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	return string(program)
}

// violations has axe look at the page and returns what it finds.
const violations = `globalThis.found = null; axe.run(document, {resultTypes: ["violations"]}).then((r) =>
	r.violations.flatMap((v) => v.nodes.map((n) => v.id + " (" + v.impact + "): " + n.target.join(" ") + ": " + n.failureSummary))).then((found) => { globalThis.found = found; }); true`

// violations returns what axe finds, which is in the page.
func (b *browser) violations(t *testing.T) []string {
	t.Helper()
	ask[bool](t, b, violations)
	b.await(t, "axe's report", `globalThis.found`)
	return ask[[]string](t, b, `globalThis.found`)
}

// weight adds up the bytes of a page as they came over the line, without the maps
// and pictures.
const weight = `performance.getEntriesByType("navigation").concat(performance.getEntriesByType("resource"))
	.filter((e) => !/\.png$|\/map|\/products\//.test(new URL(e.name).pathname) && e.initiatorType !== "img")
	.reduce((sum, e) => sum + e.transferSize, 0)`

// On a telephone, in light and in dark, nobody is kept from using any page.
func TestPagesCanBeUsedByEverybody(t *testing.T) {
	skipInShort(t)
	program := axe(t)
	s, pages := everyPage(t)
	b := openBrowser(t, s.at)
	for _, dark := range []bool{false, true} {
		b.window(t, 360, 740, dark)
		for _, path := range pages {
			b.open(t, path)
			ask[bool](t, b, program+"; true")
			for _, wrong := range b.violations(t) {
				t.Errorf("%s, dark %v: %s", path, dark, strings.Join(strings.Fields(wrong), " "))
			}
		}
	}
	ask[bool](t, b, `document.querySelector("main").insertAdjacentHTML("beforeend", "<img src='/icon.svg'>"), true`)
	if found := b.violations(t); len(found) != 1 || !strings.Contains(found[0], "image-alt") {
		t.Errorf("axe does not see a picture without an alternative: %q", found)
	}
}

// A page is small enough for a line at sea: at most 100 kB without its maps, and
// there within seconds at 50 kB/s.
func TestPagesComeOverASlowLine(t *testing.T) {
	skipInShort(t)
	s, pages := everyPage(t)
	b := openBrowser(t, s.at)
	const most, slow = 100_000, 50_000 // bytes, bytes a second
	b.do(t, b.command(func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, network.SetCacheDisabled, network.SetCacheDisabledParams{CacheDisabled: true})
		if err != nil {
			return err
		}
		_, err = chromedp.Call(ctx, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
			MatchedNetworkConditions: []*network.Conditions{{Latency: 600, DownloadThroughput: slow, UploadThroughput: slow}}, // by satellite
		})
		return err
	}))
	b.window(t, 360, 740, false)
	for _, path := range pages {
		began := time.Now()
		b.open(t, path)
		took := time.Since(began)
		bytes := ask[float64](t, b, weight)
		t.Logf("%s: %s, there after %s", path, figure.Bytes(int64(bytes)), figure.Duration(took))
		if bytes < 1000 || bytes > most {
			t.Errorf("%s has %s without its maps, want at most %s", path, figure.Bytes(int64(bytes)), figure.Bytes(most))
		}
		if took > 15*time.Second {
			t.Errorf("%s took %s at %s a second", path, figure.Duration(took), figure.Bytes(slow))
		}
	}
}

// everyPage returns a site and the paths of a page of each kind.
func everyPage(t *testing.T) (*site, []string) {
	t.Helper()
	s := openSite(t, 40, 60, 8)
	s.addModels(t)
	return s, []string{"/", "/datasets/black-sea", s.day(2), s.day(4), granuleAside(t, s), "/models"}
}
