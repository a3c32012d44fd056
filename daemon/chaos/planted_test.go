package chaos

import (
	"os"
	"testing"
	"time"

	"lacuna/internal/checkout"
)

// mutants are bugs planted into the source of a program that is built for it. Those
// that only a power cut shows, such as a sync that is left out, are those of cuts: a
// process that is killed loses no write.
var mutants = []struct {
	name, file, code, planted string
}{
	{
		"content compared without sha256", "fetch/pass.go", `	if a.granule.SHA256 == a.action.Known.SHA256 {`,
		`	if a.action.Known.SHA256 != "" {`,
	},
	{
		"delivery recorded before it was made", "publish/dispatcher.go", `	err := d.attempt(ctx, one)
	switch {`,
		`	_ = d.queue.Delivered(ctx, one)
	err := d.attempt(ctx, one)
	switch {`,
	},
	{
		"lock of the folder of products left out", "publish/disk/lock.go", `	err = unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB)`,
		`	_ = unix.LOCK_NB`,
	},
	{"granule set aside because a disk failed", "daemon/work/task.go", `		case errors.As(err, &bad):`, `		case errors.As(err, &bad) || err != nil && ctx.Err() == nil:
			if bad == nil {
				bad = &ingest.BadGranule{File: g.Name, Problem: err.Error()}
			}`},
}

// catchWithin is the time in which a planted bug must be caught.
const catchWithin = 5 * time.Minute

func TestChaosCatchesPlantedBugs(t *testing.T) {
	if os.Getenv("LACUNA_LONG") == "" {
		t.Skip("builds the program again and again; set LACUNA_LONG=1")
	}
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			program := checkout.Planted(t, "lacuna/daemon/chaos", m.file, m.code, m.planted)
			c := newCampaign(t, uint64(number(t, seedEnv)), false, program)
			began := time.Now()
			wrong := c.run(t.Context(), began.Add(catchWithin), 1_000_000)
			if len(wrong) == 0 {
				t.Fatalf("not caught by %d events", c.events)
			}
			t.Logf("caught after %v and %d events: %s", time.Since(began).Round(time.Second), c.events, wrong[0])
		})
	}
}
