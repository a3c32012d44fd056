package modelstore

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
)

// withUnknown adds to data, the encoding of a value like known, the fields of
// the former encoding raw that its type does not have. Objects inside objects
// are treated alike; the elements of lists are not, for they have no names by
// which to find them again.
func withUnknown(data, raw json.RawMessage, known any) (json.RawMessage, error) {
	if raw == nil {
		return data, nil
	}
	return merge(data, raw, reflect.TypeOf(known))
}

// merge returns data as it is where raw has nothing to add, so that its fields
// stay in the order of their type.
func merge(data, raw json.RawMessage, t reflect.Type) (json.RawMessage, error) {
	var now, before map[string]json.RawMessage
	if err := json.Unmarshal(raw, &before); err != nil || before == nil {
		return data, nil // not an object: it has no fields to keep
	}
	if err := json.Unmarshal(data, &now); err != nil {
		return nil, err
	}
	added := false
	for name, value := range before {
		field, known := fieldNamed(t, name)
		switch {
		case !known:
			now[name], added = value, true
		case field.Type.Kind() == reflect.Struct && now[name] != nil:
			merged, err := merge(now[name], value, field.Type)
			if err != nil {
				return nil, err
			}
			added = added || !bytes.Equal(merged, now[name])
			now[name] = merged
		}
	}
	if !added {
		return data, nil
	}
	return json.Marshal(now)
}

// fieldNamed finds the field of t that encoding/json would decode name into.
func fieldNamed(t reflect.Type, name string) (reflect.StructField, bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() && strings.EqualFold(tag, name) {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

// indent lays an object out for people.
func indent(data json.RawMessage) ([]byte, error) {
	var b bytes.Buffer
	if err := json.Indent(&b, data, "", "  "); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}
