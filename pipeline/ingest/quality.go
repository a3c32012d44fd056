package ingest

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// A rule compares a quality variable with a number, cell by cell:
// "quality_level >= 4", "QC == 0", or for bits "flags & 6 == 0".
type rule struct {
	text     string
	variable string
	mask     uint64 // 0: compare the value itself
	operator string
	number   float64
}

var ruleForm = regexp.MustCompile(`^\s*([\pL_][\pL\pN_.+@-]*?)\s*(?:&\s*(0[xX][0-9a-fA-F]+|\d+)\s*)?(==|!=|<=|>=|<|>)\s*(\S+)\s*$`)

func parseRule(text string) (rule, error) {
	m := ruleForm.FindStringSubmatch(text)
	if m == nil {
		return rule{}, fmt.Errorf("quality rule %q cannot be parsed: write NAME OP NUMBER or NAME & BITS OP NUMBER with OP one of == != < <= > >=", text)
	}
	r := rule{text: strings.TrimSpace(text), variable: m[1], operator: m[3]}
	if m[2] != "" {
		bits, err := strconv.ParseUint(m[2], 0, 64)
		if err != nil || bits == 0 {
			return rule{}, fmt.Errorf("quality rule %q: the bits must be a positive number of at most 64 bits", text)
		}
		r.mask = bits
	}
	n, err := strconv.ParseFloat(m[4], 64)
	if whole, werr := strconv.ParseInt(m[4], 0, 64); werr == nil { // also 0x06
		n, err = float64(whole), nil
	}
	if err != nil || !finite(n) {
		return rule{}, fmt.Errorf("quality rule %q compares with %q, which is not a number", text, m[4])
	}
	r.number = n
	return r, nil
}

// holds reports whether x passes. NaN, a quality that is itself missing,
// passes nothing: a value of unknown quality is not used.
func (r rule) holds(x float64) bool {
	if math.IsNaN(x) {
		return false
	}
	if r.mask != 0 {
		x = float64(uint64(int64(x)) & r.mask)
	}
	switch r.operator {
	case "==":
		return x == r.number
	case "!=":
		return x != r.number
	case "<":
		return x < r.number
	case "<=":
		return x <= r.number
	case ">":
		return x > r.number
	default:
		return x >= r.number
	}
}

// reject marks the observed cells of one field whose quality fails the rule,
// and empties them. quality has a number per cell.
func (r rule) reject(values []float32, rejected []bool, quality []float64) {
	nan := float32(math.NaN())
	for i, v := range values {
		if v != v || r.holds(quality[i]) {
			continue
		}
		values[i], rejected[i] = nan, true
	}
}
