// Package onboard proposes the configuration of a new dataset from a sample of its
// granules and the speed of the machine, with a reason for every line.
//
// It writes no file, and does not know the service or its ledger.
package onboard

import (
	"fmt"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lacuna/daemon/intake"
	"lacuna/daemon/retrain"
	"lacuna/internal/figure"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/ingest/products"
)

// Onboarding holds the facts about a new dataset and the machine from which its
// configuration is proposed.
type Onboarding struct {
	Name    string // name of the dataset
	Archive intake.Archive
	Options ingest.Options // options that the user has given
	Sample  *Sample        // findings in its granules; nil: none could be read
	Machine Machine
	Starter string // version that fills it from the tenth day on; empty: none fits
	// StateDir holds state, products and models.
	StateDir string
	Now      time.Time
}

// Machine is the engine of this machine and its measured speed.
type Machine struct {
	Engine  string      // engine that networks run on; empty: none is usable
	Missing string      // reason why none is usable
	Speed   infer.Speed // zero: not measured
}

// setting is a line of a configuration with its reason. Indent is in steps.
type setting struct {
	indent int
	text   string
	why    string // reason; empty: the line only opens a section
}

// Propose returns a configuration for the dataset, as YAML in which a comment
// above every line gives its reason. The same o gives the same text.
func (o Onboarding) Propose() []byte {
	return o.write([]setting{
		{0, "state_dir: " + quoteYAML(o.StateDir), "ledger, spool and what is set aside; all that Lacuna remembers"},
		{0, "products_dir: " + quoteYAML(filepath.Join(o.StateDir, "products")), "where the gap-free maps appear, a folder a month"},
		{0, "train:", ""},
		{1, "store: " + quoteYAML(filepath.Join(o.StateDir, "models")), o.whyTrain()},
		{0, "datasets:", ""},
	}, o.dataset())
}

// dataset proposes the entry of the dataset in the list of datasets.
func (o Onboarding) dataset() []setting {
	name := []setting{{1, "- name: " + o.Name, "a folder of the products and a label of the metrics"}}
	return slices.Concat(name, o.reading(), o.part(), o.watching(), o.filling())
}

// write returns settings as YAML, with their reasons above them.
func (o Onboarding) write(parts ...[]setting) []byte {
	var b strings.Builder
	indent := strings.Repeat("  ", parts[0][0].indent)
	fmt.Fprintf(&b, "%[1]s# Proposed by lacuna init on %[2]s%[3]s. Every reason stands above its line:\n%[1]s# change what you know better, then run lacuna check.\n",
		indent, o.Now.UTC().Format(time.DateOnly), o.from())
	for _, s := range slices.Concat(parts...) {
		pad := strings.Repeat("  ", s.indent)
		for _, line := range wrap(s.why, 96-len(pad)) {
			fmt.Fprintf(&b, "%s# %s\n", pad, line)
		}
		fmt.Fprintf(&b, "%s%s\n", pad, s.text)
	}
	return []byte(b.String())
}

func (o Onboarding) from() string {
	if o.Sample == nil {
		return ", without a granule to look at"
	}
	return fmt.Sprintf(", from %d of %d files such as %s", o.Sample.Read, o.Sample.Files, o.Sample.Example)
}

func (o Onboarding) whyTrain() string {
	first := retrain.DefaultConfig().FirstDays
	why := fmt.Sprintf("a model of the dataset's own is trained when %d days are there, anew every Sunday night, and only while nothing is to be filled; remove the line to train nothing", first)
	if o.Sample != nil {
		why = fmt.Sprintf("%d days are there; ", o.Sample.Days) + why
	}
	return why
}

// reading proposes the settings for reading granules.
func (o Onboarding) reading() []setting {
	s := o.Sample
	if s == nil {
		return o.readingUnseen()
	}
	all := []setting{}
	if s.Product != "" {
		all = append(all, setting{2, "product: " + s.Product, s.whyProduct()})
	}
	all = append(all,
		setting{2, "variable: " + quoteYAML(s.Variable), s.whyVariable()},
		setting{2, "transform: " + s.Transform.String(), s.whyTransform()},
		setting{2, fmt.Sprintf("valid_range: [%g, %g]", s.Range[0], s.Range[1]), s.whyRange()},
		setting{2, "quality: " + flowList(s.Quality), s.whyQuality()},
		setting{2, "sea_mask: auto", s.whySea()},
	)
	return all
}

// part proposes which part of the granules is read, where the user has said so.
func (o Onboarding) part() []setting {
	var all []setting
	if o.Options.Group != "" {
		all = append(all, setting{2, "group: " + quoteYAML(o.Options.Group), "as asked for: the variables of this group, and of those above it"})
	}
	if b := o.Options.BBox; len(b) == 4 {
		all = append(all, setting{2, fmt.Sprintf("bbox: [%g, %g, %g, %g]", b[0], b[1], b[2], b[3]), "as asked for: west, south, east and north; the rest is neither fetched, where the archive can cut, nor filled"})
	}
	return all
}

func (o Onboarding) readingUnseen() []setting {
	if o.Options.Product == "" {
		return []setting{{2, "sea_mask: auto", "the granules' own mask, else the built-in one; learned from the days where that calls most of what they show land, as it does lakes"}}
	}
	p := products.Named(o.Options.Product)
	return []setting{
		{2, "product: " + p.Name, "known to Lacuna: " + p.Title},
		{2, "variable: " + p.Variable, "the one that the product is read for where nothing else is said"},
		{2, "transform: " + p.Transform, whyTransform(p.Transform)},
		{2, fmt.Sprintf("valid_range: [%g, %g]", p.Range[0], p.Range[1]), "of the product, in " + p.Units + "; values outside are refused"},
		{2, "quality: " + flowList(p.Quality), "of the product; give --sample FILE to see what it refuses"},
		{2, "sea_mask: auto", "the granules' own mask, else the built-in one; learned from the days where that calls most of what they show land, as it does lakes"},
	}
}

// watching proposes the archive and its schedule.
func (o Onboarding) watching() []setting {
	all := []setting{{2, "archive:", ""}}
	add := func(indent int, text, why string) { all = append(all, setting{indent, text, why}) }
	for _, l := range o.Archive.Propose() {
		text := l.Key + ":"
		if l.Key == "settle" && o.finished() {
			l.Text, l.Why = "0s", "nobody writes to these files any more: the newest is of "+o.Sample.Newest.UTC().Format(time.DateOnly)
		}
		if l.Text != "" || l.Why != "" { // otherwise the line only opens a section
			text += " " + yamlOf(l.Text)
		}
		add(3+l.Indent, text, l.Why)
	}
	if o.Archive.Local() {
		return append(all, o.expecting()...)
	}
	add(3, "schedule: \"17 * * * *\"", "once an hour: products of a day come once a day, at times that vary by hours")
	add(3, "jitter: 5m", "so that not everybody asks at the same minute")
	return append(all, o.expecting()...)
}

// yamlOf returns the text of a proposed line, in which brackets are a list.
func yamlOf(text string) string {
	if inner, ok := strings.CutPrefix(text, "["); ok {
		return flowList(strings.Split(strings.TrimSuffix(inner, "]"), ", "))
	}
	return quoteYAML(text)
}

// expecting proposes the age at which a missing granule raises an alarm.
func (o Onboarding) expecting() []setting {
	s := o.Sample
	if o.finished() {
		return []setting{
			{3, "expect:", ""},
			{4, "nothing: true", fmt.Sprintf("the newest granule is of %s: no alarm tells every day how old it is; remove the line if more will come", s.Newest.UTC().Format(time.DateOnly))},
		}
	}
	if s == nil || s.Step == 0 {
		return nil
	}
	if !infer.Daily(s.Step) {
		within := max(o.Now.Sub(s.Newest), s.Step).Truncate(time.Hour) + time.Hour
		return []setting{
			{3, "expect:", ""},
			{4, "within: " + hours(within), fmt.Sprintf("fields of the sample are %s apart: the next is late, and raises an alarm, so long after its own time; the newest now is of %s",
				hours(s.Step), s.Newest.UTC().Format(time.RFC3339))},
		}
	}
	lag := max(int(o.Now.Sub(s.Newest).Hours()/24)+1, 1)
	return []setting{
		{3, "expect:", ""},
		{4, "by: \"18:00\"", "a granule a day, as in the sample: one that is not there by this time (UTC) raises an alarm"},
		{4, fmt.Sprintf("lag_days: %d", lag), fmt.Sprintf("after its own day: the newest now is of %s", s.Newest.UTC().Format(time.DateOnly))},
	}
}

// hours writes a duration in hours.
func hours(d time.Duration) string { return fmt.Sprintf("%gh", math.Round(d.Hours()*10)/10) }

// staleAfter is the age of the newest granule above which an archive counts as
// finished.
const staleAfter = 30 * 24 * time.Hour

// finished reports whether the archive looks as if nothing more came.
func (o Onboarding) finished() bool {
	return o.Sample != nil && o.Now.Sub(o.Sample.Newest) > max(staleAfter, 2*o.Sample.Step)
}

// filling proposes the settings for filling.
func (o Onboarding) filling() []setting {
	all := []setting{{2, "fill:", ""}, {3, "method: auto", o.whyMethod()}}
	past, whyPast := o.past()
	all = append(all, setting{3, fmt.Sprintf("past_days: %d", past), whyPast})
	if s := o.Sample; o.finished() {
		all = append(all, setting{3, "future_days: 10", fmt.Sprintf(
			"the newest granule is of %s: nothing here is near real time, and days after a gap help as much as those before it", s.Newest.UTC().Format(time.DateOnly))})
	} else {
		all = append(all, setting{3, "future_days: 0", "products appear on the day; those of the days before are made anew as their neighbours arrive"})
	}
	if o.Machine.Speed == (infer.Speed{}) || o.Sample == nil {
		return all
	}
	within, why := o.deadline()
	return append(all, setting{3, "network:", ""}, setting{4, "deadline: " + within.String(), why})
}

func (o Onboarding) whyMethod() string {
	why := "the dataset's own model once there is one, else "
	switch {
	case o.Machine.Engine == "":
		why += "optimal interpolation: no engine for networks is usable here (" + o.Machine.Missing + ")"
	case o.Starter != "" && o.Sample != nil && !infer.Daily(o.Sample.Step):
		why += fmt.Sprintf("optimal interpolation: starter models learned from daily fields, and these are %s apart", hours(o.Sample.Step))
	case o.Starter != "":
		why += fmt.Sprintf("optimal interpolation and, as far as scored days show that it is right here, the starter model (%s)", o.Starter)
	default:
		why += "optimal interpolation: there is no starter model for this variable"
	}
	return why
}

// past proposes the days of the window before a field, with the reason.
func (o Onboarding) past() (int, string) {
	usual := infer.DefaultConfig().PastDays
	if o.Sample != nil && o.Sample.Step > 36*time.Hour {
		return usual, fmt.Sprintf("steps of the series, which are %s: a window of days would hold too few of them", hours(o.Sample.Step))
	}
	return usual, "what models and optimal interpolation were judged with; the scores of a model do not hold for another window"
}

// deadline proposes the time that a field has for its tier, with what this machine
// does in it.
func (o Onboarding) deadline() (time.Duration, string) {
	cells := o.Sample.Grid.Len()
	within := infer.Network{}.Rhythm(infer.Config{Step: o.Sample.Step}.Interval()).Deadline
	var times []string
	for _, t := range infer.Tiers() {
		d := o.Machine.Speed.Estimate(t.Recipe(0), cells)
		times = append(times, fmt.Sprintf("%s about %s", t, figure.Duration(d)))
	}
	return within, fmt.Sprintf("a 24th of the time between two fields; the best tier that is done in it fills, here %s. Measured on %s, for %d cells: %s. standard and full need a model with members",
		infer.PickTier(within, o.Machine.Speed, cells, 0), o.Machine.Engine, cells, strings.Join(times, ", "))
}

// DatasetName returns a name for a dataset after its folder, product or file.
func DatasetName(from string) string {
	name := strings.Trim(PlainName(strings.TrimSuffix(path.Base(filepath.ToSlash(from)), ".nc")), "-_")
	if name == "" {
		return "dataset"
	}
	return strings.TrimRight(name[:min(len(name), 62)], "-_")
}

// PlainName replaces the characters that names of datasets must not have.
func PlainName(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, text)
}
