package zarr

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// shift is the move of slots to make room for a time before them. It is written
// down before it begins, and so ends as it should after any crash.
type shift struct {
	Keep  int            `json:"keep"`  // slots that stay in sight meanwhile
	Moves [][2]int       `json:"moves"` // slots, from and to, the last one first
	Maps  map[string]int `json:"maps"`  // rank of each map
	// After are the objects that the move ends with, by key below the store:
	// series and the metadata of arrays, then that of the group.
	After map[string][]byte `json:"after"`
	Group []byte            `json:"group"`
}

func (st *store) shiftKey() string {
	return path.Join(".shift", strings.TrimSuffix(st.prefix, ".zarr")+".json")
}
func (st *store) progressKey() string { return st.shiftKey() + ".next" }

// shift moves slots so that the axis becomes that of p, with empty slots where a
// product is to come. first is the first that moves, counted like offset.
func (st *store) shift(ctx context.Context, p placed, offset, first int, step int64) error {
	s := shift{Keep: offset + first, Maps: map[string]int{}, After: map[string][]byte{}}
	for i, from := range slices.Backward(p.from) {
		if from >= 0 && from != i {
			s.Moves = append(s.Moves, [2]int{offset + from, offset + i})
		}
	}
	for _, name := range st.names(true) {
		s.Maps[name] = len(st.array(name).Shape)
	}
	for _, name := range st.names(false) {
		if err := st.rearrange(ctx, name, p, offset, step, s.After); err != nil {
			return err
		}
	}
	st.extend(offset + len(p.axis))
	st.cover(p.axis, offset, step)
	var err error
	for name, a := range st.group.Consolidated.Metadata {
		if s.After[path.Join(name, rootKey)], err = encode(a); err != nil {
			return err
		}
	}
	if s.Group, err = encode(st.group); err != nil {
		return err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encode shift: %w", err)
	}
	if err := st.sink.objects.Put(ctx, st.shiftKey(), text, jsonKind); err != nil {
		return err
	}
	if err := st.endShift(ctx); err != nil {
		return err
	}
	return st.load(ctx)
}

// rearrange adds the chunks of a series along the axis of p to after, from that
// of offset on.
func (st *store) rearrange(ctx context.Context, name string, p placed, offset int, step int64, after map[string][]byte) error {
	a := st.array(name)
	var old [][]byte
	for chunk := offset / seriesChunk; chunk*seriesChunk < st.length(); chunk++ {
		rows, err := st.rows(ctx, name, chunk)
		if err != nil {
			return err
		}
		old = append(old, rows...)
	}
	var rows [][]byte
	for i, from := range p.from {
		if from >= 0 {
			rows = append(rows, old[from])
		} else {
			rows = append(rows, st.vacancy(p.axis[i].At, step)[name]) // nil: fill values
		}
	}
	chunk := offset / seriesChunk
	for part := range slices.Chunk(rows, seriesChunk) {
		after[path.Join(name, seriesKey(a, chunk))] = encodeSeries(a, part, seriesChunk)
		chunk++
	}
	return nil
}

// endShift carries out the shift that is written down, from the slot that it had
// come to.
func (st *store) endShift(ctx context.Context) error {
	text, err := st.sink.objects.Get(ctx, st.shiftKey())
	if err != nil || text == nil {
		return err
	}
	var s shift
	if err := json.Unmarshal(text, &s); err != nil {
		return fmt.Errorf("read %s: %w; remove it and the store, and replay the dataset", st.shiftKey(), err)
	}
	if err := st.load(ctx); err != nil {
		return err
	}
	st.extend(min(s.Keep, st.length()))
	short, err := encode(st.group)
	if err != nil {
		return err
	}
	if err := st.sink.objects.Put(ctx, st.key(rootKey), short, jsonKind); err != nil {
		return err
	}
	if err := st.moveSlots(ctx, s); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(s.After)) {
		if err := st.put(ctx, st.key(key), s.After[key]); err != nil {
			return err
		}
	}
	if err := st.sink.objects.Put(ctx, st.key(rootKey), s.Group, jsonKind); err != nil {
		return err
	}
	// The note of the progress goes last: without the shift it means nothing, and
	// the shift without it would begin again.
	if err := st.sink.objects.Remove(ctx, st.shiftKey()); err != nil {
		return err
	}
	return st.sink.objects.Remove(ctx, st.progressKey())
}

// moveSlots moves the shards, slot by slot. A slot that was moved is noted
// before another takes its place, so that none is moved twice.
func (st *store) moveSlots(ctx context.Context, s shift) error {
	note, err := st.sink.objects.Get(ctx, st.progressKey())
	if err != nil {
		return err
	}
	done, id := 0, ""
	if _, err := fmt.Sscanf(string(note), "%d %s", &done, &id); err != nil || id != s.id() {
		done = 0 // of another shift
	}
	for i := done; i < len(s.Moves); i++ {
		for _, name := range slices.Sorted(maps.Keys(s.Maps)) {
			from, to := shardKey(s.Moves[i][0], s.Maps[name]), shardKey(s.Moves[i][1], s.Maps[name])
			if err := st.sink.objects.Move(ctx, st.key(name, from), st.key(name, to)); err != nil {
				return err
			}
		}
		if err := st.put(ctx, st.progressKey(), []byte(strconv.Itoa(i+1)+" "+s.id())); err != nil {
			return err
		}
	}
	return nil
}

// id tells a shift from the one before.
func (s shift) id() string { return hashOf(s.Group) }
