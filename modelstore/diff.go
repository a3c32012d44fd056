package modelstore

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Difference is a field in which two cards differ. An empty side does not have
// the field.
type Difference struct {
	Field string `json:"field"` // such as training.steps
	A     string `json:"a"`
	B     string `json:"b"`
}

// Diff returns the fields in which a and b differ, by name, fields that only a
// newer Lacuna understands included. The granules are compared as sets, and days
// by their number and ends, because a list of a thousand hashes says less than how
// many are new.
func Diff(a, b Card) ([]Difference, error) {
	fieldsA, err := a.flatten()
	if err != nil {
		return nil, err
	}
	fieldsB, err := b.flatten()
	if err != nil {
		return nil, err
	}
	names := maps.Clone(fieldsA)
	maps.Copy(names, fieldsB)
	list := []Difference{} // none is an empty list in JSON, not null
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if fieldsA[name] != fieldsB[name] {
			list = append(list, Difference{name, fieldsA[name], fieldsB[name]})
		}
	}
	if d, ok := diffGranules(a.Data.Granules, b.Data.Granules); ok {
		list = append(list, d)
	}
	return list, nil
}

func diffGranules(a, b []Granule) (Difference, bool) {
	onlyA, onlyB := missingFrom(a, b), missingFrom(b, a)
	if onlyA == 0 && onlyB == 0 {
		return Difference{}, false
	}
	side := func(n, only int) string { return fmt.Sprintf("%d, of which %d only here", n, only) }
	return Difference{"data.granules", side(len(a), onlyA), side(len(b), onlyB)}, true
}

func missingFrom(list, other []Granule) int {
	has := map[Granule]bool{}
	for _, g := range other {
		has[g] = true
	}
	n := 0
	for _, g := range list {
		if !has[g] {
			n++
		}
	}
	return n
}

// flatten returns the fields of the card that are not granules as text, by
// their path.
func (c Card) flatten() (map[string]string, error) {
	days := c.Split.counted()
	c.Data.Granules, c.Split = nil, Split{Rule: c.Split.Rule, TrainDays: c.Split.TrainDays, CheckDays: c.Split.CheckDays, TestDays: c.Split.TestDays}
	data, err := c.Encode()
	if err != nil {
		return nil, err
	}
	var tree any
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.UseNumber() // seeds have more digits than a float64
	if err := decoder.Decode(&tree); err != nil {
		return nil, err
	}
	fields := map[string]string{}
	walk(fields, "", tree)
	maps.Copy(fields, days)
	return fields, nil
}

func walk(fields map[string]string, path string, node any) {
	switch node := node.(type) {
	case map[string]any:
		for name, child := range node {
			walk(fields, strings.TrimPrefix(path+"."+name, "."), child)
		}
	case []any:
		for i, child := range node {
			walk(fields, path+"."+elementName(child, i), child)
		}
	case nil:
		fields[path] = "null"
	default:
		fields[path] = fmt.Sprint(node)
	}
}

// elementName names an element of a list by its file or name, so that lists in
// another order compare alike.
func elementName(node any, i int) string {
	if object, ok := node.(map[string]any); ok {
		for _, key := range []string{"name", "file"} {
			if name, ok := object[key].(string); ok && name != "" {
				return name
			}
		}
	}
	return strconv.Itoa(i)
}
