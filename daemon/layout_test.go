package daemon

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/outbox"
	"lacuna/daemon/work"
	"lacuna/pipeline/simulate"
	"lacuna/publish"
	"lacuna/publish/netcdf"
)

// layoutCases are the layouts beside that of the input, each with a sea that it is for.
var layoutCases = []struct {
	layout           netcdf.Layout
	product          string // of the simulator
	variable, errors string // in its files
	folders          publish.Folders
	first, second    string // names of the revisions of a day, with %s for the day
}{
	{
		netcdf.GHRSST, "med-sst", "analysed_sst", "analysis_error", "{year}/{doy}", // as archives of GHRSST have them
		"%s-Lacuna-L4_GHRSST-SSTsubskin-sea-nrt-v02.1-fv01.0.nc", "%s-Lacuna-L4_GHRSST-SSTsubskin-sea-dt-v02.1-fv02.0.nc",
	},
	{netcdf.CMEMS, "blk-chl", "CHL", "CHL_uncertainty", publish.DefaultFolders, "%.8s_sea.nc", "%.8s_sea.nc"},
	{netcdf.CMEMS, "med-sst", "analysed_sst", "analysis_error", publish.DefaultFolders, "%.8s_sea.nc", "%.8s_sea.nc"},
}

func TestProductsOfEveryLayoutAreMadeRevisedAndRead(t *testing.T) {
	skipInShort(t)
	seas, revised := make([]*rolling, len(layoutCases)), make([]map[int]string, len(layoutCases))
	var sites []reading
	for n, tt := range layoutCases {
		r := newRolling(t, 6)
		seas[n] = r
		r.cfg.Publish.Zarr = &outbox.Zarr{Dir: filepath.Join(t.TempDir(), "zarr")}
		sites = append(sites, reading{r.bench, tt.variable})
		t.Run(string(tt.layout)+" "+tt.product, func(t *testing.T) {
			r.simulate(t, tt.product, 6)
			r.cfg.Publish.Folders = tt.folders
			set := &r.cfg.Datasets[0]
			set.Layout, set.Reanalysis.LeastChange = tt.layout, 0
			for i := range 5 { // a granule a day
				r.deliver(t, i)
				r.pass(t, 24*time.Hour)
			}
			revised[n] = r.revisions(t)
			for i := range 5 {
				want, name := nrt1, tt.first
				if i < 3 { // two days ahead have come
					want, name = want+"2 delayed over 1; ", tt.second
				}
				if revised[n][i] != want {
					t.Errorf("day %d has %q, want %q\n%s", i, revised[n][i], want, r.log)
				}
				at := r.world.Granule(r.days[i]).Seen.Time.UTC()
				shown := filepath.Join(r.cfg.ProductsDir, tt.folders.Folder("sea", at), fmt.Sprintf(name, at.Format("20060102150405")))
				if read(t, shown, tt.variable).Source.Variable != tt.variable || len(read(t, shown, tt.errors).Fields) != 1 {
					t.Errorf("%s is not read by its names", shown)
				}
				values, flags := read(t, shown, "").Fields[0].Values, read(t, shown, "flags").Fields[0].Values
				for c, flag := range flags {
					if filled := byte(flag)&(netcdf.Land|netcdf.NotReconstructible) == 0; filled != (values[c] == values[c]) {
						t.Fatalf("cell %d of %s with flags %v is read as %v", c, shown, flag, values[c])
					}
				}
			}
		})
	}
	if t.Failed() {
		return
	}
	t.Run("by readers in Python", func(t *testing.T) {
		for n, got := range readSites(t, sites...) {
			if got.Items != 5 || got.Slots != 5 || got.Filled < 0.3 || fmt.Sprint(got.Revisions) != "[2 2 2 1 1]" {
				t.Errorf("%+v: readers in Python found %+v", layoutCases[n], got)
			}
		}
	})
	for n, tt := range layoutCases {
		t.Run("again "+string(tt.layout)+" "+tt.product, func(t *testing.T) { seas[n].unchangedAndRebuilt(t, revised[n]) })
	}
}

// simulate replaces the sea of r.
func (r *rolling) simulate(t *testing.T, product string, days int) {
	t.Helper()
	w, err := simulate.New(simulate.Config{Product: product, Height: 24, Width: 32, Days: 40, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	r.world, r.days = w, firstVersions(w, days)
}

// unchangedAndRebuilt makes the day whose window has settled anew, with a change that
// is too small to be published, and then rebuilds the ledger from the products. Both
// need products that can be read.
func (r *rolling) unchangedAndRebuilt(t *testing.T, revised map[int]string) {
	t.Helper()
	r.cfg.Datasets[0].Reanalysis.LeastChange = 1e9
	if s := r.pass(t, 48*time.Hour); s.Products != 0 || !strings.Contains(r.log.String(), "product unchanged") || strings.Contains(r.log.String(), "cannot be compared") {
		t.Errorf("a product that hardly changed was published: %+v\n%s", s, r.log)
	}
	if err := removeAllOf(r.cfg.state().Ledger(), "", ".journal", ".journal.cursor"); err != nil {
		t.Fatal(err)
	}
	if s := r.pass(t, time.Hour); s != (work.Summary{}) || strings.Contains(r.log.String(), "is lost") || strings.Contains(r.log.String(), "set aside") {
		t.Errorf("after the ledger was lost %+v was made\n%s", s, r.log)
	}
	for i := range 5 {
		p, ok, err := r.book(t).Current(t.Context(), "sea", r.days[i].Name)
		if want := strings.Count(revised[i], ";"); err != nil || !ok || p.Revision != want {
			t.Errorf("day %d has revision %d in the ledger that was made anew, %v, %v, want %d", i, p.Revision, ok, err, want)
		}
	}
}

func TestALayoutThatHasNoPlaceForAGranuleSetsItAsideWithTheRemedy(t *testing.T) {
	b := newBench(t)
	b.plain().Layout = netcdf.GHRSST
	w := world(t, 24, 32)
	g := w.Granule(firstVersions(w, 1)[0])
	put(t, b.archive(), g)
	if s := b.once(t); s.SetAside != 1 || s.Products != 0 {
		t.Fatalf("Once() = %+v", s)
	}
	if said := b.log.String(); !strings.Contains(said, "not a sea surface temperature") || !strings.Contains(said, "set layout: lacuna") {
		t.Errorf("the log says\n%s", said)
	}
}
