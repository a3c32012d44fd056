package publish

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Template makes the names of the files of products, such as
// {date}_{dataset}_r{revision}.nc. Placeholders knows what may be in braces; a number
// after a colon is the least width, filled up with zeros.
type Template string

// Naming is what the name of a product can tell.
type Naming struct {
	Dataset     string
	Granule     string    // name of the granule's file without its ending, with its day
	Time        time.Time // time of the first field
	Revision    int
	Mode        string // NearRealTime or Delayed; empty: not known yet, see WithMode
	Institution string // of the creator
	SSTType     string // code of GHRSST for the depth of a temperature
}

// placeholder is a part of a template in braces.
var placeholder = regexp.MustCompile(`\{([^{}]*)\}`)

// Placeholders returns the words that a template may have in braces, each with its
// meaning.
func Placeholders() [][2]string {
	return [][2]string{
		{"dataset", "name of the dataset"},
		{"product", "the same with _ for -, which GHRSST reserves"},
		{"granule", "name of the granule, with its day"},
		{"date", "day of the first field, YYYYMMDD"},
		{"time", "its time, HHMMSS"},
		{"year", "YYYY"},
		{"month", "MM"},
		{"day", "DD"},
		{"doy", "day of the year, 001 to 366"},
		{"revision", "number of the revision; {revision:02} has two digits or more"},
		{"mode", "nrt, or dt for delayed"},
		{"institution", "institution of the credits, letters and digits only"},
		{"sst_type", "kind of temperature after GHRSST, such as SSTfnd"},
	}
}

// word returns the text for a placeholder; false for an unknown one.
func (n Naming) word(key string) (string, bool) {
	t := n.Time.UTC()
	switch key {
	case "dataset":
		return n.Dataset, true
	case "product":
		return strings.ReplaceAll(n.Dataset, "-", "_"), true
	case "granule":
		return n.Granule, true
	case "date":
		return t.Format("20060102"), true
	case "time":
		return t.Format("150405"), true
	case "year":
		return t.Format("2006"), true
	case "month":
		return t.Format("01"), true
	case "day":
		return t.Format("02"), true
	case "doy":
		return t.Format("002"), true
	case "revision":
		return strconv.Itoa(n.Revision), true
	case "mode":
		return modeWord(n.Mode), true
	case "institution":
		return letters(n.Institution), true
	case "sst_type":
		return n.SSTType, true
	}
	return "", false
}

// unknownMode stands in a name for the mode while that is not known.
const unknownMode = "{mode}"

func modeWord(mode string) string {
	switch mode {
	case "":
		return unknownMode
	case Delayed:
		return "dt"
	}
	return "nrt"
}

// WithMode returns a name that was made before the mode was known.
func WithMode(name, mode string) string { return strings.ReplaceAll(name, unknownMode, modeWord(mode)) }

// letters returns the letters and digits of s.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, s)
}

// Name returns the name of a file, with the ending .nc.
func (t Template) Name(n Naming) string {
	name := placeholder.ReplaceAllStringFunc(string(t), func(part string) string {
		key, width, _ := strings.Cut(part[1:len(part)-1], ":")
		word, _ := n.word(key)
		least, _ := strconv.Atoi(width)
		return strings.Repeat("0", max(0, least-len(word))) + word
	})
	return strings.TrimSuffix(name, ".nc") + ".nc"
}

// Check returns why t cannot name the products of a dataset, in a sentence with the
// placeholder that it lacks, or nil. Each revision of each day must have a name of
// its own.
func (t Template) Check() error {
	for _, m := range placeholder.FindAllStringSubmatch(string(t), -1) {
		key, width, _ := strings.Cut(m[1], ":")
		if _, known := (Naming{}).word(key); !known {
			return fmt.Errorf("%q has {%s}, must be one of %s", t, key, knownWords())
		}
		if _, err := strconv.ParseUint("0"+width, 10, 4); err != nil {
			return fmt.Errorf("%q has the width %q, must be a number up to 15", t, width)
		}
	}
	rest := placeholder.ReplaceAllString(string(t), "x")
	bad := func(r rune) bool { return unicode.IsControl(r) || strings.ContainsRune(`{}/\`, r) }
	if rest == "" || strings.HasPrefix(rest, ".") || strings.ContainsFunc(rest, bad) {
		return fmt.Errorf("%q is no name of a file: it must not be empty, begin with a dot, or have slashes, control characters or single braces", t)
	}
	some := sample(time.Date(2023, 1, 15, 12, 0, 0, 0, time.UTC), 1)
	for _, other := range []time.Time{some.Time.AddDate(0, 0, 1), some.Time.AddDate(0, 1, 0), some.Time.AddDate(1, 0, 0)} {
		if t.Name(some) == t.Name(sample(other, 1)) {
			return fmt.Errorf("%q gives products of %s and %s the same name: add {date}", t, Day(some.Time), Day(other))
		}
	}
	if t.Name(some) == t.Name(sample(some.Time, 2)) {
		return fmt.Errorf("%q gives two revisions of a product the same name: add {revision}", t)
	}
	return nil
}

// sample is a product of a day for Check.
func sample(t time.Time, revision int) Naming {
	return Naming{Dataset: "x", Granule: t.Format("20060102") + "_x", Time: t, Revision: revision, Mode: NearRealTime, Institution: "x", SSTType: "x"}
}

// Apart returns why the products of two datasets would have the same names, in a
// sentence with the placeholder that is missing, or nil.
func Apart(name, other string, t, o Template) error {
	a := sample(time.Date(2023, 1, 15, 12, 0, 0, 0, time.UTC), 1)
	b := a
	a.Dataset, b.Dataset = name, other
	if t.Name(a) == o.Name(b) {
		return fmt.Errorf("%q gives products of this dataset and of %s the same name: add {dataset}", t, other)
	}
	return nil
}

func knownWords() string {
	var all []string
	for _, p := range Placeholders() {
		all = append(all, "{"+p[0]+"}")
	}
	return strings.Join(all, " ")
}
