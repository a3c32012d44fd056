package zarr

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"lacuna/publish"
)

// drawn writes an axis as its times, those with a product in brackets.
func drawn(axis []slot) string {
	var words []string
	for _, s := range axis {
		word := fmt.Sprint(s.At)
		if s.Live {
			word = "[" + word + "]"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func axisOf(text string) (axis []slot) {
	for word := range strings.FieldsSeq(text) {
		var s slot
		if _, err := fmt.Sscanf(strings.Trim(word, "[]"), "%d", &s.At); err != nil {
			panic(err)
		}
		s.Live = word[0] == '['
		if s.Live {
			s.Granule = "g" + strings.Trim(word, "[]")
		}
		axis = append(axis, s)
	}
	return axis
}

func TestEachTimeFindsItsSlot(t *testing.T) {
	const step = 10
	tests := []struct {
		name, axis, granule string
		times               []int64
		want                string
		slots               []int
		first               int // first slot that moves; -1: none
	}{
		{"the first product", "", "g50", []int64{50}, "[50]", []int{0}, -1},
		{"the next day", "[50]", "g60", []int64{60}, "[50] [60]", []int{1}, -1},
		{"a day after two others", "[50]", "g80", []int64{80}, "[50] 60 70 [80]", []int{3}, -1},
		{"the days between come later", "[50] 60 70 [80]", "g70", []int64{70}, "[50] 60 [70] [80]", []int{2}, -1},
		{"some minutes off", "[50] 60 70 [80]", "g", []int64{63}, "[50] [63] 70 [80]", []int{1}, -1},
		{"another revision", "[50] [60]", "g50", []int64{50}, "[50] [60]", []int{0}, -1},
		{"another revision with another time", "[50] [60]", "g60", []int64{62}, "[50] [62]", []int{1}, -1},
		{"an earlier day", "[50] [60]", "g20", []int64{20}, "[20] 30 40 [50] [60]", []int{0}, 0},
		{"no slot between", "[50] [60]", "g", []int64{55}, "[50] [55] [60]", []int{1}, 1},
		{"several times at once", "[50]", "g", []int64{60, 70}, "[50] [60] [70]", []int{1, 2}, -1},
		{"several times, the last first", "[50]", "g", []int64{70, 60}, "[50] [60] [70]", []int{2, 1}, -1},
		{"a retracted day", "[50] 60 [70]", "g", []int64{60}, "[50] [60] [70]", []int{1}, -1},
		{"a gap of centuries", "[50]", "g", []int64{10 * 20_000}, "[50] [200000]", []int{1}, -1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := axisOf(tt.axis)
			p, err := place(before, tt.granule, tt.times, step)
			if err != nil || drawn(p.axis) != tt.want || !slices.Equal(p.slots, tt.slots) {
				t.Errorf("place() = %s, slots %v, %v; want %s, %v", drawn(p.axis), p.slots, err, tt.want, tt.slots)
			}
			first, moves := p.moves()
			if moves != (tt.first >= 0) || moves && first != tt.first {
				t.Errorf("slots move: %v, from %d on; want from %d", moves, first, tt.first)
			}
			if drawn(before) != tt.axis {
				t.Errorf("the axis before was changed to %s", drawn(before))
			}
			for i, from := range p.from {
				if from >= 0 && before[from].Live && before[from].Granule != tt.granule && before[from] != p.axis[i] {
					t.Errorf("slot %d of another granule became %+v", from, p.axis[i])
				}
			}
		})
	}
}

func TestTwoGranulesDoNotShareATime(t *testing.T) {
	if _, err := place(axisOf("[50] [60]"), "other", []int64{60}, 10); !errors.Is(err, publish.ErrPermanent) || !strings.Contains(err.Error(), "g60") {
		t.Errorf("place() = %v, want a permanent error that names the granule", err)
	}
}
