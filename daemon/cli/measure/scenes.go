package measure

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"lacuna/internal/durable"
	"lacuna/pipeline/parts"

	"lacuna/daemon/cli"
	"lacuna/daemon/cli/input"
	"lacuna/daemon/retrain"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/lab/chart"
	"lacuna/pipeline/lab/scenes"

	"github.com/spf13/cobra"
)

// scenesFlags are the command line of lacuna scenes.
type scenesFlags struct {
	data   input.Data
	model  input.Model
	fill   infer.Config
	judge  scenes.Config
	seams  []int
	asJSON bool

	picture     string
	day, label  string
	calibration string
}

func scenesCommand() *cobra.Command {
	flags := scenesFlags{fill: infer.DefaultConfig(), judge: scenes.DefaultConfig()}
	c := &cobra.Command{
		Use:   "scenes --data FILE... --model NAME",
		Short: "score whole scenes by the distance to the nearest observation",
		Long: `Scenes lays the real gaps of held-out days over other held-out days, fills the
whole scenes and compares what was hidden: error and coverage of the 90 %
intervals by the distance to the nearest observation, beside optimal
interpolation on the same scenes. The column calibrated is the coverage after a
calibration by distance on the other half of the scenes, and factor what such a
calibration of all scenes multiplies sigma with.

--calibration FILE writes the calibration of all scenes: as calibration.json
beside FILE.onnx it is used from then on. The model must have none so far.

--model starter judges the model that comes with the program for the variable,
with the mean map of the days that are not judged, followed all the way.

The days are split by the calendar on the card of the model, without those that it
has learned from; a model without such a card is judged on the days that a first
'lacuna train' would judge on. With --all-days every day is judged, for a model
that has learned from none of them.
--seams A,B fills every scene whole and in windows of A and of B cells instead,
and says whether it shows. --picture FILE.png draws one day as it was, gaps and
all, instead: before, after, the uncertainty and two members.

Exit status: 0 done, 1 failed, 2 usage.`,
		Example: `  lacuna scenes --data archive --var CHL --model starter
  lacuna scenes --data archive --var CHL --model imputer.onnx
  lacuna scenes --data archive --var CHL --store models --future-days 10 --tier full
  lacuna scenes --data archive --var CHL --model imputer.onnx --seams 128,160 --scenes 4
  lacuna scenes --data archive --var CHL --store models --tier standard --picture day.png --day 2021-05-20`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := flags.settle(); err != nil {
				return cli.Usage(err)
			}
			return flags.run(c)
		},
	}
	f := c.Flags()
	flags.data.Add(f)
	flags.model.Add(f, &flags.fill)
	f.IntVar(&flags.fill.PastDays, "past-days", flags.fill.PastDays, "how many days back to look, of a coarser series steps")
	f.IntVar(&flags.fill.FutureDays, "future-days", 0, "how many days ahead to look; 0: as in near-real-time")
	f.IntVar(&flags.judge.Scenes, "scenes", flags.judge.Scenes, "how many to fill; 0: all")
	f.BoolVar(&flags.judge.AllDays, "all-days", false, "judge all days: the model has learned from none of them")
	f.IntSliceVar(&flags.seams, "seams", nil, "`A,B`: look for seams of windows of so many cells")
	f.StringVar(&flags.picture, "picture", "", "draw one day into `FILE.png` instead")
	f.StringVar(&flags.day, "day", "", "`YYYY-MM-DD` to draw (default: the judged day that shows most)")
	f.StringVar(&flags.label, "label", "", "of its colour bar (default: the variable)")
	f.StringVar(&flags.calibration, "calibration", "", "write the calibration by distance to `FILE`")
	f.BoolVar(&flags.asJSON, "json", false, "print JSON")
	return c
}

func (f *scenesFlags) settle() error {
	if f.fill.Method = f.model.Method(); f.model.IsStarter() {
		f.fill.Method = infer.MethodModel
	}
	if f.fill.Method == infer.MethodAuto {
		return errors.New("--model NAME or --store DIR is required: what is judged must be named")
	}
	if n := len(f.seams); n != 0 && n != 2 {
		return fmt.Errorf("--seams has %d numbers, must be A,B", n)
	}
	if f.judge.Scenes < 0 {
		return fmt.Errorf("--scenes is %d, must not be negative", f.judge.Scenes)
	}
	return errors.Join(f.data.Validate(), f.fill.Validate(), f.model.Validate(f.fill))
}

func (f *scenesFlags) run(c *cobra.Command) error {
	stderr := c.ErrOrStderr()
	set, err := f.data.Load(c.Context(), stderr)
	if err != nil {
		return err
	}
	filler, err := f.open(c.Context(), set, stderr)
	if err != nil {
		return err
	}
	defer filler.Close()
	if v := filler.Version; v != nil {
		if f.judge.Calendar, f.judge.Seen, err = retrain.Known(v.Card, set.Series, set.Variable); err != nil {
			return fmt.Errorf("days of version %s: %w", v.ID, err)
		}
	}
	bar := cli.NewProgress(stderr, "scenes", 0)
	defer bar.Finish()
	times := make([]time.Time, len(set.Series.Days))
	for i, d := range set.Series.Days {
		times[i] = d.Time
	}
	f.fill.Step = infer.StepOf(times)
	sub := scenes.Subject{Series: set.Series, Fill: f.fill, Model: filler.Model}
	if f.picture != "" {
		return f.draw(c.Context(), sub, set)
	}
	if f.calibration != "" && (sub.Model == nil || sub.Model.Calibrated()) {
		return errors.New("--calibration is for a model without one: its factors would come on top of those that are there")
	}
	report, err := f.judgeOrLook(c.Context(), sub, bar.Set)
	if err != nil {
		return err
	}
	bar.Finish()
	if f.asJSON {
		return json.NewEncoder(c.OutOrStdout()).Encode(report)
	}
	return report.Print(c.OutOrStdout())
}

// open opens what is judged.
func (f *scenesFlags) open(ctx context.Context, set input.Dataset, stderr io.Writer) (*input.Filler, error) {
	if !f.model.IsStarter() {
		return f.model.Open(f.fill.Method, stderr)
	}
	starter, err := set.Starter(ctx)
	if err != nil {
		return nil, fmt.Errorf("--model starter: %w", err)
	}
	return f.model.OpenVersion(starter, stderr)
}

// judgeOrLook scores scenes, or looks for seams.
func (f *scenesFlags) judgeOrLook(ctx context.Context, sub scenes.Subject, progress func(done, total int)) (interface{ Print(w io.Writer) error }, error) {
	if f.seams != nil {
		return f.judge.Seams(ctx, sub, [2]int{f.seams[0], f.seams[1]}, progress)
	}
	report, err := f.judge.Judge(ctx, sub, progress)
	if err != nil || f.calibration == "" {
		return report, err
	}
	data, err := json.Marshal(parts.Calibration{Calibration: report.Calibration})
	if err != nil {
		return nil, err
	}
	return report, durable.WriteFile(f.calibration, data, 0o644)
}

func (f *scenesFlags) draw(ctx context.Context, sub scenes.Subject, set input.Dataset) error {
	var day time.Time
	if f.day != "" {
		var err error
		if day, err = time.Parse(time.DateOnly, f.day); err != nil {
			return cli.Usage(fmt.Errorf("--day: %w", err))
		}
	}
	sheet, err := f.judge.Picture(ctx, sub, day, cmp.Or(f.label, set.Variable))
	if err != nil {
		return err
	}
	return chart.WritePNG(f.picture, sheet.Draw())
}
