package zarr

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"time"

	"lacuna/publish"
)

// store is the store of a dataset.
type store struct {
	sink   *Sink
	prefix string
	text   []byte // the group's zarr.json; nil: there is no store yet
	group  group
}

const (
	rootKey   = "zarr.json"
	hashAttr  = "content_sha256" // of an array without time: the hash of its numbers
	startAttr = "time_coverage_start"
	endAttr   = "time_coverage_end"
)

// open reads the metadata of a store, after it has ended a move that was
// interrupted.
func (s *Sink) open(ctx context.Context, dataset string) (*store, error) {
	st := &store{sink: s, prefix: dataset + ".zarr"}
	if err := st.endShift(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", st.prefix, err)
	}
	return st, st.load(ctx)
}

func (st *store) load(ctx context.Context) (err error) {
	st.group = group{Format: 3, Kind: "group", Consolidated: consolidated{Kind: "inline", Metadata: map[string]array{}}}
	if st.text, err = st.sink.objects.Get(ctx, st.key(rootKey)); err != nil || st.text == nil {
		return err
	}
	if err := json.Unmarshal(st.text, &st.group); err != nil {
		return fmt.Errorf("read %s: %w; remove the store and replay the dataset", st.key(rootKey), err)
	}
	if st.group.Consolidated.Metadata == nil || st.array(revisionSeries).Shape == nil {
		return fmt.Errorf("%w: %s is not a store of this program; move it away", publish.ErrPermanent, st.key(rootKey))
	}
	return nil
}

func (st *store) key(parts ...string) string {
	return path.Join(append([]string{st.prefix}, parts...)...)
}

func (st *store) array(name string) array { return st.group.Consolidated.Metadata[name] }

// names returns the arrays along time: series, or maps.
func (st *store) names(maps bool) (names []string) {
	for name, a := range st.group.Consolidated.Metadata {
		if a.alongTime(st.timeDim()) && a.sharded() == maps {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (st *store) timeDim() string { return st.array(revisionSeries).Dims[0] }

// timeAxis returns the name of the time coordinate.
func (st *store) timeAxis() string {
	for name, a := range st.group.Consolidated.Metadata {
		if _, ok := a.Attrs["calendar"]; ok && a.Type == "int64" && len(a.Dims) == 1 && a.alongTime(st.timeDim()) {
			return name
		}
	}
	return ""
}

// length is the number of slots.
func (st *store) length() int {
	if st.text == nil {
		return 0
	}
	return st.array(revisionSeries).Shape[0]
}

// fits refuses a product that has another layout than the store.
func (st *store) fits(c content) error {
	if st.text == nil {
		return nil
	}
	const remedy = "a store has one grid and one layout: move it away and replay the dataset, or give the new products a dataset of their own"
	if c.timeAxis != st.timeAxis() {
		return fmt.Errorf("%w: its times are called %s, and those of %s %s; %s", publish.ErrPermanent, c.timeAxis, st.prefix, st.timeAxis(), remedy)
	}
	for name, a := range st.group.Consolidated.Metadata {
		b, ok := c.arrays[name]
		if !ok {
			continue
		}
		if how := a.differs(b); how != "" {
			return fmt.Errorf("%w: its %s %s as in %s; %s", publish.ErrPermanent, name, how, st.prefix, remedy)
		}
		if raw, static := c.static[name]; static && a.Attrs[hashAttr] != hashOf(raw) {
			return fmt.Errorf("%w: its %s has other numbers than that of %s; %s", publish.ErrPermanent, name, st.prefix, remedy)
		}
	}
	return nil
}

func hashOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// tail reads the slots from a time on, and at least one step before it. The
// first of them has the index offset.
func (st *store) tail(ctx context.Context, from, step int64) (axis []slot, offset int, err error) {
	n := st.length()
	for chunk := (n - 1) / seriesChunk; n > 0 && chunk >= 0; chunk-- {
		rows := map[string][][]byte{}
		for _, name := range []string{st.timeAxis(), revisionSeries, granuleSeries} {
			if rows[name], err = st.rows(ctx, name, chunk); err != nil {
				return nil, 0, err
			}
		}
		var slots []slot
		for i := range min(seriesChunk, n-chunk*seriesChunk) {
			slots = append(slots, slot{
				At:      int64(binary.LittleEndian.Uint64(rows[st.timeAxis()][i])),
				Granule: string(rows[granuleSeries][i]),
				Live:    binary.LittleEndian.Uint32(rows[revisionSeries][i]) > 0,
			})
		}
		axis, offset = append(slots, axis...), chunk*seriesChunk
		if axis[0].At < from-step {
			break
		}
	}
	return axis, offset, nil
}

// rows reads a chunk of a series; one that is not there has fill values.
func (st *store) rows(ctx context.Context, name string, chunk int) ([][]byte, error) {
	a := st.array(name)
	frame, err := st.sink.objects.Get(ctx, st.key(name, seriesKey(a, chunk)))
	if err != nil {
		return nil, err
	}
	if frame == nil {
		return slices.Repeat([][]byte{a.fillRow()}, seriesChunk), nil
	}
	rows, err := decodeSeries(a, frame)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", st.key(name, seriesKey(a, chunk)), err)
	}
	return rows, nil
}

func seriesKey(a array, chunk int) string { return shardKey(chunk, len(a.Shape)) }

// adopt adds the arrays of a product that the store lacks, and writes those
// that have no time. They are seen with the group's zarr.json.
func (st *store) adopt(ctx context.Context, c content) error {
	for _, name := range c.order {
		if _, there := st.group.Consolidated.Metadata[name]; there {
			continue
		}
		a := c.arrays[name]
		if a.alongTime(c.timeDim) {
			a.Shape = slices.Clone(a.Shape)
			a.Shape[0] = st.length()
		}
		if raw, static := c.static[name]; static {
			a.Attrs = maps.Clone(a.Attrs)
			a.Attrs[hashAttr] = hashOf(raw)
			if err := st.put(ctx, st.key(name, chunkKey(make([]int, len(a.Shape))...)), compress(raw)); err != nil {
				return err
			}
		}
		st.group.Consolidated.Metadata[name] = a
	}
	return nil
}

// extend sets the number of slots, in memory.
func (st *store) extend(n int) {
	for name, a := range st.group.Consolidated.Metadata {
		if a.alongTime(st.timeDim()) {
			a.Shape = slices.Clone(a.Shape)
			a.Shape[0] = n
			st.group.Consolidated.Metadata[name] = a
		}
	}
}

// describe writes the metadata that has changed, that of the group last.
func (st *store) describe(ctx context.Context) error {
	var before group
	if st.text != nil {
		if err := json.Unmarshal(st.text, &before); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(st.group.Consolidated.Metadata)) {
		text, err := encode(st.array(name))
		if err != nil {
			return err
		}
		if old, err := encode(before.Consolidated.Metadata[name]); err == nil && bytes.Equal(old, text) {
			continue
		}
		if err := st.sink.objects.Put(ctx, st.key(name, rootKey), text, jsonKind); err != nil {
			return err
		}
	}
	text, err := encode(st.group)
	if err != nil || bytes.Equal(text, st.text) {
		return err
	}
	st.text = text
	return st.sink.objects.Put(ctx, st.key(rootKey), text, jsonKind)
}

func (st *store) put(ctx context.Context, key string, content []byte) error {
	return st.sink.objects.Put(ctx, key, content, "application/octet-stream")
}

// cover sets the attributes of the group that tell its times.
func (st *store) cover(axis []slot, offset int, step int64) {
	iso := func(t int64) string { return time.Unix(t, 0).UTC().Format(time.RFC3339) }
	if _, known := st.group.Attrs[startAttr]; !known || offset == 0 {
		st.group.Attrs[startAttr] = iso(axis[0].At)
	}
	st.group.Attrs[endAttr] = iso(axis[len(axis)-1].At + step)
}
