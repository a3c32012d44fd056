package zarr

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// Names of the documents of a store.
const (
	metaV3         = "zarr.json"
	groupV2        = ".zgroup"
	arrayV2Name    = ".zarray"
	attrsV2        = ".zattrs"
	consolidatedV2 = ".zmetadata"
)

// Group is a group of a store with its arrays.
type Group struct {
	Version int // 2 or 3
	Attrs   map[string]json.RawMessage
	Arrays  []*Array // in the order of their names
	Groups  []string // paths of the groups below it, as far as the store tells
}

// Open reads the group at a path of a store, "" for its root. A store tells
// what it holds by consolidated metadata; where it has none, names are the
// arrays to look for.
func Open(ctx context.Context, store Store, at string, names ...string) (*Group, error) {
	if at != "" && !fs.ValidPath(at) {
		return nil, fmt.Errorf("group %q: not a path in the store", at)
	}
	for _, read := range []func(context.Context, Store, string, []string) (*Group, error){openV3, openConsolidatedV2, openV2} {
		g, err := read(ctx, store, at, names)
		if !errors.Is(err, fs.ErrNotExist) {
			return g, err
		}
	}
	return nil, fmt.Errorf("no Zarr group at %q: neither %s, %s nor %s is there: %w", at, metaV3, consolidatedV2, groupV2, fs.ErrNotExist)
}

// document reads a document of the store into v.
func document(ctx context.Context, store Store, key string, v any) error {
	text, err := store.Get(ctx, key, maxDocument)
	if err != nil {
		return err
	}
	return parse(key, text, v)
}

// parse reads JSON as Python writes it, with NaN and infinities.
func parse(key string, text []byte, v any) error {
	if html := bytes.TrimSpace(text); bytes.HasPrefix(html, []byte("<")) {
		return fmt.Errorf("%s: it is a web page, not a Zarr document", key)
	}
	if err := json.Unmarshal(quoteNaN(text), v); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

func openV3(ctx context.Context, store Store, at string, names []string) (*Group, error) {
	var doc GroupV3
	key := path.Join(at, metaV3)
	if err := document(ctx, store, key, &doc); err != nil {
		return nil, err
	}
	if doc.Format != 3 || doc.NodeType != "group" {
		return nil, fmt.Errorf("%s: it describes a %s of format %d, not a group of format 3", key, doc.NodeType, doc.Format)
	}
	g := &Group{Version: 3, Attrs: doc.Attributes}
	documents := map[string]json.RawMessage{}
	root := GroupV3{Consolidated: doc.Consolidated}
	below := ""
	if doc.Consolidated == nil && at != "" {
		if err := document(ctx, store, metaV3, &root); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		below = at + "/"
	}
	if root.Consolidated != nil {
		for name, raw := range root.Consolidated.Metadata {
			if name, ok := strings.CutPrefix(name, below); ok {
				documents[name] = raw
			}
		}
	} else {
		for _, name := range names {
			var raw json.RawMessage
			switch err := document(ctx, store, path.Join(at, name, metaV3), &raw); {
			case errors.Is(err, fs.ErrNotExist):
				continue
			case err != nil:
				return nil, err
			}
			documents[name] = raw
		}
	}
	return g, g.collect(documents, func(name string, raw json.RawMessage) (*Array, error) {
		return arrayV3(store, path.Join(at, name), raw)
	})
}

// collect adds the arrays of documents, by the paths of their nodes below the
// group.
func (g *Group) collect(documents map[string]json.RawMessage, array func(string, json.RawMessage) (*Array, error)) error {
	if len(documents) > maxNodes {
		return fmt.Errorf("the store has %d arrays and groups, more than %d", len(documents), maxNodes)
	}
	for _, name := range slices.Sorted(maps.Keys(documents)) {
		if !fs.ValidPath(name) || name == "." {
			return fmt.Errorf("the store has the node %q, which leads out of it", name)
		}
		var kind struct {
			NodeType string `json:"node_type"`
		}
		if err := parse(name, documents[name], &kind); err != nil {
			return err
		}
		switch {
		case kind.NodeType == "group":
			g.Groups = append(g.Groups, name)
		case strings.Contains(name, "/"): // of a group below
		default:
			a, err := array(name, documents[name])
			if err != nil {
				return err
			}
			g.Arrays = append(g.Arrays, a)
		}
	}
	return nil
}

func openConsolidatedV2(ctx context.Context, store Store, at string, _ []string) (*Group, error) {
	var doc struct {
		Metadata map[string]json.RawMessage `json:"metadata"`
	}
	if err := document(ctx, store, consolidatedV2, &doc); err != nil {
		return nil, err
	}
	if at != "" {
		at += "/"
	}
	g := &Group{Version: 2, Attrs: map[string]json.RawMessage{}}
	arrays, attrs := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	found := false
	for key, raw := range doc.Metadata {
		below, ok := strings.CutPrefix(key, at)
		if !ok {
			continue
		}
		node, document := path.Split(below)
		node = strings.TrimSuffix(node, "/")
		switch {
		case document == groupV2 && node == "":
			found = true
		case document == groupV2:
			g.Groups = append(g.Groups, node)
		case document == attrsV2 && node == "":
			if err := parse(key, raw, &g.Attrs); err != nil {
				return nil, err
			}
		case document == attrsV2:
			attrs[node] = raw
		case document == arrayV2Name:
			arrays[node] = raw
		}
	}
	slices.Sort(g.Groups)
	if !found {
		return nil, fmt.Errorf("%s has no group %q: %w", consolidatedV2, at, fs.ErrNotExist)
	}
	return g, g.collect(arrays, func(name string, raw json.RawMessage) (*Array, error) {
		return newV2(store, at+name, raw, attrs[name])
	})
}

func openV2(ctx context.Context, store Store, at string, names []string) (*Group, error) {
	var head struct {
		Format int `json:"zarr_format"`
	}
	key := path.Join(at, groupV2)
	if err := document(ctx, store, key, &head); err != nil {
		return nil, err
	}
	if head.Format != 2 {
		return nil, fmt.Errorf("%s: format %d, must be 2", key, head.Format)
	}
	g := &Group{Version: 2, Attrs: map[string]json.RawMessage{}}
	if err := document(ctx, store, path.Join(at, attrsV2), &g.Attrs); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	arrays, attrs := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	for _, name := range names {
		var array, about json.RawMessage
		err := document(ctx, store, path.Join(at, name, arrayV2Name), &array)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = document(ctx, store, path.Join(at, name, attrsV2), &about)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		arrays[name], attrs[name] = array, about
	}
	return g, g.collect(arrays, func(name string, raw json.RawMessage) (*Array, error) {
		return newV2(store, path.Join(at, name), raw, attrs[name])
	})
}

// quoteNaN puts the numbers that JSON does not know, and Python writes, into
// quotation marks.
func quoteNaN(text []byte) []byte {
	if !bytes.Contains(text, []byte("NaN")) && !bytes.Contains(text, []byte("Infinity")) {
		return text
	}
	out := make([]byte, 0, len(text)+64)
	quoted := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quoted && c == '\\' && i+1 < len(text):
			out = append(out, c, text[i+1])
			i++
			continue
		case c == '"':
			quoted = !quoted
		case !quoted:
			if word := oddNumber(text[i:]); word != "" {
				out = append(out, '"')
				out = append(out, word...)
				out = append(out, '"')
				i += len(word) - 1
				continue
			}
		}
		out = append(out, c)
	}
	return out
}

func oddNumber(text []byte) string {
	for _, word := range []string{"NaN", "-Infinity", "Infinity"} {
		if bytes.HasPrefix(text, []byte(word)) {
			return word
		}
	}
	return ""
}
