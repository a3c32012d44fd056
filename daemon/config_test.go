package daemon

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"lacuna/daemon/intake"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
)

const validConfig = `state_dir: var
products_dir: var/products
datasets:
  - name: chl
    product: chlorophyll
    archive:
      dir: archive
      poll_interval: 1m
    fill:
      past_days: 5
`

func TestConfigFillsInDefaults(t *testing.T) {
	cfg, err := parseConfig("lacuna.yaml", []byte(validConfig))
	if err != nil {
		t.Fatal(err)
	}
	set := cfg.Datasets[0]
	if set.Fill.Method != "auto" || set.Fill.PastDays != 5 || set.SeaMask != "auto" || set.Archive.Settle != DefaultDataset().Archive.Settle {
		t.Errorf("dataset = %+v, want the defaults around what the file says", set)
	}
	if cfg.Web.Listen != DefaultConfig().Web.Listen {
		t.Errorf("web = %+v, want the default %+v", cfg.Web, DefaultConfig().Web)
	}
}

func TestConfigErrorsNameFileLineAndWhatIsAllowed(t *testing.T) {
	tests := []struct {
		name     string
		old, new string
		want     []string
	}{
		{"unknown key at the top", "state_dir: var", "state_dri: var", []string{"lacuna.yaml:1:", `unknown key "state_dri"`, "state_dir", "datasets"}},
		{"unknown key in a dataset", "product: chlorophyll", "produkt: chlorophyll", []string{"lacuna.yaml:5:", `unknown key "produkt"`, "product", "variable", "sea_mask"}},
		{"unknown key in a section", "past_days", "past_dayz", []string{"lacuna.yaml:10:", "past_days", "method"}},
		{"duration that is none", "1m", "soon", []string{"lacuna.yaml:8:", "soon"}},
		{"number that is none", "past_days: 5", "past_days: five", []string{"lacuna.yaml:10:", "five"}},
		{"value out of range", "past_days: 5", "past_days: -1", []string{"lacuna.yaml:10:", "past_days is -1", "0..90"}},
		{"method that is none", "past_days: 5", "method: magic", []string{"lacuna.yaml:10:", `method is "magic"`, "oi, persistence, climatology"}},
		{"product that is none", "product: chlorophyll", "product: chlorophyl", []string{"lacuna.yaml:5:", "chlorophyl", "chlorophyll"}},
		{"name that is no folder", "name: chl", "name: ../chl", []string{"lacuna.yaml:4:", "name is", "lower-case"}},
		{"missing folder", "dir: archive", "dir: ''", []string{"lacuna.yaml:7:", "archive.dir is empty"}},
		{"archive that is none", "dir: archive", "type: gopher", []string{"lacuna.yaml:7:", "archive.type is \"gopher\"", intake.Kinds()}},
		{"archive without its settings", "dir: archive", "type: s3", []string{"lacuna.yaml:", "archive.s3.bucket"}},
		{"only the section that counts is checked", "poll_interval: 1m", "ftp: {address: ''}\n      poll_interval: 0s", []string{"lacuna.yaml:9:", "poll_interval is 0s"}},
		{"schedule that is none", "poll_interval: 1m", "schedule: daily", []string{"lacuna.yaml:8:", "archive.schedule is", "cron"}},
		{"floor that is none", "poll_interval: 1m", "disk_floor: lots", []string{"lacuna.yaml:8:", "lots", "10GiB"}},
		{"a pair of three", "product: chlorophyll", "valid_range: [0.1, 2, 3]", []string{"lacuna.yaml:5:", "valid_range has 3 values, must have 2"}},
		{"a pair of one", "product: chlorophyll", "grid: {shape: 10x10, lat: [41], lon: [27, 42]}", []string{"lacuna.yaml:5:", "grid.lat has 1 value, must have 2"}},
		{"backfill that is none", "poll_interval: 1m", "backfill: 2024", []string{"lacuna.yaml:8:", "2020-01-01..2020-12-31"}},
		{"mask that is not there", "product: chlorophyll", "sea_mask: nowhere.nc", []string{"lacuna.yaml:5:", "sea_mask", "builtin, learned"}},
		{"layout that is none", "product: chlorophyll", "layout: gds", []string{"lacuna.yaml:5:", `layout is "gds", must be lacuna, ghrsst or cmems`}},
		{"layout of another quantity", "product: chlorophyll", "product: chlorophyll\n    layout: ghrsst", []string{"lacuna.yaml:6:", "layout ghrsst is for sea surface temperature, and product chlorophyll is not"}},
		{"names without a day", "product: chlorophyll", `file_name: "{dataset}_r{revision}"`, []string{"lacuna.yaml:5:", "file_name", "add {date}"}},
		{"names without a revision", "product: chlorophyll", `file_name: "{date}_{dataset}.nc"`, []string{"lacuna.yaml:5:", "file_name", "add {revision}"}},
		{"names without a dataset", "product: chlorophyll", "file_name: \"{date}_r{revision}\"\n    archive: {dir: a}\n  - name: sst\n    file_name: \"{date}_r{revision}\"", []string{"lacuna.yaml:8:", "file_name", "of this dataset and of chl the same name: add {dataset}"}},
		{"covariate of nothing", "product: chlorophyll", "covariates: [{name: sst}]", []string{"lacuna.yaml:5:", "covariates[0].dataset is \"\" and file is \"\": give one of them, or static"}},
		{"covariate of a dataset that is none", "product: chlorophyll", "covariates: [{name: sst, dataset: sst}]", []string{"lacuna.yaml:5:", `dataset is "sst", which is none of the datasets`}},
		{"covariate of the dataset itself", "product: chlorophyll", "covariates: [{name: sst, dataset: chl}]", []string{"lacuna.yaml:5:", `dataset is "chl", the dataset itself`}},
		{"covariate that does not stay", "product: chlorophyll", "covariates: [{name: sst, static: tides}]", []string{"lacuna.yaml:5:", `static is "tides", must be day_of_year, distance_to_coast or bathymetry`}},
		{"two covariates of one name", "product: chlorophyll", "covariates: [{name: d, static: day_of_year}, {name: d, static: distance_to_coast}]", []string{"lacuna.yaml:5:", `name is "d", which another covariate has`}},
		{"covariate with a word that is none", "product: chlorophyll", "covariates: [{name: sst, file: '/sst/{date}.nc'}]", []string{"lacuna.yaml:5:", "the placeholders are {year}, {month}, {day} and {yearday}"}},
		{"no datasets", validConfig[strings.Index(validConfig, "datasets:"):], "datasets: []", []string{"datasets is empty"}},
		{"broken YAML", "archive:\n", "archive: [\n", []string{"lacuna.yaml:"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := strings.Replace(validConfig, tt.old, tt.new, 1)
			if text == validConfig {
				t.Fatal("the edit changes nothing")
			}
			_, err := parseConfig("lacuna.yaml", []byte(text))
			if err == nil {
				t.Fatal("accepted")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error lacks %q:\n%v", want, err)
				}
			}
		})
	}
}

func TestConfigReportsEveryFaultAtOnce(t *testing.T) {
	text := strings.Replace(validConfig, "past_days: 5", "past_days: -1\n      method: magic", 1)
	text = strings.Replace(text, "name: chl", "name: CHL", 1)
	_, err := parseConfig("f", []byte(text))
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("want three faults on three lines, got:\n%v", err)
	}
}

func TestTwoDatasetsCannotShareAName(t *testing.T) {
	body := validConfig[strings.Index(validConfig, "  - name"):]
	_, err := parseConfig("f", []byte(validConfig+body))
	if err == nil || !strings.Contains(err.Error(), "f:11:") || !strings.Contains(err.Error(), "another dataset has") {
		t.Errorf("error = %v, want the line of the second dataset", err)
	}
}

// The shipped example must have the defaults of the code.
func TestExampleConfigIsTheDefaults(t *testing.T) {
	src, err := os.ReadFile("../systemd/lacuna.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got, err := parseConfig("systemd/lacuna.yaml", src)
	if err != nil {
		t.Fatal(err)
	}
	want := DefaultConfig()
	set := DefaultDataset()
	set.Name, set.Archive.Dir = "example", "/var/lib/lacuna/archive"
	set.Quality, set.BBox, set.Archive.Prefixes = []string{}, []float64{}, []string{}
	want.Datasets = []Dataset{set}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("systemd/lacuna.yaml differs from the defaults (-code +file):\n%s", diff)
	}
	// Every key of the code must be in the file.
	text, err := yaml.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		key, _, ok := strings.Cut(strings.TrimLeft(line, " -"), ":")
		if ok && key != "simulate" && !bytes.Contains(src, []byte(key+":")) {
			t.Errorf("systemd/lacuna.yaml lacks the key %q", key)
		}
	}
}

func TestDemoConfigIsValid(t *testing.T) {
	if _, err := LoadConfig("../ops/demo/lacuna.yaml"); err != nil {
		t.Error(err)
	}
}

func TestConfigsInTheHandbookAreValid(t *testing.T) {
	for page, want := range map[string]int{"operator.md": 1, "archives.md": 3, "covariates.md": 1} {
		handbook, err := os.ReadFile("../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		examples := strings.Split(string(handbook), "```yaml\n")[1:]
		if len(examples) < want {
			t.Errorf("%s has %d YAML examples, want %d", page, len(examples), want)
		}
		for _, example := range examples[:min(len(examples), want)] {
			example, _, _ = strings.Cut(example, "```")
			if _, err := parseConfig(page, []byte(example)); err != nil {
				t.Error(err)
			}
		}
	}
}
