package year

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"image"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"lacuna/pipeline/engine"
	"lacuna/pipeline/lab/chart"

	"lacuna/internal/durable"
	"lacuna/internal/figure"
)

// Command runs a year from the command line without its name, prints what came of
// it and writes year.json and year.png.
func Command(ctx context.Context, args []string, out, errs io.Writer) error {
	c := DefaultConfig()
	flags := flag.NewFlagSet("year", flag.ContinueOnError)
	flags.SetOutput(errs)
	folder := flags.String("o", "", "`DIR` for year.json, year.png and the store of models (required); a year that was cut off there goes on")
	kind := flags.String("engine", engine.ORT, "`NAME` of the engine, of 'lacuna engines'")
	threads := flags.Int("threads", 0, "threads of the engine; 0: all")
	flags.IntVar(&c.Weeks, "weeks", c.Weeks, "`N` weeks")
	change := flags.Int("change", c.changeWeek(), "`WEEK` in which the sensor changes")
	flags.Uint64Var(&c.Sea.Seed, "seed", c.Sea.Seed, "`SEED` of the sea")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *folder == "" {
		return errors.New("year: -o DIR is required")
	}
	if err := os.MkdirAll(*folder, 0o755); err != nil {
		return fmt.Errorf("year: %w", err)
	}
	c.Sea.Change.Day = c.FirstDays + c.WeekDays**change
	e, err := engine.Open(*kind, engine.Config{Threads: *threads, KeepSessions: true}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer e.Finalize()
	began := time.Now()
	r, err := Run(ctx, c, *folder, e, func(t Tuned) {
		fmt.Fprintf(errs, "%6s  %s\n", figure.Duration(time.Since(began)), t)
	})
	if err != nil {
		return err
	}
	data, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	if err := durable.WriteFile(filepath.Join(*folder, "year.json"), append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("year: %w", err)
	}
	if err := chart.WritePNG(filepath.Join(*folder, "year.png"), r.Picture()); err != nil {
		return err
	}
	_, err = io.WriteString(out, r.Text())
	return err
}

// String says what became of a fine-tune.
func (t Tuned) String() string {
	what := "refused"
	switch {
	case t.ByHand:
		what = "promoted by hand"
	case t.Promoted:
		what = "promoted"
	}
	return fmt.Sprintf("week %2d: %s, %s; of the new sensor it learned from %d days and was judged on %d", t.Week, t.Version, what, t.Learned, t.Judged)
}

// String says what was lost and recovered.
func (r Recovery) String() string {
	return fmt.Sprintf("from week %d on the error is %.3f by the champion of before the change, %.3f by the new one, and would be %.3f without the bias: %.0f %% of the lost skill recovered",
		r.Week, r.Frozen, r.Renewed, r.Control, 100*r.Share())
}

// Text tells the result in some lines.
func (r Result) Text() string {
	var b strings.Builder
	promoted := 0
	for _, t := range r.Tuned {
		if t.Promoted {
			promoted++
		}
	}
	fmt.Fprintf(&b, "%d weeks, %d versions promoted; the sensor changed in week %d\n", len(r.Tuned), promoted, r.ChangeWeek)
	fmt.Fprintf(&b, "error in the weeks before the change %.3f\n", r.Before)
	fmt.Fprintf(&b, "after two fine-tunes that knew the new sensor: %s\nafter the year: %s\n", r.Early, r.Late)
	for _, p := range r.Promotions {
		word := "not worse"
		if p.Harmful() {
			word = "HARMFUL"
		}
		fmt.Fprintf(&b, "promotion of week %2d: error %+.1f %%, %+.3f to %+.3f, on %d days that nobody had learned from: %s\n",
			p.Week, 100*p.Error.Relative, p.Error.Interval.Low, p.Error.Interval.High, p.Error.Samples, word)
	}
	fmt.Fprintf(&b, "%d of %d promotions harmful\n", r.Harmful(), len(r.Promotions))
	return b.String()
}

// Harmful returns the number of promotions that made errors larger beyond chance.
func (r Result) Harmful() (n int) {
	for _, p := range r.Promotions {
		if p.Harmful() {
			n++
		}
	}
	return n
}

// Picture draws the errors of the weeks.
func (r Result) Picture() image.Image {
	served := chart.Curve{Name: "the champion of the week"}
	frozen := chart.Curve{Name: "the champion of before the change, had it stayed"}
	marks := chart.Curve{Name: "the first week of a new champion"}
	before := ""
	for _, w := range r.Weeks {
		served.X, served.Y = append(served.X, float64(w.Week)), append(served.Y, w.Error)
		if w.Week >= r.ChangeWeek {
			frozen.X, frozen.Y = append(frozen.X, float64(w.Week)), append(frozen.Y, w.Frozen)
		}
		if before != "" && w.Champion != before {
			marks.X, marks.Y = append(marks.X, float64(w.Week)), append(marks.Y, w.Error)
		}
		before = w.Champion
	}
	return chart.Course(chart.Diagram{
		Title:  fmt.Sprintf("Weekly fine-tunes; another sensor from week %d", r.ChangeWeek),
		XLabel: "week", YLabel: "MSE on unseen days, of the variance", Curves: []chart.Curve{served, frozen, marks},
	})
}
