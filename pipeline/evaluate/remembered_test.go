package evaluate

import (
	"context"
	"errors"
	"slices"
	"testing"
)

// A method that is remembered is asked about each case once, and gives each its own
// answer whatever they are asked with; what it could not answer it is asked again.
func TestARememberedMethodIsAskedOnce(t *testing.T) {
	var asked []int
	fails := errors.New("not now")
	failing := true
	m := Remembered(Method{Name: "m", Fill: func(_ context.Context, cases []Case) (out []Answer, _ error) {
		if failing {
			return nil, fails
		}
		for _, c := range cases {
			asked = append(asked, c.Number)
			out = append(out, Answer{Calls: 10 + c.Number})
		}
		return out, nil
	}})
	ask := func(numbers ...int) (said []int, err error) {
		var cases []Case
		for _, n := range numbers {
			cases = append(cases, Case{Number: n})
		}
		answers, err := m.Fill(t.Context(), cases)
		for _, a := range answers {
			said = append(said, a.Calls)
		}
		return said, err
	}
	if _, err := ask(1, 2); !errors.Is(err, fails) {
		t.Fatalf("error %v", err)
	}
	failing = false
	for _, c := range [][2][]int{{{2, 1}, {12, 11}}, {{1, 3, 2}, {11, 13, 12}}, {{3}, {13}}} {
		if said, err := ask(c[0]...); err != nil || !slices.Equal(said, c[1]) {
			t.Errorf("cases %v: %v, %v, want %v", c[0], said, err, c[1])
		}
	}
	if !slices.Equal(asked, []int{2, 1, 3}) {
		t.Errorf("asked about %v", asked)
	}
}
