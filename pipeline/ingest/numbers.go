package ingest

import (
	"math"
	"unsafe"
)

// A number is a NetCDF number in memory.
type number interface {
	int8 | uint8 | int16 | uint16 | int32 | uint32 | int64 | uint64 | float32 | float64
}

// viewed returns the numbers that lie in data, without copying. The bytes
// must come from an allocation of their own, whose alignment serves any T.
func viewed[T number](data []byte) []T {
	n := len(data) / int(unsafe.Sizeof(*new(T)))
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(data))), n)
}

// finite reports whether x is neither NaN nor infinite.
func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
