package daemon

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/fill/filltest"
	"lacuna/daemon/operate"
	"lacuna/ledger"
	"lacuna/modelstore"
	"lacuna/pipeline/engine/ort"
	"lacuna/publish"
)

// newChampioned returns a bench whose dataset has a champion with members.
func newChampioned(t *testing.T) (*bench, string) {
	t.Helper()
	if _, err := ort.LibraryPath(""); err != nil {
		t.Skip(err)
	}
	b := newBench(t)
	b.cfg.Train.Store, b.cfg.Train.Engine = filepath.Join(t.TempDir(), "store"), "ort"
	b.cfg.Datasets[0].Name, b.cfg.Datasets[0].Fill.Method = "chl", "auto"
	files := filltest.UntrainedFiles(t, 1)
	delete(files, modelstore.ScalingFile) // fields are scaled by the days around them
	return b, filltest.Promote(t, modelstore.New(b.cfg.Train.Store, time.Now), files)
}

// told returns the descriptions of all revisions of a granule, oldest first.
func told(t *testing.T, book *ledger.Ledger, dataset, granule string) []publish.Product {
	t.Helper()
	all, err := book.Publications(t.Context(), dataset, time.Time{}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	var out []publish.Product
	for _, p := range all {
		var product publish.Product
		if err := json.Unmarshal([]byte(p.Body), &product); err != nil {
			t.Fatal(err)
		}
		if p.Granule == granule {
			out = append(out, product)
		}
	}
	return out
}

// recursiveJump is the sampling of a full product.
var recursiveJump = publish.Sampling{Tier: "full", Members: 16, Sampler: "recursive jump, 3 stages, 39 steps", Mean: "one-step"}

// Without a word about tiers in the configuration, a small sea is filled by
// recursive jump, and the file says so; what was measured is kept.
func TestASmallSeaIsFilledByRecursiveJumpByDefault(t *testing.T) {
	oneByOne(t)
	b, model := newChampioned(t)
	w := world(t, 24, 32)
	day := firstVersions(w, 1)[0]
	put(t, b.archive(), w.Granule(day))
	if s := b.once(t); s.Products != 1 {
		t.Fatalf("Once() = %+v, want a product\n%s", s, b.log)
	}
	got := told(t, b.book(t), "chl", day.Name)
	if len(got) != 1 || got[0].Sampling == nil || *got[0].Sampling != recursiveJump || got[0].Model != model {
		t.Fatalf("revisions %+v, want one of %+v", got, recursiveJump)
	}
	attrs := map[string]any{}
	for _, a := range read(t, b.products(t)[0], "CHL").Source.Attrs {
		attrs[a.Name] = a.Value
	}
	if attrs["lacuna_tier"] != "full" || attrs["lacuna_sampler"] != recursiveJump.Sampler || attrs["lacuna_mean"] != "one-step" {
		t.Errorf("the file says %v, %v, %v", attrs["lacuna_tier"], attrs["lacuna_sampler"], attrs["lacuna_mean"])
	}
	if kept, err := os.ReadFile(b.cfg.state().Speeds()); err != nil || !strings.Contains(string(kept), model) {
		t.Errorf("kept speeds %s, %v", kept, err)
	}
}

// A live product that the tier full would hold up comes by the tier fast, and is
// superseded without anything else having come.
func TestALiveProductComesFastFirstWhereFullTakesLonger(t *testing.T) {
	b, _ := newChampioned(t)
	b.cfg.Datasets[0].Fill.Network.Prompt = time.Nanosecond
	w := world(t, 24, 32)
	day := firstVersions(w, 1)[0]
	put(t, b.archive(), w.Granule(day))
	if s := b.once(t); s.Products != 2 {
		t.Fatalf("Once() = %+v, want two products\n%s", s, b.log)
	}
	got := told(t, b.book(t), "chl", day.Name)
	if len(got) != 2 {
		t.Fatalf("%d revisions, want the fast one and the full one\n%s", len(got), b.log)
	}
	if want := (publish.Sampling{Tier: "fast", Follows: "full"}); got[0].Sampling == nil || *got[0].Sampling != want {
		t.Errorf("first came %+v, want %+v", got[0].Sampling, want)
	}
	if got[1].Sampling == nil || *got[1].Sampling != recursiveJump || got[1].Supersedes != 1 {
		t.Errorf("then came %+v over revision %d, want %+v over 1", got[1].Sampling, got[1].Supersedes, recursiveJump)
	}
	if s := b.once(t); s.Products != 0 {
		t.Errorf("another pass made %d products", s.Products)
	}
	b.operate(t, func(o *operate.Operations) error {
		story, err := o.Story(t.Context(), "chl", day.Name)
		var text strings.Builder
		for _, l := range story.Lines {
			text.WriteString(l.Text + "\n")
		}
		for _, want := range []string{"tier fast, to be superseded by tier full", "tier full takes longer than a live product may wait", "tier full (16 members by recursive jump"} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("why does not say %q:\n%s", want, text.String())
			}
		}
		return err
	})
}
