package scenes

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"

	"lacuna/pipeline/parts"

	"lacuna/pipeline/engine"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/samples/pack"
)

// options are the command line.
type options struct {
	data, imputer, members, calibration string
	engine                              string
	settings                            engine.Config
	judge                               Config
	full                                int // scenes in the tier full; 0: none
	seams                               int // scenes that are searched for seams
	windows                             [2]int
	window                              int
	out, errs                           io.Writer
}

// line is the printed result of one method.
type line struct {
	Data       string     `json:"data"`
	Tier       infer.Tier `json:"tier"`
	FutureDays int        `json:"future_days"`
	Scores     Report     `json:"scores,omitzero"`
	Seams      Seams      `json:"seams,omitzero"`
}

// Run judges whole scenes of a file of 'lacuna pack' and prints lines of JSON,
// one for each method. 'lacuna scenes' does the same for granules and a
// model store.
func Run(ctx context.Context, args []string, out, errs io.Writer) error {
	f := flag.NewFlagSet("scenes", flag.ContinueOnError)
	f.SetOutput(errs)
	o := options{judge: DefaultConfig(), out: out, errs: errs}
	f.StringVar(&o.data, "data", "", "file of lacuna pack")
	f.StringVar(&o.imputer, "imputer", "", "ONNX file of the imputer")
	f.StringVar(&o.members, "members", "", "ONNX file of its members")
	f.StringVar(&o.calibration, "calibration", "", "calibration.json of the version")
	f.StringVar(&o.engine, "engine", engine.Auto, "what networks run on")
	o.settings.AddFlags(f)
	f.IntVar(&o.judge.Scenes, "scenes", o.judge.Scenes, "how many; 0: all")
	f.BoolVar(&o.judge.AllDays, "all-days", false, "the model has learned from none of the days")
	f.IntVar(&o.full, "full", 0, "how many scenes to fill in the tier full besides")
	f.IntVar(&o.seams, "seams", 0, "how many scenes to look for seams in")
	f.IntVar(&o.windows[0], "window-a", 128, "side of the windows whose seams are looked for")
	f.IntVar(&o.windows[1], "window-b", 160, "side of those that they are compared with")
	f.IntVar(&o.window, "window", 0, "side of the largest window in cells")
	if err := f.Parse(args); err != nil {
		return err
	}
	series, err := read(o.data)
	if err != nil {
		return err
	}
	e, err := engine.Open(o.engine, o.settings, slog.New(slog.NewTextHandler(errs, nil)))
	if err != nil {
		return err
	}
	defer e.Finalize()
	model, err := o.load(infer.Device{Backend: e, GPU: e.Kind != engine.ORT})
	if err != nil {
		return err
	}
	defer model.Close()
	return o.all(ctx, Subject{Series: series, Model: model})
}

func read(path string) (samples.Series, error) {
	f, err := os.Open(path)
	if err != nil {
		return samples.Series{}, err
	}
	defer func() { _ = f.Close() }() // read-only: a failed close loses nothing
	return pack.Read(f)
}

func (o options) load(d infer.Device) (*infer.Model, error) {
	v := infer.Version{Name: "lab"}
	var calibration []byte
	var errs []error
	for path, dst := range map[string]*[]byte{o.imputer: &v.Imputer, o.members: &v.Members, o.calibration: &calibration} {
		if path != "" {
			var err error
			*dst, err = os.ReadFile(path)
			errs = append(errs, err)
		}
	}
	c, err := parts.DecodeCalibration(calibration)
	if err != nil {
		errs = append(errs, fmt.Errorf("read %s: %w", o.calibration, err))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	v.Calibration = c.Calibration
	if c.Members != nil {
		v.MembersCalibration = *c.Members
	}
	return infer.Load(v, d)
}

// all judges past only and with later days, then the tier full and the seams.
func (o options) all(ctx context.Context, sub Subject) error {
	sub.Fill = infer.DefaultConfig()
	sub.Fill.Method, sub.Fill.PastDays = infer.MethodModel, samples.LastDays
	sub.Fill.Network = infer.Network{Tier: infer.Fast, WindowCells: o.window}
	for _, future := range []int{0, samples.NextDays} {
		sub.Fill.FutureDays = future
		if err := o.one(ctx, sub, o.judge); err != nil {
			return err
		}
	}
	if sub.Model.Members() && o.full > 0 {
		sub.Fill.FutureDays, sub.Fill.Network.Tier = 0, infer.Full
		few := o.judge
		few.Scenes = o.full
		if err := o.one(ctx, sub, few); err != nil {
			return err
		}
	}
	if o.seams == 0 {
		return nil
	}
	if sub.Fill.Network.Tier = infer.Fast; sub.Model.Members() {
		sub.Fill.Network.Tier = infer.Standard
	}
	few := o.judge
	few.Scenes = o.seams
	found, err := few.Seams(ctx, sub, o.windows, func(int, int) {})
	if err != nil {
		return err
	}
	return json.NewEncoder(o.out).Encode(line{Data: o.data, Tier: sub.Fill.Network.Tier, Seams: found})
}

func (o options) one(ctx context.Context, sub Subject, judge Config) error {
	scores, err := judge.Judge(ctx, sub, func(int, int) {})
	if err != nil {
		return err
	}
	if err := scores.Print(o.errs); err != nil {
		return err
	}
	return json.NewEncoder(o.out).Encode(line{Data: o.data, Tier: sub.Fill.Network.Tier, FutureDays: sub.Fill.FutureDays, Scores: scores})
}
