package fetch

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// ErrDiskFloor says that a download would leave less free space than the
// floor. It wraps ErrSpool: the next object would meet it too.
var ErrDiskFloor = fmt.Errorf("%w: disk is at its floor", ErrSpool)

// Floor is free space that intake leaves alone, in bytes or as a share of the
// disk. It is written as 10GiB, 500MiB or 5%; 0 is no floor.
type Floor struct {
	Bytes int64
	Share float64 // 0..1
}

// of returns the floor in bytes on a disk of this size.
func (f Floor) of(totalBytes uint64) uint64 {
	return max(uint64(f.Bytes), uint64(f.Share*float64(totalBytes)))
}

func (f Floor) fault() error {
	if f.Bytes < 0 || f.Share < 0 || f.Share >= 1 || math.IsNaN(f.Share) {
		return fmt.Errorf("disk_floor is %v, must be a size like 10GiB or a share like 5%%", f)
	}
	return nil
}

// floorUnits are the endings of a size, the longer first where one ends
// another.
var floorUnits = []struct {
	ending string
	bytes  float64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"", 1}}

// UnmarshalText reads a size or a share.
func (f *Floor) UnmarshalText(text []byte) error {
	wrong := fmt.Errorf("disk_floor is %q, must be a size like 10GiB or a share like 5%%", text)
	s := strings.TrimSpace(string(text))
	if percent, ok := strings.CutSuffix(s, "%"); ok {
		share, err := strconv.ParseFloat(strings.TrimSpace(percent), 64)
		if err != nil || !(share >= 0 && share < 100) { // false for NaN too
			return wrong
		}
		*f = Floor{Share: share / 100}
		return nil
	}
	for _, unit := range floorUnits {
		if number, ok := strings.CutSuffix(s, unit.ending); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
			if err != nil || n < 0 || n*unit.bytes > math.MaxInt64/2 {
				return wrong
			}
			*f = Floor{Bytes: int64(n * unit.bytes)}
			return nil
		}
	}
	return wrong
}

// String writes the form that UnmarshalText reads.
func (f Floor) String() string {
	if f.Share != 0 {
		return strconv.FormatFloat(f.Share*100, 'g', -1, 64) + "%"
	}
	for _, unit := range []struct {
		ending string
		bytes  int64
	}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if f.Bytes >= unit.bytes && f.Bytes%unit.bytes == 0 {
			return strconv.FormatInt(f.Bytes/unit.bytes, 10) + unit.ending
		}
	}
	return strconv.FormatInt(f.Bytes, 10)
}

// MarshalText writes the form that UnmarshalText reads.
func (f Floor) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// diskSpace returns the free bytes for an unprivileged process on the disk of
// dir, and the size of the disk.
func diskSpace(dir string) (freeBytes, totalBytes uint64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, 0, err
	}
	return s.Bavail * uint64(s.Bsize), s.Blocks * uint64(s.Bsize), nil
}

// room hands out the space of a disk to downloads that run at the same time.
type room struct {
	space func(dir string) (freeBytes, totalBytes uint64, err error)

	mu       sync.Mutex
	promised uint64 // bytes that downloads under way may still write
}

// take sets n bytes on the disk of dir aside, or says that the floor would be
// broken.
func (r *room) take(dir string, n int64, floor Floor) (*reservation, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	free, total, err := r.space(dir)
	if err != nil {
		return nil, fmt.Errorf("ask for free space of %w: %w", ErrSpool, err)
	}
	need := uint64(max(n, 0))
	if floor != (Floor{}) && free < floor.of(total)+r.promised+need {
		return nil, fmt.Errorf("%w: %d bytes are free in %s, %d are to come and %v is to stay free; make room or lower disk_floor",
			ErrDiskFloor, free, dir, r.promised+need, floor)
	}
	r.promised += need
	return &reservation{room: r, left: need}, nil
}

// reservation is space that one download may write.
type reservation struct {
	room *room
	left uint64 // guarded by room.mu
}

// used takes n written bytes off the reservation: the free space of the disk is
// already less by them.
func (v *reservation) used(n int) {
	v.room.mu.Lock()
	defer v.room.mu.Unlock()
	gone := min(uint64(n), v.left)
	v.left -= gone
	v.room.promised -= gone
}

// release gives the unused bytes back.
func (v *reservation) release() {
	v.room.mu.Lock()
	defer v.room.mu.Unlock()
	v.room.promised -= v.left
	v.left = 0
}

// diskFull reports whether err says that the disk has no room, which an
// operator cures differently from a broken one.
func diskFull(err error) bool {
	return errors.Is(err, ErrDiskFloor) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
