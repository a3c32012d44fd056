package noise

import (
	"math"
	"slices"
	"testing"
)

// The vectors are the known answers of the Random123 library by the authors of
// Philox (kat_vectors, philox4x32 10).
func TestPhiloxGivesTheKnownAnswersOfItsAuthors(t *testing.T) {
	const ones = 0xffffffff
	tests := []struct {
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{
			want: [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
		},
		{
			counter: [4]uint32{ones, ones, ones, ones}, key: [2]uint32{ones, ones},
			want: [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
		},
		{ // digits of pi
			counter: [4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
			key:     [2]uint32{0xa4093822, 0x299f31d0},
			want:    [4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1},
		},
	}
	for _, tt := range tests {
		if got := philox(tt.counter, tt.key); got != tt.want {
			t.Errorf("philox(%x, %x) = %x, want %x", tt.counter, tt.key, got, tt.want)
		}
	}
}

func TestNumbersDependOnTheirAddressOnly(t *testing.T) {
	s := New(7, "chl", "granule")
	long, short := make([]float32, 101), make([]float32, 10)
	s.Normals(long, 5)
	s.Normals(make([]float32, 33), 4) // another index in between
	s.Normals(short, 5)
	if !slices.Equal(short, long[:10]) {
		t.Errorf("ten numbers of an item are %v, the first ten of a hundred are %v", short, long[:10])
	}
}

func TestAddressesThatDifferGiveDifferentNumbers(t *testing.T) {
	first := func(s Stream, index uint64) float32 {
		var v [1]float32
		s.Uniforms(v[:], index)
		return v[0]
	}
	seen := map[float32]string{}
	add := func(name string, v float32) {
		if other, ok := seen[v]; ok {
			t.Errorf("%s and %s both begin with %v", name, other, v)
		}
		seen[v] = name
	}
	add("seed 1", first(New(1), 0))
	add("seed 1<<32", first(New(1<<32), 0))
	add("index 1", first(New(1), 1))
	add("index 1<<32", first(New(1), 1<<32))
	add("ab c", first(New(1, "ab", "c"), 0))
	add("a bc", first(New(1, "a", "bc"), 0))
	add("abc", first(New(1, "abc"), 0))
	add("sub 0", first(New(1).Sub(0), 0))
	add("sub 1", first(New(1).Sub(1), 0))
	add("sub 0 0", first(New(1).Sub(0).Sub(0), 0))
}

// The bounds are five standard errors of the moment they check.
func TestNormalsHaveTheMomentsOfANormal(t *testing.T) {
	const n = 200_000
	x := make([]float32, n)
	New(11, "moments").Normals(x, 0)
	var m1, m2, m3, m4, lag float64
	for i, v := range x {
		f := float64(v)
		m1 += f / n
		m2 += f * f / n
		m3 += f * f * f / n
		m4 += f * f * f * f / n
		if i > 0 {
			lag += f * float64(x[i-1]) / n
		}
	}
	for _, m := range []struct {
		name                string
		got, want, variance float64
	}{
		{"mean", m1, 0, 1},
		{"variance", m2, 1, 2},
		{"third moment", m3, 0, 15},
		{"fourth moment", m4, 3, 96},
		{"correlation of neighbours", lag, 0, 1},
	} {
		if math.Abs(m.got-m.want) > 5*math.Sqrt(m.variance/n) {
			t.Errorf("%s of %d normals is %.4f, want %v", m.name, n, m.got, m.want)
		}
	}
}

func TestUniformsStayInsideTheOpenInterval(t *testing.T) {
	if lo, hi := uniform(0), uniform(math.MaxUint32); lo <= 0 || hi >= 1 {
		t.Errorf("the extremes are %v and %v, want them inside (0, 1)", lo, hi)
	}
	x := make([]float32, 100_000)
	New(3).Uniforms(x, 9)
	var tenths [10]int
	for _, v := range x {
		tenths[int(v*10)]++
	}
	for i, n := range tenths {
		if math.Abs(float64(n)-10_000) > 5*math.Sqrt(9_000) {
			t.Errorf("tenth %d holds %d of 100000 numbers", i, n)
		}
	}
}

func TestNormalsAreFiniteAtTheExtremes(t *testing.T) {
	for _, w := range []uint32{0, 1, math.MaxUint32} {
		a, b := boxMuller(w, w)
		if r := math.Hypot(float64(a), float64(b)); math.IsNaN(r) || r > 6.8 {
			t.Errorf("boxMuller(%d, %d) = %v, %v", w, w, a, b)
		}
	}
}

func TestShuffleIsTheSameEveryTime(t *testing.T) {
	a, b := New(1).Rand(4).Perm(50), New(1).Rand(4).Perm(50)
	if !slices.Equal(a, b) {
		t.Errorf("two shuffles of one address differ: %v and %v", a, b)
	}
	if slices.Equal(a, New(1).Rand(5).Perm(50)) {
		t.Error("two addresses shuffle alike")
	}
}

func BenchmarkNormals(b *testing.B) {
	x := make([]float32, 64*64)
	b.SetBytes(int64(4 * len(x)))
	s, i := New(1), uint64(0)
	for b.Loop() {
		s.Normals(x, i)
		i++
	}
}
