package zarr

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"lacuna/publish"
)

// show puts a product into its slots.
func (st *store) show(ctx context.Context, c content, granule string) error {
	axis, offset, err := st.tail(ctx, slices.Min(c.times), c.step)
	if err != nil {
		return err
	}
	p, err := place(axis, granule, c.times, c.step)
	if err != nil {
		return err
	}
	if st.text == nil {
		st.group.Attrs = c.attrs
	}
	if err := st.adopt(ctx, c); err != nil {
		return err
	}
	if first, moves := p.moves(); moves {
		if err := st.shift(ctx, p, offset, first, c.step); err != nil {
			return err
		}
		return st.show(ctx, c, granule) // now there is an empty slot for each of its times
	}
	// What the granule had is taken out of sight, the variable first; then what
	// it has now is written, the variable last.
	var taken []int
	for i, s := range axis {
		if s.Granule == granule || slices.Contains(p.slots, i) {
			taken = append(taken, offset+i)
		}
	}
	if err := st.empty(ctx, taken, c.order[len(c.order)-1]); err != nil {
		return err
	}
	if err := st.clean(ctx, p.slots, offset); err != nil {
		return err
	}
	for _, name := range c.order {
		if err := st.showMap(ctx, c, name, p.slots, offset); err != nil {
			return err
		}
	}
	before := st.length()
	if err := st.showSeries(ctx, c, p, offset, taken); err != nil {
		return err
	}
	if n := offset + len(p.axis); n > before {
		st.extend(n)
		for name, value := range c.attrs {
			st.group.Attrs[name] = value
		}
		st.cover(p.axis, offset, c.step)
	}
	return st.describe(ctx)
}

// clean removes the shards that an append left behind the last slot when it
// was killed: another product may come there. Then it notes the slots that are
// written now.
func (st *store) clean(ctx context.Context, slots []int, offset int) error {
	var left, now []int
	note, err := st.sink.objects.Get(ctx, st.pendingKey())
	if err == nil && note != nil {
		err = json.Unmarshal(note, &left)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w; remove it", st.pendingKey(), err)
	}
	left = slices.DeleteFunc(left, func(i int) bool { return i < st.length() })
	for _, name := range st.names(true) {
		for _, i := range left {
			if err := st.sink.objects.Remove(ctx, st.key(name, shardKey(i, len(st.array(name).Shape)))); err != nil {
				return err
			}
		}
	}
	for _, i := range slots {
		if offset+i >= st.length() {
			now = append(now, offset+i)
		}
	}
	if now == nil {
		return nil
	}
	text, err := json.Marshal(now)
	if err != nil {
		return err
	}
	return st.sink.objects.Put(ctx, st.pendingKey(), text, jsonKind)
}

func (st *store) pendingKey() string {
	return path.Join(".pending", strings.TrimSuffix(st.prefix, ".zarr")+".json")
}

// showMap writes the shards of a map.
func (st *store) showMap(ctx context.Context, c content, name string, slots []int, offset int) error {
	a := st.array(name)
	if !a.alongTime(c.timeDim) || !a.sharded() {
		return nil
	}
	for i, row := range c.rows[name] {
		shard := encodeShard(row, fillBytes(a.Type, a.Fill), a.Shape[1:], a.inner()[1:])
		if shard == nil {
			continue // nothing but fill values, as an empty slot has
		}
		if err := st.put(ctx, st.key(name, shardKey(offset+slots[i], len(a.Shape))), shard); err != nil {
			return err
		}
	}
	return nil
}

// inner returns the shape of a chunk in a shard.
func (a array) inner() []int {
	switch shape := a.Codecs[0].Configuration["chunk_shape"].(type) {
	case []int:
		return shape
	case []any: // from a zarr.json
		out := make([]int, len(shape))
		for i, n := range shape {
			length, _ := n.(float64)
			out[i] = int(length)
		}
		return out
	}
	return nil
}

// showSeries writes the slots of a product in every series, and those that are
// empty: new ones between it and the others, and slots that it no longer has.
func (st *store) showSeries(ctx context.Context, c content, p placed, offset int, taken []int) error {
	changed := map[int]map[string][]byte{} // by slot and series; a series without a row has its fill value
	for _, i := range taken {
		changed[i] = st.vacancy(p.axis[i-offset].At, c.step)
	}
	for i, from := range p.from {
		if from < 0 {
			changed[offset+i] = st.vacancy(p.axis[i].At, c.step)
		}
	}
	for k, i := range p.slots {
		rows := map[string][]byte{}
		for name := range c.rows {
			rows[name] = c.rows[name][k]
		}
		changed[offset+i] = rows
	}
	return st.change(ctx, changed)
}

// vacancy returns the rows of an empty slot that are not fill values: its time
// and its period.
func (st *store) vacancy(at, step int64) map[string][]byte {
	instant := binary.LittleEndian.AppendUint64(nil, uint64(at))
	rows := map[string][]byte{st.timeAxis(): instant}
	if bounds, ok := st.array(st.timeAxis()).Attrs["bounds"].(string); ok {
		rows[bounds] = binary.LittleEndian.AppendUint64(slices.Clone(instant), uint64(at+step))
	}
	return rows
}

// change writes slots of every series, the revision last: with it they hold. The
// granule comes before, for by it the slots are found until they are emptied.
func (st *store) change(ctx context.Context, changed map[int]map[string][]byte) error {
	names := slices.DeleteFunc(st.names(false), func(name string) bool { return name == revisionSeries || name == granuleSeries })
	for _, name := range append(names, granuleSeries, revisionSeries) {
		if err := st.changeSeries(ctx, name, changed); err != nil {
			return err
		}
	}
	return nil
}

func (st *store) changeSeries(ctx context.Context, name string, changed map[int]map[string][]byte) error {
	a := st.array(name)
	byChunk := map[int][]int{}
	for _, i := range slices.Sorted(maps.Keys(changed)) {
		byChunk[i/seriesChunk] = append(byChunk[i/seriesChunk], i)
	}
	for _, chunk := range slices.Sorted(maps.Keys(byChunk)) {
		rows, err := st.rows(ctx, name, chunk)
		if err != nil {
			return err
		}
		for _, i := range byChunk[chunk] {
			row, ok := changed[i][name]
			if !ok {
				row = a.fillRow()
			}
			rows[i%seriesChunk] = row
		}
		if err := st.put(ctx, st.key(name, seriesKey(a, chunk)), encodeSeries(a, rows, seriesChunk)); err != nil {
			return err
		}
	}
	return nil
}

// empty takes slots out of sight: first their revision, then the product's
// variable, then the other maps.
func (st *store) empty(ctx context.Context, slots []int, variable string) error {
	if len(slots) == 0 {
		return nil
	}
	if err := st.forget(ctx, slots); err != nil {
		return err
	}
	names := st.names(true)
	if i := slices.Index(names, variable); i >= 0 { // else it is not known, as of a ledger that was made anew
		names = slices.Insert(slices.Delete(names, i, i+1), 0, variable)
	}
	for _, name := range names {
		for _, i := range slots {
			if err := st.sink.objects.Remove(ctx, st.key(name, shardKey(i, len(st.array(name).Shape)))); err != nil {
				return err
			}
		}
	}
	return nil
}

// forget sets the revision of slots to 0.
func (st *store) forget(ctx context.Context, slots []int) error {
	changed := map[int]map[string][]byte{}
	for _, i := range slots {
		changed[i] = nil
	}
	return st.changeSeries(ctx, revisionSeries, changed)
}

// retract empties the slots of a granule.
func (st *store) retract(ctx context.Context, p publish.Product) error {
	if st.text == nil {
		return nil
	}
	axis, offset, err := st.tail(ctx, p.Time.Unix(), 0)
	if err != nil {
		return err
	}
	var slots []int
	changed := map[int]map[string][]byte{}
	for i, s := range axis {
		if s.Granule == p.Granule {
			slots = append(slots, offset+i)
			changed[offset+i] = st.vacancy(s.At, day)
		}
	}
	if err := st.empty(ctx, slots, p.Variable); err != nil || len(slots) == 0 {
		return err
	}
	return st.change(ctx, changed)
}

// day is the step that a slot is taken to have where no product tells it.
const day = 24 * 60 * 60 // seconds
