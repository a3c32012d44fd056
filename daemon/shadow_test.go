package daemon

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lacuna/daemon/intake"
	"lacuna/daemon/shadow"
	"lacuna/internal/cdl"
	"lacuna/pipeline/simulate"
)

// reprocessed returns a granule as a new version of its producer has it: values
// higher by a factor, every tenth of them gone, and a version attribute.
func reprocessed(g simulate.Granule, factor float32, version string) simulate.Granule {
	g.File.Vars, g.File.Attrs = slices.Clone(g.File.Vars), slices.Clone(g.File.Attrs)
	at := slices.IndexFunc(g.File.Vars, func(v cdl.Var) bool { return v.Name == "CHL" })
	raw := slices.Clone(g.File.Vars[at].Raw)
	seen := 0
	for i, v := range g.Seen.Values {
		if v != v { // NaN
			continue
		}
		stored := math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])) * factor
		if seen++; factor != 1 && seen%10 == 0 {
			stored = -999
		}
		binary.LittleEndian.PutUint32(raw[4*i:], math.Float32bits(stored))
	}
	g.File.Vars[at].Raw = raw
	g.File.Attrs = slices.DeleteFunc(g.File.Attrs, func(a cdl.Attr) bool { return a.Name == "product_version" })
	g.File.Attrs = append(g.File.Attrs, cdl.Attr{Name: "product_version", Value: version})
	return g
}

// shadowBench is a service that has filled six days, and an archive with the last
// four of them in a new version.
func shadowBench(t *testing.T) (b *bench, renewed string) {
	t.Helper()
	b, renewed = newBench(t), t.TempDir()
	b.cfg.Datasets[0].Fill.Method = "climatology" // it is not the filling that is tested
	w := world(t, 24, 32)
	for i, d := range firstVersions(w, 6) {
		put(t, b.archive(), reprocessed(w.Granule(d), 1, "1.0"))
		if i >= 2 {
			put(t, renewed, reprocessed(w.Granule(d), 1.25, "2.0"))
		}
	}
	if s := b.once(t); s.Products == 0 {
		t.Fatalf("nothing was filled\n%s", b.log)
	}
	return b, renewed
}

func TestANewVersionIsTriedBesideTheOldOne(t *testing.T) {
	b, renewed := shadowBench(t)
	before, books := b.products(t), b.current(t)
	known, err := b.daemon(t).TryVersion(t.Context(), Trial{Dataset: "sea", Archive: renewed, Days: 30})
	if err != nil {
		t.Fatalf("%v\n%s", err, b.log)
	}
	r := *known.Report
	t.Log(r)
	if len(r.Days) != 4 || len(r.Changed) != 0 || r.Aside != 0 {
		t.Fatalf("the report is %+v, want four days", r)
	}
	total := r.Total()
	want := math.Log10(1.25)
	if math.Abs(total.Bias-want) > 1e-4 || math.Abs(total.RMSE-want) > 1e-4 {
		t.Errorf("bias %.5f and RMSE %.5f, planted was %.5f", total.Bias, total.RMSE, want)
	}
	if share := total.ObservedNew / total.ObservedOld; math.Abs(share-0.9) > 0.01 {
		t.Errorf("the new version observes %.3f of what the old one does, planted was 0.9", share)
	}
	// It was filled, and nobody was told.
	made, err := filepath.Glob(filepath.Join(r.Folder, "sea", "*", "*", "*_l4.nc"))
	if err != nil || len(made) != 4 || !strings.HasPrefix(r.Folder, b.cfg.StateDir) {
		t.Errorf("%d products in %s: %v", len(made), r.Folder, err)
	}
	if !slices.Equal(b.products(t), before) || len(b.current(t)) != len(books) {
		t.Error("the trial has changed the products of the service")
	}
	if s := b.once(t); s.Products != 0 {
		t.Errorf("after the trial the service made %d products", s.Products)
	}
	// Refused, it leaves no trace but the decision.
	if _, err := b.daemon(t).Decide("sea", false, "too high"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(b.cfg.state().Shadow("sea")); !os.IsNotExist(err) {
		t.Errorf("the trial is still on the disk: %v", err)
	}
	after, err := b.daemon(t).Versions("sea")
	if err != nil || !slices.Equal(after.Refused, []string{renewed}) || len(after.Decisions) != 1 || after.Decisions[0].Why != "too high" {
		t.Errorf("after the refusal: %+v, %v", after.Memory, err)
	}
}

// Other grids are told of, and not compared cell by cell.
func TestAVersionOnAnotherGridIsNotComparedButTold(t *testing.T) {
	b, _ := shadowBench(t)
	other, w := t.TempDir(), world(t, 20, 30)
	for _, d := range firstVersions(w, 3) {
		put(t, other, w.Granule(d))
	}
	known, err := b.daemon(t).TryVersion(t.Context(), Trial{Dataset: "sea", Archive: other, Days: 30})
	if err != nil {
		t.Fatalf("%v\n%s", err, b.log)
	}
	if r := known.Report; len(r.Days) != 0 || len(r.Changed) != 1 || !strings.Contains(r.String(), "the grid is") {
		t.Errorf("the report is %+v", r)
	}
}

func TestAnAcceptedVersionIsTheOneInUse(t *testing.T) {
	b := newBench(t)
	set := &b.cfg.Datasets[0]
	set.Archive.Type, set.Archive.CMEMS.Dataset = "cmems", "cmems_obs-oc_blk_bgc-plankton_my_l3-multi-1km_P1D"
	d := b.daemon(t)
	pin := b.cfg.state().Version("sea")
	if err := os.MkdirAll(filepath.Join(b.cfg.StateDir, "shadow"), 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(file, text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(pin, "202311\n")
	if _, err := d.Decide("sea", true, "why not"); err == nil {
		t.Error("a version was accepted that nobody tried")
	}
	write(b.cfg.state().ShadowReport("sea"), `{"dataset":"sea","version":"202411"}`)
	news := []intake.News{{Text: "a host does not answer"}, {Version: "202411", Text: "version 202411 is out"}}
	if v, err := d.untried(*set, news); v != "202411" || err != nil {
		t.Errorf("to be tried is %q, %v", v, err)
	}
	todo, err := d.Decide("sea", true, "as good")
	if err != nil || !strings.Contains(todo, "reload") || d.versionInUse(*set) != "202411" {
		t.Errorf("in use is %q, to do is %q, %v", d.versionInUse(*set), todo, err)
	}
	set.Archive.CMEMS.Version = "202311"
	if todo, err := b.daemon(t).Decide("sea", true, "as good"); err != nil || !strings.Contains(todo, "cmems.version") {
		t.Errorf("with a version in the configuration: %q, %v", todo, err)
	}
	if _, err := d.Decide("sea", false, "no"); err != nil {
		t.Fatal(err)
	}
	if v, err := d.untried(*set, news); v != "" || err != nil {
		t.Errorf("after its refusal %q is tried, %v", v, err)
	}
}

// The folder or the name of the files says another version: that is the same alarm.
func TestAnotherVersionInThePathsIsAnAlarm(t *testing.T) {
	oneByOne(t)
	b := newBench(t)
	b.cfg.Datasets[0].Fill.Method = "climatology"
	w := world(t, 24, 32)
	for day, folder := range []string{"v5", "v6", "v5", "v6"} {
		dir := filepath.Join(b.archive(), folder)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		put(t, dir, w.Granule(firstVersions(w, 4)[day]))
		b.once(t)
		a, alarmed := b.alarms(t)["version/sea"]
		if want := day > 0; alarmed != want || alarmed && !strings.Contains(a.Summary, "granules have path version v6 since") {
			t.Errorf("after day %d from %s the alarm is %v, %+v", day, folder, alarmed, a)
		}
		known, err := b.daemon(t).Versions("sea")
		if err != nil || len(known.Changes) != min(day, 1) {
			t.Errorf("after day %d changes are %v, %v", day, known.Changes, err)
		}
	}
}

// The attribute of the files changes: that is an alarm until somebody has decided,
// and late granules of the old version are none.
func TestAnotherVersionAttributeIsAnAlarmUntilItIsAccepted(t *testing.T) {
	oneByOne(t)
	b := newBench(t)
	b.cfg.Datasets[0].Fill.Method = "climatology"
	w := world(t, 24, 32)
	days := firstVersions(w, 4)
	arrive := func(day int, version string) shadow.Memory {
		put(t, b.archive(), reprocessed(w.Granule(days[day]), 1, version))
		b.once(t)
		known, err := b.daemon(t).Versions("sea")
		if err != nil {
			t.Fatal(err)
		}
		return known.Memory
	}
	if known := arrive(0, "1.0"); len(known.Changes) != 0 {
		t.Errorf("the first version is a change: %v", known.Changes)
	}
	known := arrive(1, "2.0")
	if len(known.Changes) != 1 || known.Changes[0].From != "1.0" || known.Changes[0].To != "2.0" {
		t.Fatalf("changes are %v", known.Changes)
	}
	if a := b.alarms(t)["version/sea"]; !strings.Contains(a.Summary, "product_version 2.0") || !strings.Contains(a.Remedy, "lacuna trial") {
		t.Errorf("the alarm is %+v", a)
	}
	if known := arrive(2, "1.0"); len(known.Changes) != 1 {
		t.Errorf("a late granule of the old version makes %v", known.Changes)
	}
	if _, err := b.daemon(t).Decide("sea", true, "the producer said so"); err != nil {
		t.Fatal(err)
	}
	known = arrive(3, "2.0")
	if _, alarmed := b.alarms(t)["version/sea"]; alarmed || len(known.Changes) != 0 {
		t.Errorf("what was accepted is a change again: %v", known.Changes)
	}
}
