package daemon

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/intake"
	"lacuna/daemon/operate"
	"lacuna/fetch"
	"lacuna/internal/cdl"
	"lacuna/ledger"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/simulate"
)

// duo is a sea that two sensors look at, each with an archive of its own: the second
// reads 0.2 too much, with a noise of 0.1, in powers of ten.
type duo struct {
	*sea
	other *simulate.World
}

func newDuo(t *testing.T, days int) *duo {
	t.Helper()
	d := &duo{sea: newSea(t, days)}
	var err error
	size := simulate.Config{Product: "blk-chl", Height: 24, Width: 32, Days: days, Seed: 7}
	if d.world, err = simulate.New(size); err != nil {
		t.Fatal(err)
	}
	size.Sensor = simulate.Sensor{Number: 1, Bias: 0.2, Noise: 0.1}
	if d.other, err = simulate.New(size); err != nil {
		t.Fatal(err)
	}
	set := &d.cfg.Datasets[0]
	root := filepath.Dir(set.Archive.Dir)
	for _, name := range []string{"olci", "viirs"} {
		s := intake.Source{Name: name, Archive: set.Archive}
		s.Archive.Dir = filepath.Join(root, name)
		set.Sources = append(set.Sources, s)
		if err := os.MkdirAll(s.Archive.Dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	set.Archive = intake.DefaultArchive()
	return d
}

// granule returns the granule of a day of the first or of the second sensor.
func (d *duo) granule(source, day int) simulate.Granule {
	w := []*simulate.World{d.world, d.other}[source]
	return w.Granule(simulate.Delivery{Name: d.day[day].Name, Day: day, Revision: 1})
}

func (d *duo) bring(t *testing.T, source, day int) {
	t.Helper()
	put(t, d.folder(source), d.granule(source, day))
}

func (d *duo) folder(source int) string { return d.cfg.Datasets[0].Sources[source].Archive.Dir }

// product reads the newest product of a day.
func (d *duo) product(t *testing.T, day int, variable string) ([]float32, int) {
	t.Helper()
	all := d.products(t)[day]
	if len(all) == 0 {
		t.Fatalf("there is no product of day %d\n%s", day, d.log)
	}
	newest := all[len(all)-1]
	g, err := d.d.reader.Read(t.Context(), newest.Path, ingest.Options{Variable: variable, Transform: "identity"})
	if err != nil {
		t.Fatal(err)
	}
	return g.Fields[0].Values, newest.Revision
}

func TestTwoSourcesMakeOneProductOfADay(t *testing.T) {
	const days = 16
	d := newDuo(t, days)
	d.open(t)
	defer func() { d.close(t) }()
	for day := range days {
		d.bring(t, 0, day)
		d.bring(t, 1, day)
		d.pass(t, day)
	}
	if got := d.products(t); len(got) != days {
		t.Fatalf("there are products of %d days, want %d\n%s", len(got), days, d.log)
	}
	var alone, corrected, raw float64
	for day := days / 2; day < days; day++ {
		values, _ := d.product(t, day, "CHL")
		origin, _ := d.product(t, day, "CHL_source")
		one, two := d.granule(0, day).Seen.Values, d.granule(1, day).Seen.Values
		for i, v := range values {
			if !d.world.Sea()[i] {
				continue
			}
			switch {
			case one[i] == one[i]:
				if v != one[i] || origin[i] != 1 {
					t.Fatalf("cell %d of day %d is %v from source %v, want %v from the first, to the bit", i, day, v, origin[i], one[i])
				}
			case two[i] == two[i]:
				if origin[i] != 2|64 {
					t.Fatalf("cell %d of day %d comes from %v, want it from the second, adjusted", i, day, origin[i])
				}
				sea := float64(d.world.Day(day).Truth.Values[i])
				corrected += math.Abs(math.Log10(float64(v) / sea))
				raw += math.Abs(math.Log10(float64(two[i]) / sea))
				alone++
			case origin[i] > 0: // a gap where 0 is no value of the variable
				t.Fatalf("cell %d of day %d, which no source saw, comes from %v", i, day, origin[i])
			}
		}
	}
	if alone < 10 || corrected > 0.7*raw {
		t.Errorf("of %.0f cells of the second sensor the error is %.3f, before the correction %.3f", alone, corrected/alone, raw/alone)
	}
	file, err := d.d.reader.Read(t.Context(), d.products(t)[days-1][0].Path, ingest.Options{Variable: "CHL"})
	if err != nil {
		t.Fatal(err)
	}
	flags, _ := file.Source.Var("flags")
	if !slices.ContainsFunc(flags.Attrs, func(a cdl.Attr) bool {
		return a.Name == "comment" && strings.Contains(fmt.Sprint(a.Value), "CHL_source marks as adjusted")
	}) {
		t.Errorf("flags do not tell of adjusted pixels: %v", flags.Attrs)
	}
	quality := d.intake.Sources()[1].Quality
	if math.Abs(quality.Bias-0.2) > 0.02 {
		t.Errorf("the bias of the second sensor is said to be %.3f, it is 0.2", quality.Bias)
	}
}

// A source that comes later changes the product of its day, and one that has nothing
// new does not.
func TestTheSecondSourceOfADayMakesARevision(t *testing.T) {
	oneByOne(t)
	d := newDuo(t, 6)
	d.open(t)
	defer func() { d.close(t) }()
	for day := range 4 {
		d.bring(t, 0, day)
		d.pass(t, day)
	}
	if _, revision := d.product(t, 3, "CHL"); revision != 1 {
		t.Errorf("with one source the product of day 3 has revision %d", revision)
	}
	d.bring(t, 1, 3)
	d.pass(t, 3)
	origin, revision := d.product(t, 3, "CHL_source")
	if revision != 2 || !slices.ContainsFunc(origin, func(v float32) bool { return int(v)&63 == 2 }) {
		t.Errorf("with the second source the product of day 3 has revision %d, and its sources are not both named\n%s", revision, d.log)
	}
	story, err := operate.New(d.cfg.Operate(), d.book, func() time.Time { return d.now }).Why(t.Context(), d.day[3].Name, "sea.viirs")
	if err != nil || len(story) != 1 || !strings.Contains(story[0].ToDo, "lacuna why 2024-04-04") {
		t.Errorf("the story of the granule of the source is %+v, %v", story, err)
	}
	d.close(t)
	d.open(t) // the merger forgets what it had in memory
	d.pass(t, 3)
	if got := d.products(t)[3]; len(got) != 2 {
		t.Errorf("after a restart there are %d revisions of day 3, want 2", len(got))
	}
}

func TestLosingASourceLeavesNoHoleAndIsAnAlarm(t *testing.T) {
	oneByOne(t)
	const days, lost, gone = 12, 4, 8
	d := newDuo(t, days)
	d.open(t)
	defer func() { d.close(t) }()
	for day := range days {
		switch {
		case day < lost:
			d.bring(t, 0, day)
		case day == gone: // the reference has been silent, and now its archive is away
			if err := os.RemoveAll(d.folder(0)); err != nil {
				t.Fatal(err)
			}
		}
		if day != gone+1 { // which is a day without any granule
			d.bring(t, 1, day)
		}
		if day < gone {
			d.pass(t, day)
			continue
		}
		d.now = d.world.Day(day).Time.Truncate(24 * time.Hour).Add(32 * time.Hour)
		if _, err := d.intake.Sync(t.Context(), fetch.Days{}, nil); err == nil || !strings.Contains(err.Error(), "source olci: ") {
			t.Fatalf("Sync() = %v, want an error of source olci", err)
		}
		if _, err := d.worker.WorkOff(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := d.out.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for day, got := range d.products(t) {
		if current := got[len(got)-1]; current.CoverageAfter < 0.99 {
			t.Errorf("the product of day %d covers %.2f of the sea", day, current.CoverageAfter)
		}
	}
	if got := d.products(t); len(got) != days {
		t.Errorf("there are products of %d days, want %d\n%s", len(got), days, d.log)
	}
	if got := d.alarms(t); len(got) != 1 || !strings.Contains(got[0], "source olci of sea is silent: its newest field is 9 days old") {
		t.Errorf("alarms are %q, want one of the silent source", got)
	}
}

func TestMirrorsCountOnce(t *testing.T) {
	oneByOne(t)
	d := newDuo(t, 4)
	d.open(t)
	defer func() { d.close(t) }()
	for day := range 3 {
		put(t, d.folder(1), d.granule(0, day)) // the mirror is first
		d.pass(t, day)
	}
	for day := range 3 {
		put(t, d.folder(0), d.granule(0, day))
	}
	d.pass(t, 3)
	for day := range 3 {
		if got := d.products(t)[day]; len(got) != 1 {
			t.Errorf("the same bytes from a mirror make %d revisions of day %d, want 1\n%s", len(got), day, d.log)
		}
	}
}

// edited returns a granule whose variable is changed by edit.
func edited(g simulate.Granule, edit func(v *cdl.Var)) simulate.Granule {
	g.File.Vars = slices.Clone(g.File.Vars)
	for i := range g.File.Vars {
		v := &g.File.Vars[i]
		v.Attrs = slices.Clone(v.Attrs)
		v.Raw = slices.Clone(v.Raw)
		edit(v)
	}
	return g
}

// inUnits writes CHL in other units, of which the usual ones are scale.
func inUnits(units string, scale float32) func(v *cdl.Var) {
	return func(v *cdl.Var) {
		if v.Name != "CHL" {
			return
		}
		for i, a := range v.Attrs {
			if a.Name == "units" {
				v.Attrs[i].Value = units
			}
		}
		for i := 0; i < len(v.Raw); i += 4 {
			x := math.Float32frombits(binary.LittleEndian.Uint32(v.Raw[i:]))
			if x > -900 { // not the fill value
				x *= scale
			}
			binary.LittleEndian.PutUint32(v.Raw[i:], math.Float32bits(x))
		}
	}
}

func shiftedLat(v *cdl.Var) {
	if (v.Name != "lat" && v.Name != "latitude") || v.Type != "float" {
		return
	}
	for i := 0; i < len(v.Raw); i += 4 {
		binary.LittleEndian.PutUint32(v.Raw[i:], math.Float32bits(math.Float32frombits(binary.LittleEndian.Uint32(v.Raw[i:]))+0.05))
	}
}

func swappedAxes(v *cdl.Var) {
	if v.Name == "CHL" {
		v.Dims = slices.Clone(v.Dims)
		n := len(v.Dims)
		v.Dims[n-1], v.Dims[n-2] = v.Dims[n-2], v.Dims[n-1]
	}
}

// A bad granule of one source is a sentence, and the day is made from the other.
func TestABadGranuleOfASourceCostsItselfOnly(t *testing.T) {
	for _, tt := range []struct {
		name string
		edit func(v *cdl.Var)
		want string // part of the reason; empty: it is used
	}{
		{name: "another spelling of the units", edit: inUnits("kg m-3", 1e-6)},
		{name: "units that nobody knows", edit: inUnits("furlong", 1), want: `its CHL is in "furlong", but dataset sea is in "milligram m^-3", and no conversion is known`},
		{name: "a shifted grid", edit: shiftedLat, want: "from which it is shifted by 0.05° in latitude"},
		{name: "swapped axes", edit: swappedAxes, want: "ncpdq -a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDuo(t, 4)
			d.open(t)
			defer func() { d.close(t) }()
			for day := range 3 {
				d.bring(t, 0, day)
				put(t, d.folder(1), edited(d.granule(1, day), tt.edit))
				d.pass(t, day)
				if got := d.fetched.SetAside; got != 0 != (tt.want != "") || got > 1 {
					t.Errorf("the pass counts %d granules of sources that were set aside", got)
				}
			}
			if got := d.products(t); len(got) != 3 {
				t.Errorf("there are products of %d days, want 3", len(got))
			}
			aside, err := d.book.Recent(t.Context(), 10, ledger.Quarantined)
			if err != nil {
				t.Fatal(err)
			}
			if tt.want == "" {
				if len(aside) != 0 {
					t.Fatalf("it was set aside: %s", aside[0].Reason)
				}
				origin, _ := d.product(t, 2, "CHL_source")
				values, _ := d.product(t, 2, "CHL")
				for i, o := range origin {
					if want := d.granule(1, 2).Seen.Values[i]; int(o)&63 == 2 && (values[i] > 2*want || values[i] < want/2) {
						t.Fatalf("cell %d is %v, want about %v", i, values[i], want)
					}
				}
				return
			}
			if len(aside) != 3 || !strings.Contains(aside[0].Reason, tt.want) {
				t.Fatalf("%d granules are set aside, want 3 with %q: %+v", len(aside), tt.want, aside)
			}
			if n := strings.Count(aside[0].Reason, "\n"); n > 0 {
				t.Errorf("the reason has %d lines: %s", n+1, aside[0].Reason)
			}
		})
	}
}

func TestASourceThatHasADayTwiceGivesTheNewerOneFirst(t *testing.T) {
	oneByOne(t)
	d := newDuo(t, 3)
	d.open(t)
	defer func() { d.close(t) }()
	old := edited(d.granule(0, 0), inUnits("milligram m^-3", 3))
	old.Name = strings.Replace(old.Name, ".nc", "-old.nc", 1)
	long := time.Now().Add(-48 * time.Hour)
	if err := os.Chtimes(put(t, d.folder(0), old), long, long); err != nil {
		t.Fatal(err)
	}
	d.bring(t, 0, 0)
	d.pass(t, 0)
	if got := d.products(t)[0]; len(got) != 1 {
		t.Fatalf("there are %d products of the day, want 1\n%s", len(got), d.log)
	}
	values, _ := d.product(t, 0, "CHL")
	for i, want := range d.granule(0, 0).Seen.Values {
		if want == want && d.world.Sea()[i] && values[i] != want {
			t.Fatalf("cell %d is %v, want %v of the newer granule", i, values[i], want)
		}
	}
	if !strings.Contains(d.log.String(), "a source has a day more than once") {
		t.Errorf("the log does not say so:\n%s", d.log)
	}
}
