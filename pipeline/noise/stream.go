package noise

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
)

// A Stream is an endless array of independent sequences of random numbers,
// one an index. The zero Stream is a valid one, but New is the way to it.
type Stream struct {
	key [2]uint32
}

// New returns the stream of a seed and a path of names, such as the dataset,
// the granule and the purpose. The path is not flattened: ("ab", "c") and
// ("a", "bc") are different streams.
func New(seed uint64, path ...string) Stream {
	s := Stream{key: [2]uint32{uint32(seed), uint32(seed >> 32)}}
	for _, name := range path {
		h := fnv.New64a()
		h.Write([]byte(name)) // writing to a hash never fails
		s = s.Sub(h.Sum64())
	}
	return s
}

// Sub returns the n-th stream below s, for numbered things such as members
// and steps.
func (s Stream) Sub(n uint64) Stream {
	w := philox([4]uint32{uint32(n), uint32(n >> 32), subTag, subTag}, s.key)
	return Stream{key: [2]uint32{w[0], w[1]}}
}

// subTag keeps the blocks that make keys apart from those of the sequences: it
// stands where they have their index, and no caller counts to
// 0x5375625F5375625F.
const subTag = 0x5375625F

// Uniforms fills dst with numbers of the open interval (0, 1), evenly
// distributed: element i is number i of the sequence of index.
func (s Stream) Uniforms(dst []float32, index uint64) {
	s.fill(dst, index, func(w [4]uint32) [4]float32 {
		return [4]float32{uniform(w[0]), uniform(w[1]), uniform(w[2]), uniform(w[3])}
	})
}

// Normals fills dst with standard normal numbers: element i is number i of the
// sequence of index.
func (s Stream) Normals(dst []float32, index uint64) {
	s.fill(dst, index, func(w [4]uint32) [4]float32 {
		a, b := boxMuller(w[0], w[1])
		c, d := boxMuller(w[2], w[3])
		return [4]float32{a, b, c, d}
	})
}

// Rand returns a generator that starts at number 0 of the sequence of index,
// for shuffles, choices and other draws of unknown length.
func (s Stream) Rand(index uint64) *rand.Rand {
	return rand.New(&sequence{stream: s, index: index})
}

// fill writes number after number of a sequence, four a block.
func (s Stream) fill(dst []float32, index uint64, shape func([4]uint32) [4]float32) {
	for i := 0; i < len(dst); i += 4 {
		v := shape(s.block(uint64(i/4), index))
		copy(dst[i:], v[:])
	}
}

func (s Stream) block(n, index uint64) [4]uint32 {
	return philox([4]uint32{uint32(n), uint32(n >> 32), uint32(index), uint32(index >> 32)}, s.key)
}

// uniform maps a word to the middle of one of 2^23 equal intervals of (0, 1):
// the result is exact in a float32 and neither 0 nor 1.
func uniform(w uint32) float32 {
	return (float32(w>>9) + 0.5) / (1 << 23)
}

// boxMuller maps two words to two independent standard normal numbers. The
// 32-bit radius reaches 6.7 standard deviations.
func boxMuller(radius, angle uint32) (float32, float32) {
	r := math.Sqrt(-2 * math.Log((float64(radius)+0.5)/(1<<32)))
	sin, cos := math.Sincos(2 * math.Pi * (float64(angle) + 0.5) / (1 << 32))
	return float32(r * cos), float32(r * sin)
}

// sequence is one sequence as a rand.Source.
type sequence struct {
	stream Stream
	index  uint64
	drawn  uint64 // 64-bit words so far
}

// Uint64 implements rand.Source.
func (q *sequence) Uint64() uint64 {
	w := q.stream.block(q.drawn/2, q.index)
	half := 2 * (q.drawn % 2)
	q.drawn++
	return uint64(w[half]) | uint64(w[half+1])<<32
}
