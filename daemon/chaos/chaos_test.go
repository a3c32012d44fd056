package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	minutesEnv, seedEnv, eventsEnv = "LACUNA_CHAOS_MINUTES", "LACUNA_SEED", "LACUNA_CHAOS_EVENTS"
	onlyEnv                        = "LACUNA_CHAOS_ONLY" // an expression that the names of nemeses must match

	shortEvents = 8

	// correctedEvery is the number of strikes to one after which a granule is corrected.
	correctedEvery = 5

	// bound is how long no stage may be without progress: by then all that was to be
	// done is, or the campaign has failed. Two polls are what is measured; a machine
	// that runs other tests beside this one takes longer.
	bound = 90 * time.Second
)

// campaign is a run of nemeses against a service.
type campaign struct {
	*site
	producer *producer
	random   *rand.Rand
	table    []nemesis
	deck     []nemesis // those that have not struck since it was shuffled
	school   *school   // nil: no model is trained, and none serves

	events     int
	missed     int // events that found nobody
	count      map[string]int
	recoveries []recovery
	spent      map[string]time.Duration // time by what it went to
	former     string                   // granule of the strike before
	corrected  int                      // granules that their producer has corrected
	late       []string                 // what was open two polls after the last event
	orders     []func() error           // what an operator does after the event, when all is mended
	strange    []claim                  // what a second daemon says that it published while the first one worked
}

// recovery is how long it took until the lag was normal after an event.
type recovery struct {
	event string
	took  time.Duration
}

func TestChaos(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a service for a minute")
	}
	minutes, most, seed := number(t, minutesEnv), number(t, eventsEnv), uint64(number(t, seedEnv))
	long := minutes > 0 || most > 0
	switch {
	case !long:
		most = shortEvents
	case most == 0:
		most = 1_000_000
	}
	if long && os.Getenv(seedEnv) == "" {
		seed = rand.Uint64N(1_000_000)
	}
	t.Logf("seed %d", seed)
	c := newCampaign(t, seed, long, os.Args[0])
	until := time.Now().Add(time.Duration(minutes) * time.Minute)
	if minutes == 0 {
		until = time.Now().Add(24 * time.Hour)
	}
	wrong := c.run(t.Context(), until, most)
	c.report(t)
	for _, text := range wrong {
		t.Error(text)
	}
}

func newCampaign(t testing.TB, seed uint64, real bool, program string) *campaign {
	t.Helper()
	c := &campaign{site: newSite(t, real, program), random: rand.New(rand.NewPCG(seed, 19)), count: map[string]int{}, spent: map[string]time.Duration{}}
	c.producer = newProducer(t, c.archives, c.top, seed)
	c.producer.hostile = 0.1
	only := regexp.MustCompile(os.Getenv(onlyEnv))
	for _, n := range nemeses() {
		if (real || !n.long) && only.MatchString(n.name) {
			c.table = append(c.table, n)
		}
	}
	return c
}

// run strikes until a time, or a number of events, and returns what is wrong in the
// end.
func (c *campaign) run(ctx context.Context, until time.Time, most int) (wrong []string) {
	for range 3 {
		if _, err := c.producer.deliver(ctx); err != nil {
			return []string{err.Error()}
		}
	}
	normal, err := c.settle(ctx)
	if err != nil {
		return []string{"before anything went wrong: " + err.Error()}
	}
	if slices.ContainsFunc(c.table, func(n nemesis) bool { return n.models }) {
		if err := c.teach(ctx); err != nil {
			return []string{err.Error()}
		}
	}
	c.t.Logf("three granules took %v from the start on, before anything went wrong", normal.Round(100*time.Millisecond))
	before, err := c.figures(ctx)
	if err != nil {
		return []string{err.Error()}
	}
	next := checkEvery(c.events)
	for c.events < most && time.Now().Before(until) {
		event, err := c.strike(ctx)
		if err != nil {
			return []string{fmt.Sprintf("event %d, %s: %v", c.events, event, err)}
		}
		began := time.Now()
		if wrong := c.glance(ctx); len(wrong) > 0 {
			return append(wrong, fmt.Sprintf("found after event %d, %s", c.events, event))
		}
		c.spent["glances"] += time.Since(began)
		if c.events >= next {
			began := time.Now()
			if wrong := check(c.look(ctx, c.producer)); len(wrong) > 0 {
				return append(wrong, fmt.Sprintf("found after event %d, %s", c.events, event))
			}
			c.spent["checks"] += time.Since(began)
			next = checkEvery(c.events)
			c.t.Logf("%d events, all is well", c.events)
		}
	}
	return c.last(ctx, before)
}

// checkEvery returns at which event everything is compared next. A check reads all
// that there is, so that it takes the longer the longer the campaign is.
func checkEvery(events int) int { return events + max(20, events/10) }

// strike lets one thing or two go wrong, mends them, and waits until the service is
// at its normal lag.
func (c *campaign) strike(ctx context.Context) (event string, err error) {
	chosen := []nemesis{c.draw()}
	if other := c.draw(); c.random.IntN(4) != 0 && other.name != chosen[0].name && !other.alone && !chosen[0].alone {
		chosen = append(chosen, other)
	} else {
		c.deck = append(c.deck, other)
	}
	var names []string
	var delivered string
	var heals []func() error
	for i, n := range chosen {
		began := time.Now()
		heal, err := n.strike(ctx, c)
		c.spent["strikes"] += time.Since(began)
		names = append(names, n.name)
		c.count[n.name]++
		c.events++
		if err != nil {
			return n.name, err
		}
		if heal != nil {
			heals = append(heals, heal)
		}
		if i == 0 { // something to go wrong with
			if delivered, err = c.producer.deliver(ctx); err != nil {
				return n.name, err
			}
		}
		last := lasts(c.random) / time.Duration(len(chosen))
		time.Sleep(last)
		c.spent["lasting"] += last
	}
	event = strings.Join(names, " and ")
	began := time.Now()
	slices.Reverse(heals)
	heals, c.orders = append(heals, c.orders...), nil
	for _, heal := range heals {
		if err := heal(); err != nil {
			return event, err
		}
	}
	c.spent["mending"] += time.Since(began)
	if c.former != "" && len(c.recoveries)%correctedEvery == correctedEvery-1 { // its producer has second thoughts
		if err := c.producer.correct(ctx, c.former); err != nil {
			return event, err
		}
		c.corrected++
	}
	c.former = delivered
	if _, err := c.producer.deliver(ctx); err != nil {
		return event, err
	}
	c.late = nil
	took, err := c.settle(ctx)
	c.spent["recoveries"] += took
	if took > 2*poll {
		c.t.Logf("%s: event %d, %s: at its normal lag after %v; after two polls: %v", time.Now().Format(time.TimeOnly), c.events, event, took.Round(100*time.Millisecond), c.late)
	}
	c.recoveries = append(c.recoveries, recovery{event, took})
	return event, err
}

// draw returns the nemesis that strikes next. Each strikes once before any strikes
// again: what only one of them shows is seen in as long as a round of them takes.
func (c *campaign) draw() nemesis {
	if len(c.deck) == 0 {
		c.deck = slices.Clone(c.table)
		c.random.Shuffle(len(c.deck), func(i, j int) { c.deck[i], c.deck[j] = c.deck[j], c.deck[i] })
	}
	next := c.deck[0]
	c.deck = c.deck[1:]
	return next
}

// glance checks after every event what costs little, and what a later event could
// cover up: a good granule that was set aside is whole again when its producer corrects
// it, and what a second daemon has published is adopted when the first is restarted.
func (c *campaign) glance(ctx context.Context) []string {
	all := expected(c.producer)
	book, err := c.ledger(ctx)
	if err != nil {
		return []string{err.Error()}
	}
	defer book.Close()
	if all.fates, err = fates(ctx, book); err != nil {
		return []string{err.Error()}
	}
	wrong := checkFates(all)
	if len(c.strange) > 0 {
		all = c.look(ctx, c.producer)
		wrong, c.strange = slices.Concat(wrong, all.wrong, checkStrange(all.claims, c.strange)), nil
	}
	return wrong
}

// settle waits until everything is done, and returns how long that took.
func (c *campaign) settle(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	for {
		open := c.behind(ctx, c.producer)
		if len(open) == 0 {
			return time.Since(began), nil
		}
		if c.late == nil && time.Since(began) > 2*poll {
			c.late = open
		}
		if time.Since(began) > bound {
			return bound, fmt.Errorf("no end after %v:\n%s", bound, strings.Join(open, "\n"))
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// last ends the service and checks all that it leaves.
func (c *campaign) last(ctx context.Context, before figures) []string {
	all := c.look(ctx, c.producer)
	all.before = before
	var err error
	for range 50 { // a daemon that has just been started again does not listen yet
		if all.after, err = c.figures(ctx); err == nil {
			break
		}
		time.Sleep(200 * time.Millisecond)
	}
	unsound := c.graduate(ctx)
	c.sweep()
	all.left = c.leftovers()
	wrong := append(check(all), unsound...)
	if err != nil {
		wrong = append(wrong, err.Error())
	}
	c.t.Logf("%d objects in each archive, %d of them no granules and %d corrected, %d claims compared; %.0f descriptors and %.0f goroutines at rest, %.0f and %.0f at first",
		len(c.producer.current), len(c.producer.spoiled), c.corrected, len(all.claims), all.after.descriptors, all.after.goroutines, before.descriptors, before.goroutines)
	return wrong
}

// sweep ends everything, after a worker and a daemon were started once more: they
// remove what those that were killed have left, in the shared folder after an hour.
func (c *campaign) sweep() {
	if err := os.WriteFile(c.clock, []byte("2h"), 0o644); err != nil {
		c.t.Error(err)
	}
	for _, p := range c.processes() {
		p.hold()
		p.release()
	}
	for range 150 { // until it serves its pages again, and has had its turn
		if _, err := c.figures(c.t.Context()); err == nil && len(c.leftovers()) == 0 {
			break
		}
		time.Sleep(200 * time.Millisecond)
	}
	for _, p := range c.processes() {
		p.end()
	}
}

// report prints how long recoveries took.
func (c *campaign) report(t testing.TB) {
	t.Helper()
	t.Logf("%d events, %d of which found nothing: %v", c.events, c.missed, c.count)
	for _, what := range slices.Sorted(maps.Keys(c.spent)) {
		t.Logf("  %v went to %s", c.spent[what].Round(time.Second), what)
	}
	slices.SortFunc(c.recoveries, func(a, b recovery) int { return int(a.took - b.took) })
	if len(c.recoveries) == 0 {
		return
	}
	within := 0
	for _, r := range c.recoveries {
		if r.took <= 2*poll {
			within++
		}
	}
	at := func(share float64) time.Duration {
		return c.recoveries[int(share*float64(len(c.recoveries)-1))].took.Round(100 * time.Millisecond)
	}
	t.Logf("recovery to normal lag: median %v, 90 %% within %v, longest %v; %d of %d within two polls (%v)", at(0.5), at(0.9), at(1), within, len(c.recoveries), 2*poll)
	for _, r := range c.recoveries[max(len(c.recoveries)-5, 0):] {
		t.Logf("  %v after %s", r.took.Round(100*time.Millisecond), r.event)
	}
}

// number returns a number of the environment; 0: none is set.
func number(t testing.TB, name string) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(errors.Join(fmt.Errorf("%s is no number", name), err))
	}
	return n
}
