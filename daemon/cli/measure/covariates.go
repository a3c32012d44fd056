package measure

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"lacuna/daemon/cli"
	"lacuna/daemon/covariates"
	"lacuna/pipeline/classical"
	"lacuna/pipeline/covariate"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/lab/tables"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/skill"
)

// addCovariates finds out what covariates bring, says it, and gives those that pay to the
// days of a table.
func (f *evaluateFlags) addCovariates(ctx context.Context, job *tables.Job, stdout, stderr io.Writer) error {
	if !f.beside.Any() {
		return nil
	}
	reader, err := cli.NewReader()
	if err != nil {
		return err
	}
	s := classical.Series{Grid: job.Series.Grid, Sea: job.Series.Sea}
	var times []time.Time
	for _, d := range job.Series.Days {
		s.Frames, times = append(s.Frames, classical.Frame{Time: d.Time, Values: d.Values}), append(times, d.Time)
	}
	const day = 24 * time.Hour
	with := covariate.Setting{OI: classical.DefaultOI(s.Grid), Tuning: classical.DefaultTuning()}
	switch cmp.Or(job.Settings.Mode, job.Table.Mode) {
	case impute.Past:
		with.Tuning.Past, with.Tuning.Future = samples.LastDays*day, 0
	case impute.Single:
		with.Tuning.Past, with.Tuning.Future = 0, 0
	default:
		with.Tuning.Past, with.Tuning.Future = samples.LastDays*day, samples.NextDays*day
	}
	beside := f.beside.Open(reader, stderr)
	answer, err := beside.Terms(ctx, covariates.Request{Grid: s.Grid, Sea: s.Sea, Times: times, Ahead: with.Tuning.Future > 0})
	if err != nil {
		return err
	}
	r, err := covariate.Choose(ctx, s, answer.Terms, covariateDays(job.Series, times, job.Settings.Split), with)
	if err != nil {
		return err
	}
	for i, drift := range r.Drift(s, answer.Terms) {
		job.Series.Days[i].Drift = drift
	}
	if err := keepCovariates(f.out, r); err != nil {
		return err
	}
	return tellCovariates(stdout, r)
}

// covariateDays returns the use of the days: by the calendar of the table and, where too
// few of them choose to tell chance from gain, by halves of those that do not judge.
func covariateDays(s samples.Series, times []time.Time, split samples.SplitConfig) covariate.Days {
	calendar := samples.Extend(samples.Calendar{}, s.Days, split)
	var days covariate.Days
	var free []int
	for i, t := range times {
		switch role := calendar.Role(samples.DateOf(t)); role {
		case samples.Judge:
			days.Judge = append(days.Judge, i)
		case samples.Choose:
			days.Choose, free = append(days.Choose, i), append(free, i)
		case samples.Learn:
			days.Learn, free = append(days.Learn, i), append(free, i)
		}
	}
	of := func(frames []int) []time.Time {
		var out []time.Time
		for _, i := range frames {
			out = append(out, times[i])
		}
		return out
	}
	if skill.DefaultBootstrap().Enough(of(days.Choose)) {
		return days
	}
	halves := covariate.Halves(of(free), time.Duration(split.GapDays)*24*time.Hour)
	pick := func(of []int) []int {
		var out []int
		for _, k := range of {
			out = append(out, free[k])
		}
		return out
	}
	days.Learn, days.Choose = pick(halves.Learn), pick(halves.Choose)
	return days
}

// keepCovariates writes what was found out beside the results.
func keepCovariates(dir string, r covariate.Regression) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "covariates.json"), append(text, '\n'), 0o644) //nolint:gosec // results are for everybody
}

// tellCovariates prints a list of what each covariate brings.
func tellCovariates(to io.Writer, r covariate.Regression) error {
	lines := []string{"## Covariates", ""}
	if r.Note != "" {
		lines = append(lines, r.Note+".")
	} else {
		lines = append(lines, fmt.Sprintf("Fitted on %d days, chosen by %d; gains of optimal interpolation on held-out days:", r.Learn, r.Choose), "")
		for _, v := range r.Judged {
			lines = append(lines, "- "+v.String())
		}
		if r.Gain != nil {
			lines = append(lines, fmt.Sprintf("- all that are used save %v", *r.Gain))
		}
	}
	for _, line := range slices.Concat(lines, []string{""}) {
		if _, err := fmt.Fprintln(to, line); err != nil {
			return err
		}
	}
	return nil
}
