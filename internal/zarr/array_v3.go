package zarr

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"lacuna/internal/cdl"
)

// errUnusable marks an array that is sound, and of a kind that is not read.
var errUnusable = errors.New("it cannot be read")

// typesV3 are the data types by their names in version 3.
func typesV3(name string) string {
	return map[string]string{
		"bool": "ubyte", "int8": "byte", "uint8": "ubyte", "int16": "short", "uint16": "ushort", "int32": "int", "uint32": "uint",
		"int64": "int64", "uint64": "uint64", "float32": "float", "float64": "double",
	}[name]
}

func arrayV3(store Store, name string, raw json.RawMessage) (*Array, error) {
	var doc ArrayV3
	if err := parse(name, raw, &doc); err != nil {
		return nil, err
	}
	a := &Array{Name: name, Version: 3, Shape: doc.Shape, Dims: doc.DimensionNames, Attrs: doc.Attributes, HasFill: true, store: store}
	err := a.fromV3(doc)
	switch {
	case errors.Is(err, errUnusable):
		a.Unusable, a.Type = err.Error(), ""
	case err != nil:
		return nil, fmt.Errorf("array %s: %w", name, err)
	}
	return a, nil
}

func (a *Array) fromV3(doc ArrayV3) error {
	if doc.Format != 3 || doc.NodeType != "array" {
		return fmt.Errorf("it describes a %s of format %d, not an array of format 3", doc.NodeType, doc.Format)
	}
	if err := checkShape("its shape", doc.Shape, 0); err != nil {
		return err
	}
	if len(doc.DimensionNames) != 0 && len(doc.DimensionNames) != len(doc.Shape) {
		return fmt.Errorf("it has %d dimensions and %d names of them", len(doc.Shape), len(doc.DimensionNames))
	}
	if len(doc.Transformers) > 0 {
		return fmt.Errorf("%w: it has storage transformers", errUnusable)
	}
	var typ string
	if json.Unmarshal(doc.DataType, &typ) != nil || typesV3(typ) == "" {
		return fmt.Errorf("%w: its type is %s", errUnusable, doc.DataType)
	}
	a.Type = typesV3(typ)
	var grid struct {
		Shape []int `json:"chunk_shape"`
	}
	if doc.ChunkGrid.Name != "regular" {
		return fmt.Errorf("%w: its chunks are %q, not regular", errUnusable, doc.ChunkGrid.Name)
	}
	if err := json.Unmarshal(doc.ChunkGrid.Configuration, &grid); err != nil {
		return fmt.Errorf("chunk_grid: %w", err)
	}
	a.Chunks = grid.Shape
	var err error
	if a.key, err = keysV3(a.Name, doc.ChunkKeyEncoding); err != nil {
		return err
	}
	if a.Fill, err = fillValue(a.Type, doc.FillValue); err != nil {
		return err
	}
	if a.chain, err = chainV3(doc.Codecs, cdl.SizeOf(a.Type), len(a.Shape)); err != nil {
		return err
	}
	return a.checkChunks()
}

// checkChunks refuses chunks that do not fit the array, or that are too large.
func (a *Array) checkChunks() error {
	if len(a.Chunks) != len(a.Shape) {
		return fmt.Errorf("it has %d dimensions, and its chunks %d", len(a.Shape), len(a.Chunks))
	}
	if err := checkShape("the shape of its chunks", a.Chunks, 1); err != nil {
		return err
	}
	if size := a.chain.size; elements(a.Chunks, maxChunk/size) > maxChunk/size {
		return fmt.Errorf("%w: its chunks of %v have more than %d MiB", errUnusable, a.Chunks, maxChunk>>20)
	}
	return nil
}

// keysV3 returns the keys of the chunks of an array.
func keysV3(name string, encoding NamedCodec) (func([]int) string, error) {
	set := struct {
		Separator string `json:"separator"`
	}{}
	if len(encoding.Configuration) > 0 {
		if err := json.Unmarshal(encoding.Configuration, &set); err != nil {
			return nil, fmt.Errorf("chunk_key_encoding: %w", err)
		}
	}
	switch {
	case encoding.Name == "default" && (set.Separator == "" || set.Separator == "/"):
		return func(at []int) string { return joined(name+"/c", "/", at) }, nil
	case encoding.Name == "default" && set.Separator == ".":
		return func(at []int) string { return joined(name+"/c", ".", at) }, nil
	case encoding.Name == "v2" && (set.Separator == "" || set.Separator == "." || set.Separator == "/"):
		return keysV2(name, set.Separator), nil
	}
	return nil, fmt.Errorf("%w: its chunk keys are %q with the separator %q", errUnusable, encoding.Name, set.Separator)
}

func keysV2(name, separator string) func([]int) string {
	if separator == "" {
		separator = "."
	}
	return func(at []int) string {
		if len(at) == 0 {
			return name + "/0"
		}
		return name + "/" + strings.TrimPrefix(joined("", separator, at), separator)
	}
}

func joined(text, separator string, at []int) string {
	for _, n := range at {
		text += separator + strconv.Itoa(n)
	}
	return text
}

// chainV3 returns the way back through codecs, for an array of rank dimensions.
func chainV3(codecs []NamedCodec, size, rank int) (chain, error) {
	c := chain{size: size}
	if len(codecs) > maxRank {
		return c, fmt.Errorf("it has %d codecs, more than %d", len(codecs), maxRank)
	}
	serial := false
	for _, named := range codecs {
		step, known := inflaters(named.Name)
		var err error
		switch {
		case named.Name == "transpose" && !serial:
			err = c.transpose(named.Configuration, rank)
		case named.Name == "bytes" && !serial:
			serial, err = true, c.endian(named.Configuration)
		case named.Name == "sharding_indexed" && !serial && rank > 0:
			serial = true
			c.shard, err = shardingV3(named.Configuration, size, rank)
		case known && serial:
			c.inflate = append(c.inflate, step)
		default:
			err = fmt.Errorf("%w: it is coded with %s", errUnusable, named.Name)
		}
		if err != nil {
			return c, err
		}
	}
	if !serial {
		return c, errors.New("its codecs make no bytes of its numbers")
	}
	return c, nil
}

func (c *chain) endian(settings json.RawMessage) error {
	var set struct {
		Endian string `json:"endian"`
	}
	if len(settings) > 0 {
		if err := json.Unmarshal(settings, &set); err != nil {
			return fmt.Errorf("codec bytes: %w", err)
		}
	}
	if set.Endian != "" && set.Endian != "little" && set.Endian != "big" {
		return fmt.Errorf("codec bytes: endian is %q", set.Endian)
	}
	c.big = set.Endian == "big" && c.size > 1
	return nil
}

func (c *chain) transpose(settings json.RawMessage, rank int) error {
	var set struct {
		Order json.RawMessage `json:"order"`
	}
	if err := json.Unmarshal(settings, &set); err != nil {
		return fmt.Errorf("codec transpose: %w", err)
	}
	var order []int
	if err := json.Unmarshal(set.Order, &order); err != nil {
		return fmt.Errorf("%w: codec transpose has the order %s", errUnusable, set.Order)
	}
	if len(order) != rank || !isPermutation(order) {
		return fmt.Errorf("codec transpose: the order %v is none of %d axes", order, rank)
	}
	if c.order == nil {
		c.order = order
		return nil
	}
	c.order = permuted(c.order, order)
	return nil
}

func isPermutation(order []int) bool {
	sorted := slices.Sorted(slices.Values(order))
	for i, n := range sorted {
		if i != n {
			return false
		}
	}
	return true
}

func shardingV3(settings json.RawMessage, size, rank int) (*sharding, error) {
	var set struct {
		Chunks []int        `json:"chunk_shape"`
		Codecs []NamedCodec `json:"codecs"`
		Index  []NamedCodec `json:"index_codecs"`
		At     string       `json:"index_location"`
	}
	if err := json.Unmarshal(settings, &set); err != nil {
		return nil, fmt.Errorf("codec sharding_indexed: %w", err)
	}
	if len(set.Chunks) != rank {
		return nil, fmt.Errorf("codec sharding_indexed: chunk_shape %v is not of %d dimensions", set.Chunks, rank)
	}
	if err := checkShape("chunk_shape", set.Chunks, 1); err != nil {
		return nil, err
	}
	for _, nested := range slices.Concat(set.Codecs, set.Index) {
		if nested.Name == "sharding_indexed" {
			return nil, fmt.Errorf("%w: it has shards within shards", errUnusable)
		}
	}
	inner, err := chainV3(set.Codecs, size, rank)
	if err != nil {
		return nil, err
	}
	const offset = 8 // bytes of an entry of the index
	index, err := chainV3(set.Index, offset, rank+1)
	if err != nil {
		return nil, err
	}
	return &sharding{chunks: set.Chunks, inner: inner, index: index, atStart: set.At == "start"}, nil
}
