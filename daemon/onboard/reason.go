package onboard

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"lacuna/internal/figure"
	"lacuna/pipeline/ingest/products"
)

func (s *Sample) whyProduct() string {
	p := products.Named(s.Product)
	if p.Title == "" {
		return "what the granules were taken for"
	}
	return "what the granules were taken for: " + p.Title
}

func (s *Sample) whyVariable() string {
	why := fmt.Sprintf("%s of the sea was observed in %d files", figure.Percent(s.Coverage), s.Read)
	for _, note := range s.Notes {
		if strings.Contains(note, "variable "+s.Variable) {
			why = note + "; " + why
		}
	}
	if s.clouded > 0 {
		why += fmt.Sprintf("; nothing in %d more, which are filled from the days around them", s.clouded)
	}
	if s.unreadable > 0 {
		why += fmt.Sprintf("; %d cannot be read and will be set aside, each with its reason", s.unreadable)
	}
	if s.others > 0 {
		why += fmt.Sprintf("; %d on another grid belong to another dataset", s.others)
	}
	return why
}

func (s *Sample) whyTransform() string {
	switch {
	case math.IsNaN(s.LogSkew):
		return fmt.Sprintf("values from %.3g to %.3g: where some are not positive there are no logarithms; skewness %.1f", s.Values.Min, s.Values.Max, s.Skewness)
	case s.Transform.Log10:
		return fmt.Sprintf("values from %.3g to %.3g: log10 takes their skewness from %.1f to %.1f, and errors then are alike in clear and in rich water",
			s.Values.Min, s.Values.Max, s.Skewness, s.LogSkew)
	}
	return fmt.Sprintf("values from %.3g to %.3g: their skewness is %.1f as they are and %.1f after log10", s.Values.Min, s.Values.Max, s.Skewness, s.LogSkew)
}

// whyTransform returns the reason for a transform where no value was seen.
func whyTransform(name string) string {
	if name == "log10" {
		return "of the product: concentrations are log-normal, and errors in log10 are alike in clear and in rich water"
	}
	return "of the product: its errors are alike over its whole range"
}

func (s *Sample) whyRange() string {
	origin := "what was seen, with its own width added on both sides"
	if p := products.Named(s.Product); p.Range != [2]float64{} {
		origin = "physical limits of " + s.Product
	}
	return fmt.Sprintf("%s, in %s; values outside are refused, with those of the quality rule %d of %d in the sample",
		origin, cmp.Or(s.Units, "the units of the file"), s.Rejected, s.Values.N+s.Rejected)
}

func (s *Sample) whyQuality() string {
	if len(s.Quality) == 0 {
		return "no quality variable is known of this product; write rules such as \"quality_level >= 4\" if the files have one"
	}
	return "rules that must all hold for a value to count; of " + cmp.Or(s.Product, "the product")
}

func (s *Sample) whySea() string {
	switch s.SeaMask {
	case "granule":
		return "the granules have a mask of their own"
	case "learned":
		return "the built-in mask calls most of what the sample shows land, as it does lakes: cells that any day shows are taken for water, more with every day; or name a NetCDF file"
	}
	return "the granules have no mask: the built-in one serves, to which lakes are land; or name a NetCDF file"
}

// wrap breaks a text at its spaces into lines of at most width characters.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case len(line)+1+len(word) > width:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// quoteYAML returns a string as a YAML value, quoted unless it is plain.
func quoteYAML(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 && s[0] != '-' && s[0] != '.' {
		if _, err := strconv.ParseFloat(s, 64); err != nil && s != "true" && s != "false" && s != "null" && s != "yes" && s != "no" {
			return s
		}
	}
	return strconv.Quote(s)
}

func flowList(items []string) string {
	quoted := make([]string, len(items))
	for i, item := range items {
		quoted[i] = strconv.Quote(item)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
