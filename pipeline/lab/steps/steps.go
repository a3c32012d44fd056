// Package steps times the training step and the forward pass of a network on an
// engine and prints one line of JSON. It needs nothing but the engine's library:
//
//	lacuna lab steps -engine xla:cuda -size base -batch 64 -side 64 -dtype bfloat16
package steps

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"

	"lacuna/pipeline/engine"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/train"
)

// options are the settings of one measurement.
type options struct {
	engine   string
	cfg      engine.Config
	network  nn.Config
	batch    int
	side     int // pixels
	dtype    string
	split    bool
	devices  int
	steps    int
	forward  bool
	training bool
}

// report is the printed result. Times are medians over the steps after the first.
type report struct {
	Engine         string  `json:"engine"`
	Description    string  `json:"description"`
	Backbone       string  `json:"backbone"`
	Size           string  `json:"size"`
	Params         int     `json:"params"`
	Batch          int     `json:"batch"`
	Side           int     `json:"side"`
	DType          string  `json:"dtype"`
	Split          bool    `json:"split"`
	Devices        int     `json:"devices"`
	OpenSeconds    float64 `json:"open_seconds"`
	CompileSeconds float64 `json:"compile_seconds"`
	FirstStepMS    float64 `json:"first_step_ms"`
	MSPerStep      float64 `json:"ms_per_step"`
	FastestMS      float64 `json:"fastest_ms"`
	ForwardMS      float64 `json:"forward_ms,omitempty"`
	Steps          int     `json:"steps"`
	FirstLoss      float64 `json:"first_loss"`
	LastLoss       float64 `json:"last_loss"`
	PeakHostMB     float64 `json:"peak_host_mb"`
}

// Run times a network. A measurement takes seconds and is not interrupted.
func Run(_ context.Context, args []string, out, errs io.Writer) error {
	var o options
	f := flag.NewFlagSet("steps", flag.ContinueOnError)
	f.SetOutput(errs)
	f.StringVar(&o.engine, "engine", engine.Auto, "auto, ort, ort:cuda or xla:cuda")
	o.cfg.AddFlags(f)
	f.StringVar(&o.network.Backbone, "backbone", nn.BackboneUNet, "unet or vit")
	f.StringVar(&o.network.Size, "size", nn.Base, "tiny, small, base or large")
	f.IntVar(&o.network.In, "in", 5, "input channels")
	f.IntVar(&o.network.Out, "out", 1, "output channels")
	f.IntVar(&o.batch, "batch", 64, "images a step")
	f.IntVar(&o.side, "side", 64, "height and width of an image in pixels")
	f.StringVar(&o.dtype, "dtype", "float32", "float32 or bfloat16")
	f.BoolVar(&o.split, "split", false, "keep the state of each weight in a tensor of its own")
	f.IntVar(&o.devices, "devices", 0, "GPUs that share a batch; 0: one, without the machinery of several")
	f.IntVar(&o.steps, "steps", 30, "timed steps")
	f.BoolVar(&o.forward, "forward", true, "time the forward pass too")
	f.BoolVar(&o.training, "training", true, "time training steps")
	if err := f.Parse(args); err != nil {
		return err
	}
	if o.dtype != "float32" && o.dtype != "bfloat16" {
		return fmt.Errorf("dtype is %q, must be float32 or bfloat16", o.dtype)
	}
	if o.batch < 1 || o.side < 1 || o.steps < 1 {
		return errors.New("batch, side and steps must be positive")
	}
	r, err := measure(o, slog.New(slog.NewTextHandler(errs, nil)))
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(r)
}

// measure opens the engine and times the network on it.
func measure(o options, log *slog.Logger) (report, error) {
	network, err := nn.New(o.network)
	if err != nil {
		return report{}, err
	}
	r := report{
		Backbone: o.network.Backbone, Size: o.network.Size, Params: network.Layout().Size,
		Batch: o.batch, Side: o.side, DType: o.dtype, Split: o.split, Devices: o.devices, Steps: o.steps,
	}
	start := time.Now()
	e, err := engine.Open(o.engine, o.cfg, log)
	if err != nil {
		return report{}, err
	}
	defer e.Finalize()
	r.Engine, r.Description, r.OpenSeconds = e.Kind, e.Description(), time.Since(start).Seconds()
	if o.training {
		if err := timeSteps(&r, o, e, network); err != nil {
			return report{}, err
		}
	}
	if o.forward {
		if err := timeForward(&r, o, e, network); err != nil {
			return report{}, err
		}
	}
	r.PeakHostMB = peakHostMB()
	return r, nil
}

func timeSteps(r *report, o options, e *engine.Engine, network nn.Network) error {
	cfg := train.DefaultConfig()
	cfg.BFloat16, cfg.Split, cfg.Devices = o.dtype == "bfloat16", o.split, o.devices
	loss := func(w nn.Weights, batch []*Node) *Node {
		return ReduceAllMean(Square(Sub(network.Apply(w, batch[0], batch[1]), batch[2])))
	}
	step, err := train.NewStep(e, network.Layout(), cfg, loss)
	if err != nil {
		return err
	}
	defer step.Close()
	if err := step.Start(network.Layout().Init(1)); err != nil {
		return err
	}
	batch := newBatch(o)
	start := time.Now()
	if err := step.Compile(batch...); err != nil {
		return err
	}
	r.CompileSeconds = time.Since(start).Seconds()
	var times []float64
	for i := range o.steps + 1 {
		start := time.Now()
		m, err := step.Run(batch...) // waits for the loss, hence for the step
		if err != nil {
			return err
		}
		ms := milliseconds(time.Since(start))
		if i == 0 {
			r.FirstStepMS, r.FirstLoss = ms, m.Loss
			continue
		}
		times = append(times, ms)
		r.LastLoss = m.Loss
	}
	r.MSPerStep, r.FastestMS = median(times), slices.Min(times)
	return nil
}

func timeForward(r *report, o options, e *engine.Engine, network nn.Network) error {
	dtype := dtypes.Float32
	if o.dtype == "bfloat16" {
		dtype = dtypes.BFloat16
	}
	batch := newBatch(o)
	p, err := engine.Compile(engine.For(e, o.side*o.side), "forward", func(g *Graph) []*Node {
		w := nn.WithDType(nn.Constants(g, network.Layout().Init(1)), dtype)
		x := Parameter(g, "x", batch[0].Shape())
		t := Parameter(g, "t", batch[1].Shape())
		return []*Node{network.Apply(w, x, t)}
	})
	if err != nil {
		return err
	}
	defer p.Close()
	var times []float64
	for i := range o.steps + 1 {
		start := time.Now()
		out, err := p.Run(batch[0], batch[1])
		if err != nil {
			return err
		}
		// Reading waits for the result.
		if _, err := tensors.CopyFlatData[float32](out[0]); err != nil {
			return err
		}
		out[0].FinalizeAll()
		if i > 0 {
			times = append(times, milliseconds(time.Since(start)))
		}
	}
	r.ForwardMS = median(times)
	return nil
}

// newBatch returns inputs, times and targets of noise.
func newBatch(o options) []*tensors.Tensor {
	draw := func(name string, dims ...int) *tensors.Tensor {
		n := 1
		for _, d := range dims {
			n *= d
		}
		x := make([]float32, n)
		noise.New(1, "bench", name).Uniforms(x, 0)
		return tensors.FromFlatDataAndDimensions(x, dims...)
	}
	return []*tensors.Tensor{
		draw("x", o.batch, o.network.In, o.side, o.side),
		draw("t", o.batch),
		draw("y", o.batch, o.network.Out, o.side, o.side),
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}

// peakHostMB returns the peak memory of this process, 0 if the system does not
// report it.
func peakHostMB() float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(status) {
		fields := bytes.Fields(line)
		if len(fields) > 1 && string(fields[0]) == "VmHWM:" {
			kB, _ := strconv.ParseFloat(string(fields[1]), 64)
			return kB / 1024
		}
	}
	return 0
}
