package prior

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"lacuna/pipeline/noise"
	"lacuna/pipeline/samples"
)

// Draw returns a mask for each place, item i from stream.Sub(i). Land is
// never observed.
func (m *Model) Draw(ctx context.Context, places []Place, cfg SampleConfig, stream noise.Stream) ([][]bool, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("draw masks: %w", err)
	}
	drawn, err := m.draw(ctx, drawing{places: places, streams: streamsOf(stream, len(places)), cfg: GuideConfig{SampleConfig: cfg}})
	return drawn.masks, err
}

// DrawGuided returns for each patch a mask that was pulled towards a thinned
// copy of its observation, the anchor; item i from stream.Sub(i).
func (m *Model) DrawGuided(ctx context.Context, patches []samples.Patch, cfg GuideConfig, stream noise.Stream) (masks, anchors [][]bool, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, nil, fmt.Errorf("draw guided masks: %w", err)
	}
	drawn, err := m.draw(ctx, m.guidedDrawing(patches, streamsOf(stream, len(patches)), cfg))
	return drawn.masks, drawn.anchors, err
}

func streamsOf(stream noise.Stream, n int) []noise.Stream {
	out := make([]noise.Stream, n)
	for i := range out {
		out[i] = stream.Sub(uint64(i))
	}
	return out
}

// A drawing is a list of masks to draw. With patches it is guided.
type drawing struct {
	places  []Place
	patches []samples.Patch
	streams []noise.Stream
	cfg     GuideConfig
}

func (m *Model) guidedDrawing(patches []samples.Patch, streams []noise.Stream, cfg GuideConfig) drawing {
	places := make([]Place, len(patches))
	for i, p := range patches {
		places[i] = m.Place(p)
	}
	return drawing{places: places, patches: patches, streams: streams, cfg: cfg}
}

type drawn struct{ masks, anchors [][]bool }

// draw draws batch by batch. Every batch is of one size, so that a mask does
// not depend on how many are drawn with it.
func (m *Model) draw(ctx context.Context, d drawing) (drawn, error) {
	var out drawn
	for from := 0; from < len(d.places); from += d.cfg.Batch {
		to := min(from+d.cfg.Batch, len(d.places))
		part := drawing{places: d.places[from:to], streams: d.streams[from:to], cfg: d.cfg}
		if d.patches != nil {
			part.patches = d.patches[from:to]
		}
		if err := part.check(); err != nil {
			return drawn{}, fmt.Errorf("draw masks: %w", err)
		}
		some, err := m.drawBatch(ctx, part)
		if err != nil {
			return drawn{}, fmt.Errorf("draw masks %d to %d: %w", from, to, err)
		}
		out.masks = append(out.masks, some.masks...)
		out.anchors = append(out.anchors, some.anchors...)
	}
	return out, nil
}

func (d drawing) check() error {
	first := d.places[0]
	for _, p := range d.places {
		if p.Height != first.Height || p.Width != first.Width {
			return fmt.Errorf("places of %dx%d and %dx%d cells: draw one size at a time", first.Height, first.Width, p.Height, p.Width)
		}
		if len(p.Sea) != p.Height*p.Width {
			return fmt.Errorf("sea mask of %d cells for a place of %dx%d", len(p.Sea), p.Height, p.Width)
		}
		if p.Yesterday != nil && len(p.Yesterday) != len(p.Sea) {
			return fmt.Errorf("yesterday's mask has %d cells and the sea mask %d", len(p.Yesterday), len(p.Sea))
		}
	}
	return CheckBatch(d.cfg.Batch, len(first.Sea))
}

// CheckBatch refuses a batch of masks that no engine takes: tensors are counted
// with 32 bits in places.
func CheckBatch(batch, cells int) error {
	const most = 1 << 28 // cells of all items: a gigabyte for one channel
	if batch*cells > most {
		return fmt.Errorf("a batch of %d masks of %d cells is larger than memory allows: use a smaller batch or smaller windows", batch, cells)
	}
	return nil
}

func (m *Model) drawBatch(ctx context.Context, d drawing) (drawn, error) {
	items, cells := len(d.places), len(d.places[0].Sea)
	levels := d.cfg.Spacing.Levels(m.schedule, d.cfg.Steps, cells)
	deviation := startDeviation(levels)
	x := make([]float32, items*Classes*cells)
	var out drawn
	var anchors []float32
	if d.patches != nil {
		anchors, out.anchors = make([]float32, items*cells), make([][]bool, items)
	}
	inParallel(items, func(i int) {
		noise := x[i*Classes*cells : (i+1)*Classes*cells]
		d.streams[i].Sub(drawNoise).Normals(noise, 0)
		for k := range noise {
			noise[k] *= deviation
		}
		if anchors != nil {
			anchor := anchors[i*cells : (i+1)*cells]
			d.cfg.anchors(anchor, d.patches[i], d.streams[i])
			out.anchors[i] = isOne(anchor)
		}
	})
	s := m.open(d.places, d.cfg.Batch)
	defer s.close()
	s.start(x)
	var p pull
	if anchors != nil {
		s.pullTo(anchors)
		p = pull{weight: d.cfg.weightFor(cells), steps: d.cfg.GuidedSteps}
	}
	if err := walk(ctx, s, levels, d.cfg.Order, p); err != nil {
		return drawn{}, err
	}
	x, err := s.latents(items)
	if err != nil {
		return drawn{}, err
	}
	out.masks = decode(x, items)
	for i, mask := range out.masks {
		for k, sea := range d.places[i].Sea {
			mask[k] = mask[k] && sea
		}
	}
	return out, nil
}

// inParallel calls do for 0..n-1 on all processors and waits: an accelerator
// draws a batch in the time that one of them takes to thin its anchors.
func inParallel(n int, do func(i int)) {
	var wait sync.WaitGroup
	var next atomic.Int64
	for range min(n, runtime.GOMAXPROCS(0)) {
		wait.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	wait.Wait()
}

func isOne(x []float32) []bool {
	out := make([]bool, len(x))
	for i, v := range x {
		out[i] = v == 1
	}
	return out
}
