package daemon

import (
	_ "embed"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

//go:embed testdata/audit.js
var audit string

// rawNumber is a duration as Go writes it, or a number with more digits than
// anybody measures.
var rawNumber = regexp.MustCompile(`\b[0-9]+(h[0-9]+)?m[0-9.]+s\b|\b[0-9]+\.[0-9]{7,}`)

func TestPagesAreSoundInARealBrowser(t *testing.T) {
	skipInShort(t)
	s := openSite(t, 40, 60, 8)
	champion := s.addModels(t)
	b := openBrowser(t, s.at)
	aside := granuleAside(t, s)
	for _, window := range []struct {
		name          string
		width, height int64
		dark          bool
	}{
		{"light", 1280, 900, false}, {"dark", 1280, 900, true}, {"telephone", 360, 740, false}, {"dark telephone", 360, 740, true},
	} {
		b.window(t, window.width, window.height, window.dark)
		for _, path := range []string{"/", "/datasets/black-sea", s.day(2), s.day(4), aside, "/models"} {
			b.open(t, path)
			if strings.HasPrefix(path, "/datasets/black-sea/") && path != s.day(2) {
				b.await(t, "the map", `document.getElementById("maps")?.dataset.ready`)
			}
			for _, wrong := range ask[[]string](t, b, audit) {
				t.Errorf("%s, %s: %s", window.name, path, wrong)
			}
			if raw := rawNumber.FindString(b.text(t, "main")); raw != "" {
				t.Errorf("%s, %s: nobody reads %q", window.name, path, raw)
			}
			if faults := b.faults(); len(faults) > 0 {
				t.Errorf("%s, %s: the browser says %q", window.name, path, faults)
			}
		}
	}
	b.await(t, "the picture of what judged the champion", `document.querySelector('img[src="/models/`+champion+`.png"]')?.naturalWidth === 4`)
	said := b.text(t, "main")
	for _, want := range []string{champion + " champion", "promoted " + champion, "by gate <b>", "its error is lower", "Scores on 12 overlays", "mse 0.25 0.31", "cbgd 1.01 –"} {
		if !strings.Contains(said, want) {
			t.Errorf("the page of the models lacks %q; it says %q", want, said)
		}
	}
}

// granuleAside returns the page of the granule that was set aside.
func granuleAside(t *testing.T, s *site) string {
	t.Helper()
	return "/granule?" + url.Values{"dataset": {"black-sea"}, "name": {filepath.Base(spoiltOf(t, s))}}.Encode()
}

// spoiltOf returns the file that cannot be read.
func spoiltOf(t *testing.T, s *site) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(s.archive(), "*<i>.nc"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	return found[0]
}

func TestCalendarIsWalkedByKeys(t *testing.T) {
	skipInShort(t)
	s := openSite(t, 24, 32, 8)
	b := openBrowser(t, s.at)
	b.open(t, "/datasets/black-sea")
	reached := ask[int](t, b, `[...document.querySelectorAll(".month a")].filter((a) => a.tabIndex === 0).length`)
	if reached != 1 {
		t.Errorf("Tab stops at %d days, want one", reached)
	}
	var order []string
	for range 12 {
		b.do(t, chromedp.KeyEvent(kb.Tab))
		order = append(order, ask[string](t, b, `document.activeElement.getAttribute("aria-label") ?? document.activeElement.innerText`))
		if ask[bool](t, b, `Boolean(document.activeElement.closest(".month"))`) {
			break
		}
	}
	if len(order) < 4 || order[0] != "Skip to content" || !strings.Contains(order[len(order)-1], "set aside") {
		t.Fatalf("Tab goes through %q, want the way past the links at first and the last day at the end", order)
	}
	b.do(t, chromedp.KeyEvent(kb.ArrowLeft))
	last := s.time(7)
	if got := ask[string](t, b, "document.activeElement.id"); got != last.Format(time.DateOnly) {
		t.Errorf("the day before the last is %s, want %s", got, last.Format(time.DateOnly))
	}
	if got := ask[string](t, b, `document.activeElement.getAttribute("aria-label")`); !strings.Contains(got, "filled") {
		t.Errorf("its name is %q, want its state in it", got)
	}
	b.do(t, chromedp.KeyEvent(kb.Enter))
	b.await(t, "the page of the granule", `location.pathname === "/granule" && document.getElementById("maps")?.dataset.ready`)
	b.open(t, s.day(2))
	if said := b.text(t, "main"); !strings.Contains(said, "The archive has no granule of this time") {
		t.Errorf("the page of a missing day says %q", said)
	}
}

func TestPageFollowsTheDaemonWithoutAReload(t *testing.T) {
	skipInShort(t)
	s := openSite(t, 24, 32, 6)
	b := openBrowser(t, s.at)
	b.open(t, "/datasets/black-sea")
	missing := s.world.Granule(s.days[2])
	id := missing.Seen.Time.UTC().Format(time.DateOnly)
	state := fmt.Sprintf(`document.getElementById(%q).className`, id)
	if got := ask[string](t, b, state); !strings.Contains(got, "s-no-granule") {
		t.Fatalf("the missing day is %q", got)
	}
	b.do(t, chromedp.Focus(chromedp.CSS(`[id="`+id+`"]`)))
	ask[bool](t, b, `window.sameDocument = true`)
	put(t, s.archive(), missing)
	b.await(t, "the day filled", state+`.includes("s-near-real-time") || `+state+`.includes("s-delayed")`)
	if !ask[bool](t, b, `window.sameDocument === true`) {
		t.Error("the page was loaded again")
	}
	if got := ask[string](t, b, "document.activeElement.id"); got != id {
		t.Errorf("the focus went to %q, want it to stay on %s", got, id)
	}
	if faults := b.faults(); len(faults) > 0 {
		t.Errorf("the browser says %q", faults)
	}
}

func TestActionNeedsTheTokenInTheBrowserToo(t *testing.T) {
	skipInShort(t)
	s := openSite(t, 24, 32, 4)
	b := openBrowser(t, s.at)
	name := filepath.Base(spoiltOf(t, s))
	b.open(t, "/granule?"+url.Values{"dataset": {"black-sea"}, "name": {name}}.Encode())
	try := func(token, want string) {
		t.Helper()
		b.do(t, chromedp.SendKeys(chromedp.CSS(`.act input[name=token]`), token), chromedp.Click(chromedp.CSS(".act button")))
		b.await(t, want, fmt.Sprintf(`document.querySelector(".act output").innerText.includes(%q)`, want))
	}
	try("a wrong token of some length", "missing or wrong")
	before := strings.Count(b.text(t, ".history"), "set aside")
	try(s.token, "taken up again")
	b.await(t, "the second attempt", fmt.Sprintf(`(document.querySelector(".history").innerText.match(/set aside/g) ?? []).length > %d`, before))
	refused := func(fault string) bool { return strings.Contains(fault, "401") } // the page reports this one, as it should
	if faults := slices.DeleteFunc(b.faults(), refused); len(faults) > 0 {
		t.Errorf("the browser says %q", faults)
	}
}

func TestATrainingIsPausedFromThePage(t *testing.T) {
	skipInShort(t)
	s := openSite(t, 24, 32, 4)
	b := openBrowser(t, s.at)
	b.open(t, "/models")
	if said := b.text(t, "#training"); !strings.Contains(said, "every Sunday at 02:00 UTC") || !strings.Contains(said, "not training") {
		t.Errorf("the page says %q", said)
	}
	b.do(t, chromedp.SendKeys(chromedp.CSS(`.act input[name=token]`), s.token), chromedp.Click(chromedp.CSS(".act button")))
	b.await(t, "the answer", `document.querySelector(".act output").innerText.includes("the training of black-sea is paused")`)
	b.await(t, "the page to follow", `document.querySelector("#training").innerText.includes("paused by a visitor")`)
	all, err := s.cfg.Operate().Trainings("black-sea", time.Now())
	if err != nil || all[0].State != "paused" {
		t.Errorf("%+v, %v", all, err)
	}
	if faults := b.faults(); len(faults) > 0 {
		t.Errorf("the browser says %q", faults)
	}
}
