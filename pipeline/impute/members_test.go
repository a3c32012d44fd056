package impute_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/impute/imputetest"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/noise"
)

type toyB struct{ imputetest.Toy }

// The residual of Toy B about its conditional mean is Gaussian with the
// posterior's covariance, so its exact denoiser is a formula too.
func (b toyB) residualDenoiser() (impute.Denoiser, *mat.Dense) {
	_, left := b.Given(0, b.Truth, b.Visible)
	hidden := make([]int, 0, imputetest.ToyCells)
	for i, v := range b.Visible {
		if !v {
			hidden = append(hidden, i)
		}
	}
	n := len(hidden)
	p := mat.NewDense(n, n, nil)
	for i := range n {
		for j := range n {
			p.Set(i, j, left.At(hidden[i], hidden[j]))
		}
	}
	return func(_ context.Context, t float32, x [][]float32) ([][]float32, error) {
		alpha, sigma := impute.AlphaSigma(t)
		var noised, gain mat.Dense
		noised.Scale(float64(alpha*alpha), p)
		for i := range n {
			noised.Set(i, i, noised.At(i, i)+float64(sigma*sigma))
		}
		if err := gain.Solve(&noised, p); err != nil {
			return nil, err
		}
		out := make([][]float32, len(x))
		for m := range x {
			out[m] = make([]float32, n)
			for i := range n {
				for j := range n {
					out[m][i] += alpha * float32(gain.At(j, i)) * x[m][j]
				}
			}
		}
		return out, nil
	}, p
}

func TestTheFlowOfAnExactDenoiserGivesThePosterior(t *testing.T) {
	b := toyB{imputetest.NewToy(5)}
	clean, p := b.residualDenoiser()
	n, _ := p.Dims()
	spread := func(o impute.ODE) float64 {
		x, streams := make([][]float32, 1500), make([]noise.Stream, 1500)
		for m := range x {
			x[m], streams[m] = make([]float32, n), noise.New(uint64(m), "residual")
			streams[m].Normals(x[m], 0)
		}
		calls := 0
		counted := func(ctx context.Context, t float32, x [][]float32) ([][]float32, error) {
			calls++
			return clean(ctx, t, x)
		}
		if err := o.Run(context.Background(), counted, x, streams); err != nil {
			t.Fatal(err)
		}
		if calls != o.Calls() {
			t.Errorf("%+v: %d calls, want %d", o, calls, o.Calls())
		}
		var drawn, exact float64
		for i := range n {
			for m := range x {
				drawn += float64(x[m][i]) * float64(x[m][i]) / float64(len(x))
			}
			exact += p.At(i, i)
		}
		return math.Sqrt(drawn / exact)
	}
	for _, o := range []impute.ODE{{10, 1, true}, {20, 1, true}, {20, 3, true}, {20, 1, false}, {20, 3, false}, {100, 1, false}} {
		s := spread(o)
		t.Logf("%+v: spread %.3f of the posterior's", o, s)
		if o.Calls() >= 20 && (s < 0.8 || s > 1.25) {
			t.Errorf("%+v: spread is %.3f of the posterior's, want 0.8..1.25", o, s)
		}
	}
	if first, second := spread(impute.ODE{10, 1, false}), spread(impute.ODE{10, 1, true}); math.Abs(second-1) >= math.Abs(first-1) {
		t.Errorf("ten steps: the second order has a spread of %.3f, the first %.3f, want it nearer to 1", second, first)
	}
}

// busyMembers returns members without zero layers, and their model.
func busyMembers(t *testing.T, runner *impute.Runner) (*impute.Members, *impute.Model, impute.Target) {
	t.Helper()
	model := imputetest.BusyModel(t, runner, imputetest.TinyDesign())
	own := model.Design()
	own.Variance = false
	network, err := nn.New(impute.MembersNetwork(model.Design(), own))
	if err != nil {
		t.Fatal(err)
	}
	weights := network.Layout().Init(8)
	for i := range weights {
		weights[i] += 0.05 * float32(math.Sin(float64(i)))
	}
	members, err := impute.NewMembers(model, own, imputetest.Training{Side: 16}, weights)
	if err != nil {
		t.Fatal(err)
	}
	in := imputetest.SomeInputs(t, 16, 3)
	return members, model, impute.Target{Inputs: in, Prediction: imputetest.PredictOne(t, model, in), Stream: noise.New(1, "granule")}
}

func TestMembersKeepVisibleCellsAndDifferElsewhere(t *testing.T) {
	members, _, target := busyMembers(t, imputetest.NewRunner(t, 3))
	ode := impute.ODE{Steps: 3, Jumps: 1}
	drawn, err := members.Draw(context.Background(), []impute.Target{target}, 4, ode)
	if err != nil {
		t.Fatal(err)
	}
	for i, visible := range target.Visible {
		for _, m := range drawn[0] {
			if visible && math.Float32bits(m[i]) != math.Float32bits(target.Values[i]) {
				t.Fatalf("visible cell %d is %v in a member, was %v", i, m[i], target.Values[i])
			}
			if !finite(m[i]) {
				t.Fatalf("cell %d of a member is %v", i, m[i])
			}
		}
		if !visible && drawn[0][0][i] == drawn[0][1][i] {
			t.Fatalf("gap %d is the same in two members", i)
		}
	}

	second := target
	second.Stream = noise.New(1, "another granule")
	together, err := members.Draw(context.Background(), []impute.Target{second, target}, 2, ode)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(together[1][1], drawn[0][1]) {
		t.Error("a member depends on the members drawn beside it")
	}
	if slices.Equal(together[0][0], together[1][0]) {
		t.Error("another stream gives the same member")
	}
}

func TestNothingUnderTheMaskReachesMembers(t *testing.T) {
	members, _, target := busyMembers(t, imputetest.NewRunner(t, 2))
	ode := impute.ODE{Steps: 2, Jumps: 1}
	want, err := members.Draw(context.Background(), []impute.Target{target}, 2, ode)
	if err != nil {
		t.Fatal(err)
	}
	target.Values = slices.Clone(target.Values)
	for i, visible := range target.Visible {
		if !visible {
			target.Values[i] = float32(math.NaN())
		}
	}
	got, err := members.Draw(context.Background(), []impute.Target{target}, 2, ode)
	if err != nil {
		t.Fatal(err)
	}
	for m := range want[0] {
		if !slices.Equal(got[0][m], want[0][m]) {
			t.Errorf("member %d changes with hidden values", m)
		}
	}
}

func TestSavedMembersBelongToTheirModel(t *testing.T) {
	runner := imputetest.NewRunner(t, 2)
	members, model, target := busyMembers(t, runner)
	data, err := members.Save(16)
	if err != nil {
		t.Fatal(err)
	}
	again, err := impute.LoadMembers(data, model)
	if err != nil {
		t.Fatal(err)
	}
	ode := impute.ODE{Steps: 2, Jumps: 2}
	want, err := members.Draw(context.Background(), []impute.Target{target}, 2, ode)
	if err != nil {
		t.Fatal(err)
	}
	got, err := again.Draw(context.Background(), []impute.Target{target}, 2, ode)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got[0][1], want[0][1]) {
		t.Error("the loaded file draws other members")
	}
	other := imputetest.TinyDesign()
	other.Extras.Season = true
	if _, err := impute.LoadMembers(data, imputetest.BusyModel(t, runner, other)); err == nil {
		t.Error("members were accepted for the model of another")
	}
}

// TestOneDenoisingStepIsThatOfDraw follows the flow by hand.
func TestOneDenoisingStepIsThatOfDraw(t *testing.T) {
	members, _, target := busyMembers(t, imputetest.NewRunner(t, 2))
	ode := impute.ODE{Steps: 3, Jumps: 2}
	want, err := members.Draw(t.Context(), []impute.Target{target}, 2, ode)
	if err != nil {
		t.Fatal(err)
	}
	conditioning, err := members.Conditioning(target.Inputs, target.Prediction)
	if err != nil {
		t.Fatal(err)
	}
	defer conditioning.Close()
	x, streams := make([][]float32, 2), make([]noise.Stream, 2)
	for m := range x {
		x[m], streams[m] = make([]float32, target.Cells()), target.Stream.Sub(uint64(m))
		streams[m].Normals(x[m], 0)
	}
	err = ode.Run(t.Context(), func(ctx context.Context, at float32, x [][]float32) ([][]float32, error) {
		return members.Clean(ctx, conditioning, 3, at, x)
	}, x, streams)
	if err != nil {
		t.Fatal(err)
	}
	for m := range x {
		for i, visible := range target.Visible {
			got := target.Mean[i]
			if !visible && target.Sea[i] {
				got += target.Sigma[i] * x[m][i]
			}
			if math.Abs(float64(got-want[0][m][i])) > 1e-4 {
				t.Fatalf("cell %d of member %d is %g step by step, %g at once", i, m, got, want[0][m][i])
			}
		}
	}
	if _, err := members.Clean(t.Context(), conditioning, 1, 0.5, x); err == nil {
		t.Error("two residuals went into a batch of one")
	}
}

// TestTheFlowOnTheDeviceIsThatOfDenoisingSteps compares a flow that stays on the device with
// one whose every step comes back, for batches that the residuals fill and do not fill.
func TestTheFlowOnTheDeviceIsThatOfDenoisingSteps(t *testing.T) {
	const drawn = 3
	members, _, target := busyMembers(t, imputetest.NewRunner(t, 2))
	conditioning, err := members.Conditioning(target.Inputs, target.Prediction)
	if err != nil {
		t.Fatal(err)
	}
	defer conditioning.Close()
	normal := func() ([][]float32, []noise.Stream) {
		x, streams := make([][]float32, drawn), make([]noise.Stream, drawn)
		for m := range x {
			x[m], streams[m] = make([]float32, target.Cells()), target.Stream.Sub(uint64(m))
			streams[m].Normals(x[m], 0)
		}
		return x, streams
	}
	for _, ode := range []impute.ODE{{Steps: 4, Jumps: 1}, {Steps: 6, Jumps: 3, SecondOrder: true}} {
		want, streams := normal()
		err := ode.Run(t.Context(), func(ctx context.Context, at float32, x [][]float32) ([][]float32, error) {
			return members.Clean(ctx, conditioning, drawn, at, x)
		}, want, streams)
		if err != nil {
			t.Fatal(err)
		}
		for _, batch := range []int{1, 2} {
			got, streams := normal()
			steps := 0
			flow := impute.Flow{Members: members, Scene: conditioning, Batch: batch, Told: func() { steps++ }}
			if err := flow.Run(t.Context(), ode, got, streams); err != nil {
				t.Fatal(err)
			}
			if steps != ode.Calls() {
				t.Errorf("%+v told of %d steps, must be %d", ode, steps, ode.Calls())
			}
			for m := range got {
				for i := range got[m] {
					if math.Abs(float64(got[m][i]-want[m][i])) > 1e-4 {
						t.Fatalf("%+v in batches of %d: cell %d of member %d is %g, must be %g", ode, batch, i, m, got[m][i], want[m][i])
					}
				}
			}
		}
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	x, streams := normal()
	if err := (impute.Flow{Members: members, Scene: conditioning, Batch: 1}).Run(stopped, impute.DefaultODE(), x, streams); !errors.Is(err, context.Canceled) {
		t.Errorf("a flow that was stopped ended with %v", err)
	}
}
