package samples

import (
	"errors"
	"fmt"
	"slices"

	"lacuna/pipeline/noise"
)

// An Overlay is a held-out patch with the gaps of another held-out day of the
// same place laid over it. A method sees Visible and is scored on Scored;
// together they are the observed cells.
type Overlay struct {
	Patch
	Visible, Scored []bool
	GapsOf          int // day that lends its gaps
}

// OverlayConfig holds the size, the number and the choice of overlays.
type OverlayConfig struct {
	Side      int    `json:"side" yaml:"side"`
	Stride    int    `json:"stride,omitempty" yaml:"stride"` // step between windows in cells; 0: Side
	Count     int    `json:"count" yaml:"count"`             // most overlays, chosen at random; 0: all
	MinPixels int    `json:"min_pixels" yaml:"min_pixels"`   // least number of visible and of scored pixels
	ApartDays int    `json:"apart_days" yaml:"apart_days"`   // least distance between a day and the day that lends its gaps
	Seed      uint64 `json:"seed" yaml:"seed"`
}

// DefaultOverlays returns the protocol of the tables: every held-out window of
// side cells.
func DefaultOverlays(side int) OverlayConfig {
	return OverlayConfig{Side: side, MinPixels: 20, ApartDays: 2, Seed: 1}
}

// ErrNoOverlays marks held-out days of which no overlay can be made.
var ErrNoOverlays = errors.New("no held-out window has enough pixels both visible and hidden under the gaps of another day")

// Overlays returns the overlays of h: for each window at most one, with the
// gaps of a day drawn at random among those that leave enough cells to see and to
// score. The same config gives the same overlays.
func (h HeldOut) Overlays(cfg OverlayConfig) ([]Overlay, error) {
	stream := noise.New(cfg.Seed, "overlays")
	var out []Overlay
	stride := cfg.Stride
	if stride == 0 {
		stride = cfg.Side
	}
	refs := h.Refs(cfg.Side, stride, 2*cfg.MinPixels)
	for i, r := range refs {
		if o, ok := h.overlay(cfg, r, stream, uint64(i)); ok {
			out = append(out, o)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%w: %d windows of %d cells over %d held-out days were tried", ErrNoOverlays, len(refs), cfg.Side, len(h.targets))
	}
	if cfg.Count > 0 && cfg.Count < len(out) {
		stream.Sub(1).Rand(0).Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
		out = out[:cfg.Count]
	}
	return out, nil
}

func (h HeldOut) overlay(cfg OverlayConfig, r Ref, stream noise.Stream, index uint64) (Overlay, bool) {
	p, place := h.Cut(r), h.placeOf[r.Day]
	targets := h.targetsOf(place)
	for _, k := range stream.Rand(index).Perm(len(targets)) {
		other := targets[k]
		if apart := h.numbers[other] - h.numbers[r.Day]; max(apart, -apart) < int64(cfg.ApartDays) {
			continue
		}
		visible, scored, seen, hidden := lay(p.Values, place.CutMap(h.days[other].Values, r.Window))
		if seen >= cfg.MinPixels && hidden >= cfg.MinPixels {
			return Overlay{Patch: p, Visible: visible, Scored: scored, GapsOf: other}, true
		}
	}
	return Overlay{}, false
}

// targetsOf returns the held-out days of a place.
func (h HeldOut) targetsOf(p *Place) []int {
	first, _ := slices.BinarySearch(h.targets, p.first)
	end, _ := slices.BinarySearch(h.targets, p.end)
	return h.targets[first:end]
}

// lay splits the observed cells of values by the observed cells of other.
func lay(values, other []float32) (visible, scored []bool, seen, hidden int) {
	visible, scored = make([]bool, len(values)), make([]bool, len(values))
	for i, v := range values {
		switch {
		case v != v: // NaN
		case other[i] == other[i]:
			visible[i] = true
			seen++
		default:
			scored[i] = true
			hidden++
		}
	}
	return visible, scored, seen, hidden
}
