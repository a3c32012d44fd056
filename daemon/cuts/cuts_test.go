package cuts

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"lacuna/internal/checkout"
	"lacuna/internal/powercut"
)

// How many cuts are made, and after how many of them the service is started
// again. The long suite is `make cuts`.
const (
	shortCuts, shortRestarts = 240, 8

	cutsEnv, restartsEnv, seedEnv = "LACUNA_CUTS", "LACUNA_RESTARTS", "LACUNA_SEED"

	enough = 5 // cuts that lose something: more say the same again
)

func TestPowerCuts(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a service many times")
	}
	r := record(t, newSite(t))
	t.Run("nothing that was told is lost", r.testNothingIsLost)
	for _, bug := range unsynced {
		t.Run("caught: "+bug.name, func(t *testing.T) { r.testCaught(t, bug) })
	}
}

// However the power goes, and whatever of the writes that were not synced is on
// the disk: every product, granule, model and delivery that anybody was told of
// is there, byte for byte, and the service that is started again comes to the end
// that it would have come to.
func (r *recording) testNothingIsLost(t *testing.T) {
	cuts, restarts := shortCuts, shortRestarts
	if n := number(t, cutsEnv); n > 0 {
		cuts, restarts = n, number(t, restartsEnv)
	}
	seed := uint64(number(t, seedEnv))
	images, bad := map[string]bool{}, 0
	for i, cut := range r.plan(r.log, seed, cuts) {
		if sum := r.log.Image(cut).Sum(); !images[sum] {
			images[sum] = true
			if wrong := r.cut(t, r.log, cut, i < restarts); len(wrong) > 0 {
				t.Errorf("cut %+v of seed %d:\n%s", cut, seed, strings.Join(wrong, "\n"))
				bad++
			}
		}
		if bad == enough {
			break
		}
		if (i+1)%100 == 0 {
			t.Logf("%d cuts, %d of them lost something", i+1, bad)
		}
	}
	t.Logf("%d changes, %d syncs; %d cuts, %d different disks, seed %d", r.log.Len(), len(r.log.Syncs()), cuts, len(images), seed)
}

// number returns a number of the environment; 0: none is set.
func number(t *testing.T, name string) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(fmt.Errorf("%s: %w", name, err))
	}
	return n
}

// plan returns n cuts in random order: before and after every sync, and between.
func (r *recording) plan(log *powercut.Log, seed uint64, n int) []powercut.Cut {
	random := rand.New(rand.NewPCG(seed, 28))
	var all []powercut.Cut
	last := 0
	for round := uint64(0); len(all) < n; round++ {
		for _, at := range append(log.Syncs(), log.Len()-1) {
			for _, fate := range powercut.Fates() {
				all = append(all, powercut.Cut{At: at, Fate: fate, Seed: seed + round}, powercut.Cut{At: at + 1, Fate: fate, Seed: seed + round},
					powercut.Cut{At: last + random.IntN(at-last+1), Fate: fate, Seed: seed + round})
			}
			last = at
		}
		last = 0
	}
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:n]
}

// cut puts the image of a cut on the disk, checks it, starts the service again
// and returns what was wrong.
func (r *recording) cut(t *testing.T, log *powercut.Log, at powercut.Cut, restart bool) []string {
	t.Helper()
	checkout.RemoveTree(r.disk)
	if err := os.Mkdir(r.disk, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := log.Image(at).WriteTo(r.disk); err != nil {
		t.Fatal(err)
	}
	here := *r // the topics go on after a restart
	c := &checker{recording: &here}
	marks := log.Marks(at.At)
	c.image(t, marks)
	if restart && len(c.wrong) == 0 {
		c.restart(t, marks)
	}
	return c.wrong
}
