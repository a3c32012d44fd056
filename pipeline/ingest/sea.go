package ingest

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"lacuna/pipeline/field"
)

// seaNames are the names that masks have, surest first, and whether 1 means
// land.
var seaNames = []struct {
	name string
	land bool
}{
	{"sea_binary_mask", false},
	{"sea_mask", false},
	{"land_binary_mask", true},
	{"land_mask", true},
	{"land_sea_mask", false},
	{"landmask", true},
	{"sea", false},
	{"mask", false},
}

// findSea returns the variable that tells sea from land, one map of it, or -1.
func findSea(h *header, a axes, except int) int {
	found := -1
	rank := len(seaNames)
	for v := range h.Vars {
		if v == except || !fits(h, a, v) || a.timeDim >= 0 && slices.Contains(h.Vars[v].Dims, a.timeDim) && h.Dims[a.timeDim].Len != 1 {
			continue
		}
		if r := seaRank(&h.Vars[v]); r < rank {
			found, rank = v, r
		}
	}
	return found
}

func seaRank(v *headerVar) int {
	for _, name := range []string{v.Text("standard_name"), strings.ToLower(v.Name)} {
		for r, s := range seaNames {
			if name == s.name {
				return r
			}
		}
	}
	return len(seaNames)
}

// A seaReading says which stored numbers of a mask mean sea.
type seaReading struct {
	bits  uint64  // sea where these bits are set, if not 0
	value float64 // else sea where the number equals value
	not   bool    // inverted: bits or value mean land
	plain bool    // mask without flags: only 0 and 1 are valid
}

// readingOf infers the meaning of the numbers of mask v: from its flags, its
// standard name, its long name, or its name.
func readingOf(v *headerVar) seaReading {
	meanings := strings.Fields(strings.ToLower(v.Text("flag_meanings")))
	for _, kind := range []struct {
		words []string
		not   bool
	}{{[]string{"sea", "ocean", "water", "open_sea", "open_ocean"}, false}, {[]string{"land"}, true}} {
		i := slices.IndexFunc(meanings, func(m string) bool { return slices.Contains(kind.words, m) })
		if i < 0 {
			continue
		}
		if masks := v.Numbers("flag_masks"); i < len(masks) && masks[i] >= 1 {
			return seaReading{bits: uint64(masks[i]), not: kind.not}
		}
		if values := v.Numbers("flag_values"); i < len(values) {
			return seaReading{value: values[i], not: kind.not}
		}
	}
	r := seaReading{value: 1, plain: true}
	if rank := seaRank(v); rank < len(seaNames) {
		r.not = seaNames[rank].land
	}
	switch long := strings.ReplaceAll(strings.ToLower(v.Text("long_name")), " ", ""); {
	case strings.Contains(long, "1=land"), strings.Contains(long, "0=sea"), strings.Contains(long, "0=ocean"), strings.Contains(long, "0=water"):
		r.not = true
	case strings.Contains(long, "1=sea"), strings.Contains(long, "1=ocean"), strings.Contains(long, "1=water"), strings.Contains(long, "0=land"):
		r.not = false
	}
	return r
}

// seaOf returns the sea cells of a mask. A cell without a number is land:
// nothing is ever filled there.
func seaOf(v *headerVar, raw []byte) (field.Mask, error) {
	c, err := codingOf(v)
	if err != nil {
		return nil, err
	}
	r := readingOf(v)
	values := c.numbers(raw)
	mask := make(field.Mask, len(values))
	for i, x := range values {
		switch {
		case math.IsNaN(x):
			continue
		case r.plain && x != 0 && x != 1:
			return nil, bad(fmt.Sprintf("its sea mask %s has the value %g", v.Name, x),
				"a mask must have 1 for sea and 0 for land, or flag_meanings")
		case r.bits != 0:
			mask[i] = (uint64(int64(x))&r.bits != 0) != r.not
		default:
			mask[i] = (x == r.value) != r.not
		}
	}
	if mask.Count() == 0 {
		return nil, bad(fmt.Sprintf("its sea mask %s has no sea", v.Name), "check which value means sea")
	}
	return mask, nil
}
