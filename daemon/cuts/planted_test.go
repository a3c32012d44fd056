package cuts

import (
	"strings"
	"testing"

	"lacuna/internal/checkout"
	"lacuna/internal/powercut"
)

// unsynced are bugs planted into the log: that of a service without a sync is the
// log without it, for a program does not see what a sync does.
var unsynced = []struct {
	name string
	sync func(path string, folder bool) bool // the sync that is left out
}{
	{"told before the ledger was synced", func(path string, folder bool) bool { return strings.HasPrefix(path, "state/ledger.db") && !folder }},
	{"product renamed before it was synced", func(path string, folder bool) bool { return strings.Contains(path, "/.revisions/") && !folder }},
	{"folder of the spool not synced", func(path string, folder bool) bool { return strings.HasPrefix(path, "state/spool/") && folder }},
	{"folder of a visible product not synced", func(path string, folder bool) bool {
		return strings.HasPrefix(path, "products/sea/2") && folder
	}},
	{"shard of a Zarr store renamed before it was synced", func(path string, folder bool) bool { return strings.HasPrefix(path, "zarr/") && !folder }},
	{"model promoted before its files were synced", func(path string, folder bool) bool { return strings.HasPrefix(path, "models/incoming/") && !folder }},
	{"offset stored before the file", func(path string, folder bool) bool { return strings.HasPrefix(path, "consumed/") && !folder }},
	{"offset stored before the folder", func(path string, folder bool) bool { return strings.HasPrefix(path, "consumed/") && folder }},
}

// catchCuts is within how many cuts a planted bug must be found, without a
// restart: some seconds.
const catchCuts = 600

// testCaught checks that the checker finds a planted bug.
func (r *recording) testCaught(t *testing.T, bug struct {
	name string
	sync func(path string, folder bool) bool
},
) {
	log, err := r.log.Without(bug.sync)
	if err != nil {
		t.Fatal(err)
	}
	r.wantCaught(t, log)
}

func (r *recording) wantCaught(t *testing.T, log *powercut.Log) {
	t.Helper()
	for i, cut := range r.plan(log, 0, catchCuts) {
		if wrong := r.cut(t, log, cut, false); len(wrong) > 0 {
			t.Logf("cut %d, %+v: %s", i+1, cut, wrong[0])
			return
		}
	}
	t.Errorf("not caught by %d cuts", catchCuts)
}

// mutants are bugs planted into the source of a program that is built for it.
var mutants = []struct {
	name, file, code, planted string
}{
	{"told before the ledger was synced", "ledger/ledger.go", `"synchronous(FULL)"`, `"synchronous(OFF)"`},
	{"product renamed before it was synced", "publish/disk/files.go", `errors.Join(err, f.Sync(), f.Close())`, `errors.Join(err, f.Close())`},
	{"folder of the spool not synced", "fetch/spool.go", `	return durable.Sync(folder)`, `	return nil`},
	{"folder not synced when it is made", "internal/durable/durable.go", `	return Sync(parent)`, `	return nil`},
	{
		"offset stored before the file", "publish/kafka/consumer/follow.go", `		whole, err := f.handOver(ctx, e, m)`,
		`		_ = f.commit(m.Offset + 1)
		whole, err := f.handOver(ctx, e, m)`,
	},
}

// The same with the source changed, so that it is the code that is judged and not
// the log. It builds the program for each, hence only beside the long run.
func TestCutsCatchBugsInTheSource(t *testing.T) {
	if number(t, cutsEnv) == 0 {
		t.Skip("builds the program again and again; make cuts runs it")
	}
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			s := newSite(t)
			s.program = checkout.Planted(t, "lacuna/daemon/cuts", m.file, m.code, m.planted)
			r := record(t, s)
			r.wantCaught(t, r.log)
		})
	}
}
