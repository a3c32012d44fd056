package ort

import (
	"testing"

	"github.com/gomlx/gomlx/backends"
	. "github.com/gomlx/gomlx/pkg/core/graph"
)

// turning is a backend that lowers as for OpenVINO, runs on the processor, and keeps what
// it lowered last.
type turning struct {
	*Backend
	last *builder
}

func (r *turning) Builder(name string) backends.Builder {
	r.last = newBuilder(r.Backend, name)
	return r.last
}

// sizes returns the sizes of what nodes of an operator compute.
func (r *turning) sizes(op string) (sizes []int) {
	for _, n := range r.last.program.nodes {
		if n.op == op {
			sizes = append(sizes, n.out[0].shape.Size())
		}
	}
	return sizes
}

// asForOpenVINO runs a function as for OpenVINO, and checks it by the other lowering.
func asForOpenVINO(t *testing.T, f func(in []*Node) *Node, inputs ...array) *turning {
	t.Helper()
	b, err := New(Config{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Finalize)
	b.dialect = dialect{turned: true}
	r := &turning{Backend: b}
	exec, err := NewExec(r, func(in []*Node) *Node { return f(in) })
	if err != nil {
		t.Fatal(err)
	}
	defer exec.Finalize()
	args := make([]any, len(inputs))
	for i, a := range inputs {
		args[i] = a.tensor()
	}
	out, err := exec.Exec(args...)
	if err != nil {
		t.Fatal(err)
	}
	dims := out[0].Shape().Dimensions
	got := array{dims: dims, data: readFloats(t, out[0])}
	want := run(t, openBackend(t), func(in []*Node) []*Node { return []*Node{f(in)} }, inputs...)[0]
	wantClose(t, "as for OpenVINO", got, want, 1e-4)
	return r
}

func TestAttentionIsWrittenAsASoftmax(t *testing.T) {
	openBackend(t)
	const batch, heads, depth, places = 2, 3, 4, 30
	q, k, v := randomArray(1, batch, heads, depth, places), randomArray(2, batch, heads, depth, places), randomArray(3, batch, heads, depth, places)
	both := []int{0, 1}
	shares := func(in []*Node) *Node { return Exp(DotGeneral(in[0], []int{2}, both, in[1], []int{2}, both)) }
	attends := func(in []*Node) *Node {
		raised := shares(in)
		mean := DotGeneral(in[2], []int{3}, both, raised, []int{3}, both)
		return Div(mean, Reshape(ReduceSum(raised, 3), batch, heads, 1, places))
	}
	if r := asForOpenVINO(t, attends, q, k, v); len(r.sizes("Softmax")) != 1 {
		t.Error("attention is not a softmax")
	}
	// As many queries as keys: only the axes tell these from attention.
	for what, f := range map[string]func(in []*Node) *Node{
		"over the queries": func(in []*Node) *Node {
			raised := shares(in)
			mean := DotGeneral(in[2], []int{3}, both, raised, []int{3}, both)
			return Div(mean, Reshape(ReduceSum(raised, 2), batch, heads, 1, places))
		},
		"of the queries' values": func(in []*Node) *Node {
			raised := shares(in)
			mean := DotGeneral(in[2], []int{3}, both, raised, []int{2}, both)
			return Div(mean, Reshape(ReduceSum(raised, 3), batch, heads, 1, places))
		},
		"with sums of other scores": func(in []*Node) *Node {
			mean := DotGeneral(in[2], []int{3}, both, Exp(shares(in)), []int{3}, both)
			return Div(mean, Reshape(ReduceSum(shares(in), 3), batch, heads, 1, places))
		},
	} {
		t.Run(what, func(t *testing.T) {
			if r := asForOpenVINO(t, f, q, k, v); len(r.sizes("Softmax")) != 0 {
				t.Error("it is a softmax")
			}
		})
	}
}

func TestTheSmallerSideOfAProductIsTurned(t *testing.T) {
	openBackend(t)
	few, many := randomArray(4, 2, 3, 50), randomArray(5, 2, 40, 50)
	for what, f := range map[string]func(in []*Node) *Node{
		"few by many": func(in []*Node) *Node { return DotGeneral(in[0], []int{2}, []int{0}, in[1], []int{2}, []int{0}) },
		"many by few": func(in []*Node) *Node { return DotGeneral(in[1], []int{2}, []int{0}, in[0], []int{2}, []int{0}) },
	} {
		t.Run(what, func(t *testing.T) {
			for _, n := range asForOpenVINO(t, f, few, many).sizes("Transpose") {
				if n >= len(many.data) {
					t.Errorf("%d numbers change their place", n)
				}
			}
		})
	}
}

func TestTilesAreAddedByAPool(t *testing.T) {
	openBackend(t)
	sum := func(in []*Node) *Node { return ReduceSum(Reshape(in[0], 1, 2, 3, 2, 4, 2), 3, 5) }
	if r := asForOpenVINO(t, sum, randomArray(6, 1, 2, 6, 8)); len(r.sizes("AveragePool")) != 1 {
		t.Error("the sum is not a pool")
	}
}
