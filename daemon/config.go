package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"time"

	"lacuna/daemon/feed"
	"lacuna/daemon/gridpin"
	"lacuna/daemon/intake"
	"lacuna/daemon/outbox"
	"lacuna/daemon/retrain"
	"lacuna/daemon/state"
	"lacuna/daemon/work"
	"lacuna/daemon/workers"
	"lacuna/fetch"
	"lacuna/internal/convert"
	"lacuna/internal/faults"
	"lacuna/ops"
	"lacuna/pipeline/covariate"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/ingest/products"
	"lacuna/pipeline/quality"
	"lacuna/publish"
	"lacuna/publish/netcdf"
)

// Config is the whole configuration file. Every section belongs to the package
// that uses it, which knows its defaults and checks it.
type Config struct {
	StateDir    string                 `yaml:"state_dir"`    // ledger, spool and quarantine
	ProductsDir string                 `yaml:"products_dir"` // finished products
	Drain       time.Duration          `yaml:"drain"`        // how long a stop waits for the granule in hand
	Decode      ingest.Config          `yaml:"decode"`       // limits of the process that reads granules
	Web         ops.Config             `yaml:"web"`
	Alarms      ops.HookConfig         `yaml:"alarms"`  // hook that alarms are sent to
	Credits     netcdf.Credits         `yaml:"credits"` // creator and licence of the products
	Publish     outbox.Config          `yaml:"publish"` // sinks of the products
	Train       retrain.Config         `yaml:"train"`   // training of models; off without a store
	Manners     fetch.PolitenessConfig `yaml:"manners"` // limits of the load on the hosts of archives
	Workers     workers.Config         `yaml:"workers"` // who fills the granules: the daemon itself, or workers on other machines
	Datasets    []Dataset              `yaml:"datasets"`
}

// Dataset is one stream of granules, with the settings to read and to fill it.
type Dataset struct {
	Name           string `yaml:"name"`
	ingest.Options `yaml:",inline"`
	SeaMask        string             `yaml:"sea_mask"` // auto (the granules' own mask, else builtin; learned where that calls most observed cells land), builtin, learned (every cell that was ever observed), or a NetCDF file
	Grid           *gridpin.Pin       `yaml:"grid"`     // the only grid that is accepted; without it the first granules vote
	Archive        intake.Archive     `yaml:"archive"`
	Tests          quality.Tests      `yaml:"tests"` // of observations; those that a test refuses are filled, and never scored as truth
	SeaIce         quality.Ice        `yaml:"sea_ice"`
	Covariates     []covariate.Config `yaml:"covariates"` // other variables and maps that stay, which optimal interpolation and networks use as far as they pay
	Sources        []intake.Source    `yaml:"sources"`    // several archives in place of one, merged to one granule a day; the first is the reference
	Fill           infer.Config       `yaml:"fill"`
	Reanalysis     work.Reanalysis    `yaml:"reanalysis"`
	EmptyDays      work.EmptyDays     `yaml:"empty_days"`  // days of which the archive has no granule: fill them from the days around, or skip them
	Layout         netcdf.Layout      `yaml:"layout"`      // names, units and packing in the files of products: lacuna (those of the input), ghrsst (GDS 2.1 Level 4) or cmems (the Copernicus catalogue)
	FileName       publish.Template   `yaml:"file_name"`   // template of the names of files, such as {date}_{dataset}_r{revision}.nc; without it that of the layout
	TrialDays      int                `yaml:"trial_days"`  // days of a new version of the data that are fetched and compared with those in use when the archive announces one, for an operator to decide; 0: none
	DailySkill     bool               `yaml:"daily_skill"` // score every granule under the gaps of another day, and calibrate uncertainties by it
	Simulate       *feed.Feed         `yaml:"simulate"`    // a simulated producer that writes into the archive
}

// DefaultConfig returns the defaults of a configuration file.
func DefaultConfig() Config {
	return Config{
		StateDir:    "/var/lib/lacuna",
		ProductsDir: "/var/lib/lacuna/products",
		Drain:       30 * time.Second, // a granule of a large basin takes this long to fill on two cores
		Decode:      ingest.DefaultConfig(),
		Web:         ops.DefaultConfig(),
		Alarms:      ops.DefaultHookConfig(),
		Credits:     netcdf.DefaultCredits(),
		Publish:     outbox.DefaultConfig(),
		Train:       retrain.DefaultConfig(),
		Manners:     fetch.DefaultPolitenessConfig(),
		Workers:     workers.DefaultConfig(),
	}
}

// DefaultDataset returns the defaults of a dataset.
func DefaultDataset() Dataset {
	d := Dataset{
		SeaMask: "auto", Archive: intake.DefaultArchive(), Fill: infer.DefaultConfig(),
		Reanalysis: work.DefaultReanalysis(), DailySkill: true, EmptyDays: work.FillEmptyDays, Layout: netcdf.Plain, TrialDays: 7, Sources: []intake.Source{}, Covariates: []covariate.Config{},
	}
	d.Fill.FutureDays, d.Tests, d.SeaIce = infer.JudgedFutureDays, quality.DefaultTests(), quality.DefaultIce()
	// A model of the dataset's own has shown that it betters optimal interpolation,
	// and a starter is followed as far as it does; where none can be used, auto
	// falls back to optimal interpolation and logs the reason.
	d.Fill.Method = infer.MethodAuto
	return d
}

// Caveats returns what an operator should know of settings that are allowed and
// make less of a model, a sentence each.
func (d Dataset) Caveats() []string {
	var all []string
	for _, c := range d.Covariates {
		if c.File != "" && !c.Daily() {
			if _, err := os.Stat(c.File); err != nil {
				all = append(all, fmt.Sprintf("covariate %s is left out as long as its file is not there: %v", c.Name, err))
			}
		}
	}
	if d.Fill.Method != infer.MethodModel && d.Fill.Method != infer.MethodAuto {
		return all
	}
	if text := d.Fill.Unjudged(); text != "" {
		all = append(all, text)
	}
	if d.Fill.Method == infer.MethodAuto && !d.DailySkill {
		all = append(all, "daily_skill is off: no day is scored, and without scored days a starter model is never followed")
	}
	return all
}

// ProductForm returns layout and names of products in words; empty where they are
// those of the granules.
func (d Dataset) ProductForm() string {
	if d.Layout == netcdf.Plain && d.FileName == "" {
		return ""
	}
	return fmt.Sprintf("products in the layout %s, named %s", d.Layout, cmp.Or(d.FileName, work.FileNames(d.Layout)))
}

// UnmarshalYAML fills in the defaults of a dataset before its keys are read.
func (d *Dataset) UnmarshalYAML(unmarshal func(any) error) error {
	type plain Dataset
	*d = DefaultDataset()
	return unmarshal((*plain)(d))
}

// LoadConfig reads and checks a configuration file. Its error lists every fault
// with file and line, and wraps ErrConfig.
func LoadConfig(path string) (Config, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	cfg, err := parseConfig(path, src)
	if err != nil {
		return Config{}, fmt.Errorf("%w:\n%w", ErrConfig, err)
	}
	return cfg, nil
}

// Readable checks the files that run reads at its start, which those who only look
// at the service need not be able to read. Its error wraps ErrConfig.
func (c Config) Readable() error {
	var errs []error
	if file := c.Web.TokenFile; file != "" {
		errs = append(errs, ops.CheckToken(machine(), file))
	}
	if file := c.Alarms.WebhookFile; file != "" {
		if _, err := fetch.ReadSecretFile(file); err != nil {
			errs = append(errs, fmt.Errorf("read alarms.webhook_file: %w", err))
		}
	}
	if k := c.Publish.Kafka; k != nil {
		if err := k.Readable(); err != nil {
			errs = append(errs, fmt.Errorf("publish.kafka: %w", err))
		}
	}
	errs = append(errs, c.Publish.Store(c.ProductsDir).CheckFolders())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%w:\n%w", ErrConfig, err)
	}
	return nil
}

// ErrConfig marks a configuration that cannot be used.
var ErrConfig = faults.ErrConfig

// datasetName matches names that can be a folder, a topic key and a metric label.
var datasetName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

// faults returns everything wrong with c, each with the path of its section.
func (c Config) faults() []fault {
	var all []fault
	add := func(section string, err error) { all = append(all, faultsOf(section, err)...) }
	check := func(ok bool, section, format string, args ...any) {
		if !ok {
			add(section, fmt.Errorf(format, args...))
		}
	}
	check(c.StateDir != "", "$", "state_dir is empty: name a folder that Lacuna may write to")
	check(c.ProductsDir != "", "$", "products_dir is empty: name a folder that Lacuna may write to")
	check(c.Drain > 0, "$", "drain is %v, must be positive", c.Drain)
	add("$.decode", c.Decode.Validate())
	add("$.web", c.Web.Validate())
	add("$.alarms", c.Alarms.Validate())
	all = append(all, faultsOf("$.publish", c.Publish.Validate())...)
	add("$.train", c.Train.Validate())
	add("$.manners", c.Manners.Validate())
	add("$.workers", c.checkWorkers())
	check(len(c.Datasets) > 0, "$", "datasets is empty: there is nothing to do")
	names := map[string]bool{}
	for i, d := range c.Datasets {
		section := fmt.Sprintf("$.datasets[%d]", i)
		check(!names[d.Name], section, "name is %q, which another dataset has", d.Name)
		names[d.Name] = true
		all = append(all, d.faults(section)...)
		for _, other := range c.Datasets[:i] {
			if d.FileName != "" && other.FileName != "" && d.FileName.Check() == nil && other.FileName.Check() == nil {
				add(section, underKey("file_name", publish.Apart(d.Name, other.Name, d.FileName, other.FileName)))
			}
		}
	}
	for i, d := range c.Datasets {
		for k, v := range d.Covariates {
			if v.Dataset != "" && !names[v.Dataset] {
				add(fmt.Sprintf("$.datasets[%d].covariates[%d]", i, k), fmt.Errorf("dataset is %q, which is none of the datasets", v.Dataset))
			}
		}
	}
	return append(all, c.checkModels()...)
}

func (d Dataset) faults(section string) []fault {
	var all []fault
	add := func(section string, err error) { all = append(all, faultsOf(section, err)...) }
	check := func(ok bool, format string, args ...any) {
		if !ok {
			add(section, fmt.Errorf(format, args...))
		}
	}
	check(datasetName.MatchString(d.Name),
		"name is %q, must be lower-case letters, digits, - and _, beginning with a letter or digit", d.Name)
	switch d.SeaMask {
	case "auto", "builtin", "learned":
	default:
		_, err := os.Stat(d.SeaMask)
		check(err == nil, "sea_mask is %q, must be auto, builtin, learned or a NetCDF file that is there", d.SeaMask)
	}
	add(section, d.Validate())
	all = append(all, d.sourceFaults(section)...)
	check(d.Simulate == nil || len(d.Sources) == 0, "simulate needs an archive to write to, and the dataset has sources")
	check(d.Simulate == nil || d.Archive.Type == "dir", "simulate needs an archive of type dir to write to, not %s", d.Archive.Type)
	add(section+".tests", d.Tests.Validate())
	add(section+".sea_ice", d.SeaIce.Validate())
	all = append(all, d.covariateFaults(section)...)
	check(d.TrialDays >= 0 && d.TrialDays <= 90, "trial_days is %d, must be 0..90", d.TrialDays)
	add(section+".fill", d.Fill.Validate())
	add(section+".reanalysis", d.Reanalysis.Validate())
	add(section, d.EmptyDays.Validate())
	add(section, d.checkLayout())
	if d.FileName != "" {
		add(section, underKey("file_name", d.FileName.Check()))
	}
	if d.Grid != nil {
		add(section+".grid", d.Grid.Validate())
	}
	if d.Simulate != nil {
		add(section+".simulate", d.Simulate.Validate())
	}
	return all
}

// covariateFaults returns everything wrong with the covariates of a dataset by themselves.
func (d Dataset) covariateFaults(section string) []fault {
	var all []fault
	names := map[string]bool{}
	for i, c := range d.Covariates {
		own := fmt.Sprintf("%s.covariates[%d]", section, i)
		all = append(all, faultsOf(own, c.Validate())...)
		if names[c.Name] {
			all = append(all, faultsOf(own, fmt.Errorf("name is %q, which another covariate has", c.Name))...)
		}
		names[c.Name] = true
		if c.Dataset != "" && c.Dataset == d.Name {
			all = append(all, faultsOf(own, fmt.Errorf("dataset is %q, the dataset itself", c.Dataset))...)
		}
	}
	return all
}

// checkLayout returns why the products of d cannot have its layout, or nil. Where no
// product is named, its granules tell.
func (d Dataset) checkLayout() error {
	if err := d.Layout.Validate(); err != nil {
		return err
	}
	if p, err := products.Find(d.Product); err == nil && d.Layout == netcdf.GHRSST && p.Units != "degC" {
		return fmt.Errorf("layout %s is for sea surface temperature, and product %s is not", d.Layout, d.Product)
	}
	return nil
}

// underKey returns an error that begins with a key, nil for nil.
func underKey(key string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %w", key, err)
}

// sourceFaults returns everything wrong with the archives of a dataset.
func (d Dataset) sourceFaults(section string) []fault {
	if len(d.Sources) == 0 {
		return faultsOf(section+".archive", d.Archive.Validate())
	}
	var all []fault
	check := func(ok bool, section, format string, args ...any) {
		if !ok {
			all = append(all, faultsOf(section, fmt.Errorf(format, args...))...)
		}
	}
	check(reflect.DeepEqual(d.Archive, intake.DefaultArchive()), section, "archive and sources are both given: make the archive one of the sources")
	check(len(d.Sources) <= intake.MostSources, section, "sources are %d, must be at most %d", len(d.Sources), intake.MostSources)
	names := map[string]bool{}
	for i, s := range d.Sources {
		own := fmt.Sprintf("%s.sources[%d]", section, i)
		check(!names[s.Name], own, "name is %q, which another source has", s.Name)
		names[s.Name] = true
		all = append(all, faultsOf(own, s.Validate())...)
		all = append(all, faultsOf(own+".archive", s.Archive.Validate())...)
	}
	return all
}

// lead returns the archive whose schedule is that of the dataset: the only one, or
// that of the first source.
func (d Dataset) lead() intake.Archive {
	if len(d.Sources) > 0 {
		return d.Sources[0].Archive
	}
	return d.Archive
}

// Place returns the addresses of the archives of a dataset, for people.
func (d Dataset) Place() string {
	if len(d.Sources) == 0 {
		return d.Archive.Place()
	}
	places := convert.Each(d.Sources, func(s intake.Source) string { return s.Name + " at " + s.Archive.Place() })
	return strings.Join(places, " and ")
}

// granules returns how the granules of a dataset are read. Those that were merged
// from sources are our own files: all rules have been applied.
func (d Dataset) granules() ingest.Options {
	if len(d.Sources) > 0 {
		return ingest.Options{Transform: d.Transform}
	}
	return d.Options
}

// state returns the state folder.
func (c Config) state() state.Dir { return state.Dir(c.StateDir) }
