package daemon

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/intake"
	"lacuna/daemon/operate"
	"lacuna/daemon/work"
	"lacuna/fetch"
)

// deliverDays puts the first days of a small ocean into the archive.
func deliverDays(t *testing.T, b *bench, days int) {
	t.Helper()
	w := world(t, 24, 32)
	for _, d := range firstVersions(w, days) {
		put(t, b.archive(), w.Granule(d))
	}
}

func TestGranulesComeOverTheWeb(t *testing.T) {
	b := newBench(t)
	deliverDays(t, b, 2)
	server := httptest.NewServer(http.FileServer(http.Dir(b.archive())))
	defer server.Close()
	set := &b.cfg.Datasets[0]
	set.Archive.Type, set.Archive.HTTP.URL = "http", server.URL+"/"
	if got := b.once(t); got.Products != 2 || got.SetAside != 0 {
		t.Errorf("Once() = %+v, want two products\n%s", got, b.log)
	}
	if got := b.once(t); got != (work.Summary{}) {
		t.Errorf("the second Once() = %+v, want nothing to do", got)
	}
}

func TestFetchLeavesTheFillingToTheNextPass(t *testing.T) {
	b := newBench(t)
	deliverDays(t, b, 2)
	if err := os.WriteFile(filepath.Join(b.archive(), "20240409_page.nc"), []byte("<!DOCTYPE html><html>"), 0o644); err != nil {
		t.Fatal(err)
	}
	plans, err := b.daemon(t).Station().PlanFetch(t.Context(), operate.Fetch{})
	if err != nil || len(plans) != 1 || len(plans[0].Actions) != 3 {
		t.Fatalf("PlanFetch() = %+v, %v; want three actions", plans, err)
	}
	fetched, err := b.daemon(t).Station().Fetch(t.Context(), operate.Fetch{Dataset: "sea"})
	if err != nil || len(fetched) != 1 || fetched[0].Arrived != 2 || fetched[0].SetAside != 1 {
		t.Errorf("Fetch() = %+v, %v; want two granules and the page set aside", fetched, err)
	}
	if got := b.once(t); got.Products != 2 || got.SetAside != 0 {
		t.Errorf("Once() = %+v, want the two products", got)
	}
}

func TestEveryKindOfArchiveCanBeConfigured(t *testing.T) {
	for kind, want := range map[string]string{
		"archive: {dir: mirror}": "mirror",
		"archive: {type: s3, s3: {endpoint: 'https://s3.example.org', bucket: granules}}":                                            "https://s3.example.org/granules",
		"archive: {type: ftp, ftp: {address: ftp.example.org, root: /pub}}":                                                          "ftp ftp.example.org",
		"archive: {type: http, http: {url: 'https://data.example.org/l3/'}}":                                                         "https://data.example.org/l3/",
		"archive: {type: cmems, cmems: {dataset: cmems_obs-oc_blk_bgc-plankton_my_l3-multi-1km_P1D, user: me, password: {env: PW}}}": "Copernicus Marine cmems_obs-oc_blk_bgc-plankton_my_l3-multi-1km_P1D",
		"archive: {type: cmems, lookback: 240h, prefixes: ['{year}/{month}/'], schedule: '*/10 * * * *', jitter: 1m, backfill: 2020-01-01..2020-12-31, " +
			"expect: {by: '14:30'}, disk_floor: 5%, cmems: {dataset: x}}": "Copernicus Marine x",
		"archive: {type: stac, stac: {url: 'https://stac.example.org', collections: [chl], token: {env: PW}}}":             "https://stac.example.org chl",
		"archive: {type: erddap, erddap: {url: 'https://e.example.org/erddap', dataset: chl, variables: [chlorophyll]}}":   "https://e.example.org/erddap chl",
		"archive: {type: zarr, zarr: {store: 'https://arco.example.org/chl.zarr', variables: [CHL]}}\n    bbox: [1,2,3,4]": "https://arco.example.org/chl.zarr",
	} {
		cfg, err := parseConfig("f", []byte("state_dir: state\ndatasets:\n  - name: chl\n    "+kind+"\n"))
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		set := cfg.Datasets[0]
		if got := set.Archive.Place(); got != want {
			t.Errorf("%s is at %q, want %q", kind, got, want)
		}
		if set.Archive.Settle != fetch.DefaultConfig().Settle {
			t.Errorf("%s: settle is %v, want the default", kind, set.Archive.Settle)
		}
		t.Setenv("PW", "secret")
		archives, err := intake.New(intake.Parts{State: cfg.state(), Manners: cfg.Manners, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		archive, err := archives.Open(set.intake())
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		if err := archive.Close(); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestBackfillIsReadFromTheConfiguration(t *testing.T) {
	text := strings.Replace(validConfig, "poll_interval: 1m", "backfill: 2020-02-01..2020-03-01\n      lookback: 72h", 1)
	cfg, err := parseConfig("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := fetch.Days{From: time.Date(2020, 2, 1, 0, 0, 0, 0, time.UTC), To: time.Date(2020, 3, 1, 0, 0, 0, 0, time.UTC)}
	if got := cfg.Datasets[0].Archive.Backfill; got != want {
		t.Errorf("backfill is %v, want %v", got, want)
	}
}
