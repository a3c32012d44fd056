package zarr

import (
	"encoding/json"
	"fmt"
	"slices"
)

// NamedCodec is a codec, a chunk grid or another extension of version 3: a name
// with its settings.
type NamedCodec struct {
	Name          string          `json:"name"`
	Configuration json.RawMessage `json:"configuration,omitempty"`
}

// UnmarshalJSON reads an object, or the name alone as the specification allows.
func (c *NamedCodec) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		return json.Unmarshal(text, &c.Name)
	}
	type plain NamedCodec
	return json.Unmarshal(text, (*plain)(c))
}

// ArrayV3 is the zarr.json of an array.
type ArrayV3 struct {
	Format           int                        `json:"zarr_format"` // 3
	NodeType         string                     `json:"node_type"`   // "array"
	Shape            []int                      `json:"shape"`
	DataType         json.RawMessage            `json:"data_type"` // a name, or an object for types that are not read here
	ChunkGrid        NamedCodec                 `json:"chunk_grid"`
	ChunkKeyEncoding NamedCodec                 `json:"chunk_key_encoding"`
	FillValue        json.RawMessage            `json:"fill_value"`
	Codecs           []NamedCodec               `json:"codecs"`
	Attributes       map[string]json.RawMessage `json:"attributes,omitempty"`
	DimensionNames   []string                   `json:"dimension_names,omitempty"`
	Transformers     []json.RawMessage          `json:"storage_transformers,omitempty"` // not read
}

// GroupV3 is the zarr.json of a group, with the documents below it where they
// are consolidated.
type GroupV3 struct {
	Format       int                        `json:"zarr_format"` // 3
	NodeType     string                     `json:"node_type"`   // "group"
	Attributes   map[string]json.RawMessage `json:"attributes"`
	Consolidated *ConsolidatedV3            `json:"consolidated_metadata,omitempty"`
}

// ConsolidatedV3 holds the documents below a group, by the path of their node.
type ConsolidatedV3 struct {
	Kind           string                     `json:"kind"` // "inline"
	MustUnderstand bool                       `json:"must_understand"`
	Metadata       map[string]json.RawMessage `json:"metadata"`
}

// arrayV2 is the .zarray of an array of version 2.
type arrayV2 struct {
	Format     int               `json:"zarr_format"`
	Shape      []int             `json:"shape"`
	Chunks     []int             `json:"chunks"`
	Type       json.RawMessage   `json:"dtype"`
	Compressor json.RawMessage   `json:"compressor"`
	FillValue  json.RawMessage   `json:"fill_value"`
	Order      string            `json:"order"`
	Filters    []json.RawMessage `json:"filters"`
	Separator  string            `json:"dimension_separator"`
}

// Array is an array of a store, of either version.
type Array struct {
	Name     string // path of its node in the store
	Shape    []int
	Chunks   []int    // of a shard, where there are shards
	Type     string   // as in package cdl; "" where it is Unusable
	Dims     []string // names of the dimensions; empty where the store gives none
	Attrs    map[string]json.RawMessage
	Fill     []byte // the value of numbers that are not stored, one element
	HasFill  bool   // the store says what a missing chunk holds
	Version  int    // 2 or 3
	Unusable string // why it cannot be read; "": it can

	store Store
	chain chain
	key   func(chunk []int) string
}

// Limits of what a store may claim.
const (
	maxRank     = 8         // CF has four dimensions and labels; archives six
	maxDocument = 64 << 20  // consolidated metadata of an ARCO store with hundreds of variables are 2 MB
	maxChunk    = 512 << 20 // bytes of a chunk once inflated; c-blosc and numcodecs end at 2 GiB
	maxStored   = 1 << 30   // bytes of a chunk or shard as it is stored
	maxNodes    = 4096      // arrays and groups of a store
	maxExtent   = 1 << 40   // elements along a dimension
)

// checkShape refuses shapes that overflow, or that no archive has.
func checkShape(what string, shape []int, least int) error {
	if len(shape) > maxRank {
		return fmt.Errorf("%s has %d dimensions, more than %d", what, len(shape), maxRank)
	}
	for _, n := range shape {
		if n < least || n > maxExtent {
			return fmt.Errorf("%s is %v, which no array has", what, shape)
		}
	}
	return nil
}

// elements returns the product of shape, at most most+1.
func elements(shape []int, most int) int {
	if slices.Contains(shape, 0) {
		return 0
	}
	n := 1
	for _, extent := range shape {
		if extent > (most+1)/n+1 {
			return most + 1
		}
		n *= extent
	}
	return min(n, most+1)
}
