package quality

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"lacuna/internal/faults"
)

// Tests says which tests observations must pass. With the zero value none is on,
// and every observation is used and published bit for bit.
type Tests struct {
	Range Range `yaml:"range"`
	Edge  Edge  `yaml:"edge"`
	Spike Spike `yaml:"spike"`
}

// Range refuses what the climatology of a place does not allow.
type Range struct {
	On     bool    `yaml:"enabled"` // make the test
	Sigmas float64 `yaml:"sigmas"`  // standard deviations from the mean of its place that a value may be off
	File   string  `yaml:"file"`    // NetCDF file with the climatology on the grid of the dataset: one map, or several of a year, of which the nearest day counts; empty: the days around, where a cell was observed on five of them
	Mean   string  `yaml:"mean"`    // its variable with the mean; of a dataset with the transform log10 that of the logarithm, as std
	Std    string  `yaml:"std"`     // its variable with the standard deviation
}

// Edge refuses observations beside a gap that stick out, or all of them.
type Edge struct {
	On     bool    `yaml:"enabled"` // make the test
	Cells  int     `yaml:"cells"`   // how far from a gap an observation is suspect
	Sigmas float64 `yaml:"sigmas"`  // standard deviations that it may be off the cells inside and the nearest day; 0: it is refused whatever its value
}

// Spike refuses observations that stick out from the cells around them and from
// the nearest day.
type Spike struct {
	On     bool    `yaml:"enabled"` // make the test
	Sigmas float64 `yaml:"sigmas"`  // standard deviations that an observation may be off
}

// DefaultTests returns the thresholds that hold where a file is silent, with every
// test off. The figures behind them are in docs/method.md.
func DefaultTests() Tests {
	return Tests{
		Range: Range{Sigmas: 5, Mean: "mean", Std: "std"},
		Edge:  Edge{Cells: 1, Sigmas: 2.5},
		Spike: Spike{Sigmas: 5}, // one of two million values of a normal distribution is outside
	}
}

// Any reports whether a test is on.
func (t Tests) Any() bool { return t.Range.On || t.Edge.On || t.Spike.On }

// mostEdge bounds the cells of an edge: beyond, it is no edge any more.
const mostEdge = 10

// Validate reports everything wrong with t. Each message begins with the key.
func (t Tests) Validate() error {
	var errs faults.List
	sigmas := func(key string, on bool, x float64) {
		errs.Check(!on || x >= 2 && x <= 100, "%s.sigmas is %g, must be 2..100", key, x)
	}
	sigmas("range", t.Range.On, t.Range.Sigmas)
	sigmas("spike", t.Spike.On, t.Spike.Sigmas)
	sigmas("edge", t.Edge.On && t.Edge.Sigmas != 0, t.Edge.Sigmas)
	errs.Check(!t.Edge.On || t.Edge.Cells >= 1 && t.Edge.Cells <= mostEdge, "edge.cells is %d, must be 1..%d", t.Edge.Cells, mostEdge)
	errs.Check(!t.Range.On || t.Range.File == "" || t.Range.Mean != "" && t.Range.Std != "", "range.mean or range.std is empty: name the variables of the climatology")
	return errs.Err()
}

// String returns the tests that are on in the form that Parse reads; empty where
// none is.
func (t Tests) String() string {
	var parts []string
	add := func(on bool, format string, args ...any) {
		if on {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	r, e := t.Range, t.Edge
	add(r.On, "range=%v", r.Sigmas)
	add(r.On && r.File != "", "range.file=%s", r.File)
	add(r.On && r.File != "", "range.mean=%s", r.Mean)
	add(r.On && r.File != "", "range.std=%s", r.Std)
	add(e.On, "edge=%v", e.Sigmas)
	add(e.On, "edge.cells=%d", e.Cells)
	add(t.Spike.On, "spike=%v", t.Spike.Sigmas)
	return strings.Join(parts, ",")
}

// Parse reads tests as an option of a command names them: "spike,edge", with
// thresholds "spike=6,edge=0,edge.cells=2", with a climatology
// "range=5,range.file=clim.nc".
func Parse(text string) (Tests, error) {
	t := DefaultTests()
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		if err := t.set(part); err != nil {
			return t, fmt.Errorf("tests has %q: %w", part, err)
		}
	}
	return t, t.Validate()
}

func (t *Tests) set(part string) error {
	key, value, given := strings.Cut(part, "=")
	number := func(to *float64) (err error) {
		if given {
			*to, err = strconv.ParseFloat(value, 64)
		}
		return err
	}
	var err error
	switch key {
	case "range":
		t.Range.On, err = true, number(&t.Range.Sigmas)
	case "edge":
		t.Edge.On, err = true, number(&t.Edge.Sigmas)
	case "spike":
		t.Spike.On, err = true, number(&t.Spike.Sigmas)
	case "edge.cells":
		t.Edge.Cells, err = strconv.Atoi(value)
	case "range.file":
		t.Range.File = value
	case "range.mean":
		t.Range.Mean = value
	case "range.std":
		t.Range.Std = value
	default:
		return fmt.Errorf("there is no test of that name: write %s, or NAME=SIGMAS", strings.Join(causeNames[ByRange:], ", "))
	}
	return err
}

// Set and Type make Tests the value of an option.
func (t *Tests) Set(text string) (err error) {
	*t, err = Parse(text)
	return err
}

// Type names the form of the value in the help of a command.
func (t *Tests) Type() string { return "TESTS" }

// A Cause is the test that refused a cell.
type Cause byte

// The causes, in the order in which the tests are made.
const (
	Passed Cause = iota // none: it was not observed, or it passed
	ByIce               // by no test: it is under ice
	ByRange
	ByEdge
	BySpike
)

var causeNames = []string{"", "ice", "range", "edge", "spike"}

// String returns the name of the test.
func (c Cause) String() string { return causeNames[c] }

// Counts are the cells that each test refused, by its name; a test that is on has
// a count, be it 0.
type Counts map[string]int

// Names returns the names of the tests in the order in which they are made.
func (c Counts) Names() []string {
	return slices.DeleteFunc(slices.Clone(causeNames[1:]), func(name string) bool { _, ok := c[name]; return !ok })
}
