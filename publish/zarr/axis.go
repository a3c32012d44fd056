package zarr

import (
	"fmt"
	"slices"

	"lacuna/publish"
)

// slot is a place on the time axis of a store.
type slot struct {
	At      int64  // seconds since 1970
	Granule string // granule of the product in it, or of one that is being taken away
	Live    bool   // false: it is empty, or about to be
}

// vacanciesMax is the most empty slots that are left between two times: a gap
// of more years is an error of a time, or not worth it.
const vacanciesMax = 10_000

// placed is the axis with the times of a product on it.
type placed struct {
	axis  []slot
	from  []int // index of each slot in the axis before; -1: it is new
	slots []int // places of the times, in their order
}

// moves reports whether slots that were there have another index now, and the
// first of them.
func (p placed) moves() (first int, ok bool) {
	for i, from := range p.from {
		if from >= 0 && from != i {
			return from, true
		}
	}
	return 0, false
}

// place finds a slot for each time of the product of a granule on an axis in
// order of time: the slot that it has, an empty one less than half a step away,
// or a new one. Beyond both ends, steps without a product get empty slots, so
// that later products find theirs. It leaves axis as it is.
func place(axis []slot, granule string, times []int64, step int64) (placed, error) {
	p := placed{axis: slices.Clone(axis)}
	for i := range axis {
		p.from = append(p.from, i)
		if axis[i].Granule == granule {
			p.axis[i].Live = false
		}
	}
	for _, t := range times {
		if err := p.add(slot{At: t, Granule: granule, Live: true}, step); err != nil {
			return placed{}, err
		}
	}
	for _, t := range times {
		p.slots = append(p.slots, slices.IndexFunc(p.axis, func(s slot) bool { return s.At == t }))
	}
	return p, nil
}

func (p *placed) add(s slot, step int64) error {
	p.reach(s.At, step)
	at, there := slices.BinarySearchFunc(p.axis, s.At, func(a slot, t int64) int { return int(min(max(a.At-t, -1), 1)) })
	if there && p.axis[at].Live {
		return fmt.Errorf("%w: its time is that of granule %s, and a store has one product a time; retract that one, or give one of the two a dataset of its own",
			publish.ErrPermanent, p.axis[at].Granule)
	}
	for _, i := range []int{at, at - 1} {
		if i >= 0 && i < len(p.axis) && !p.axis[i].Live && 2*distance(p.axis[i].At, s.At) < step {
			p.axis[i] = s // the neighbours are on the other side of it, and so in order
			return nil
		}
	}
	p.axis, p.from = slices.Insert(p.axis, at, s), slices.Insert(p.from, at, -1)
	return nil
}

// reach adds empty slots, a step apart, until one end of the axis is less than
// one and a half steps from t.
func (p *placed) reach(t, step int64) {
	n := len(p.axis)
	switch {
	case n == 0:
	case t > p.axis[n-1].At && (t-p.axis[n-1].At)/step <= vacanciesMax:
		for last := p.axis[n-1].At + step; 2*(t-last) >= step; last += step {
			p.axis, p.from = append(p.axis, slot{At: last}), append(p.from, -1)
		}
	case t < p.axis[0].At && (p.axis[0].At-t)/step <= vacanciesMax:
		var before []slot
		for first := p.axis[0].At - step; 2*(first-t) >= step; first -= step {
			before = append(before, slot{At: first})
		}
		slices.Reverse(before)
		p.axis, p.from = append(before, p.axis...), append(slices.Repeat([]int{-1}, len(before)), p.from...)
	}
}

func distance(a, b int64) int64 { return max(a-b, b-a) }
