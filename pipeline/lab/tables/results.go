package tables

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"lacuna/internal/durable"
	"lacuna/pipeline/evaluate"
	"lacuna/pipeline/skill"
)

// Names of the files of a run.
const (
	ResultsFile  = "results.json"
	MarkdownFile = "results.md"
	TimingFile   = "timing.json" // durations; the one file that differs between equal runs
)

// results puts all records together and writes them.
func (r *run) results() (evaluate.Results, error) {
	x, err := r.examsOf(r.s.Mode)
	if err != nil {
		return evaluate.Results{}, err
	}
	verdicts := make([]evaluate.Verdict, len(r.entries))
	for i, e := range r.entries {
		verdicts[i] = e.record.Verdict
	}
	out, err := evaluate.NewResults(r.job.Table.Name, x.main, r.job.Table.Rows[0].Name, verdicts)
	if err != nil {
		return out, err
	}
	out.Dataset = r.job.Dataset
	out.Notes = r.notes(x.reached)
	for i := range out.Rows {
		r.complete(&out.Rows[i])
	}
	data, err := json.MarshalIndent(out, "", " ")
	if err != nil {
		return out, fmt.Errorf("write %s: %w", ResultsFile, err)
	}
	if err := durable.WriteFile(filepath.Join(r.job.Folder, ResultsFile), append(data, '\n'), 0o644); err != nil {
		return out, err
	}
	if err := durable.WriteFile(filepath.Join(r.job.Folder, MarkdownFile), []byte(out.Markdown()), 0o644); err != nil {
		return out, err
	}
	return out, r.timing()
}

// complete adds the scores that are not in a row's verdicts.
func (r *run) complete(row *evaluate.Row) {
	var truths []*evaluate.TruthScore
	for _, e := range r.entries {
		if e.row.Name != row.Method {
			continue
		}
		row.Calls = e.record.Calls
		if e.record.Truth != nil {
			truths = append(truths, e.record.Truth)
		}
		if m := e.record.Masks.score(r.s.MaskDraws); m != nil {
			row.Masks = m
		}
	}
	if len(truths) > 0 {
		row.Truth = meanTruth(truths)
	}
}

// score returns the figures of a study of masks, nil if there is none.
func (s *maskStudy) score(draws int) *evaluate.MaskScore {
	if s == nil {
		return nil
	}
	return &evaluate.MaskScore{ContextShare: s.ContextShare, SD: s.SD, Draws: draws}
}

// meanTruth returns the means over seeds of scores and of interval ends; a
// missing interval of one seed leaves the mean without.
func meanTruth(of []*evaluate.TruthScore) *evaluate.TruthScore {
	t := evaluate.TruthScore{}
	for _, o := range of {
		t.Overlay += o.Overlay / float64(len(of))
		t.Gaps += o.Gaps / float64(len(of))
	}
	mean := func(get func(*evaluate.TruthScore) *skill.Interval) *skill.Interval {
		in := skill.Interval{}
		for _, o := range of {
			i := get(o)
			if i == nil {
				return nil
			}
			in.Low += i.Low / float64(len(of))
			in.High += i.High / float64(len(of))
		}
		return &in
	}
	t.OverlayIn = mean(func(o *evaluate.TruthScore) *skill.Interval { return o.OverlayIn })
	t.GapsIn = mean(func(o *evaluate.TruthScore) *skill.Interval { return o.GapsIn })
	return &t
}

// notes returns remarks for the reader.
func (r *run) notes(reached float64) []string {
	s := r.s.Split
	notes := []string{
		r.job.Table.About,
		fmt.Sprintf("Split by time: the last %.0f %% of each of up to %d blocks is held out, with %d days of neither side between; %d training days. An overlay hides what was a gap on another held-out day.",
			100*s.HeldOut, s.Blocks, s.GapDays, r.train.Days()),
		fmt.Sprintf("MSE is in units of the variance of the training values, pooled over pixels; RMSE and bias are in physical units. In brackets the 95 %% interval of the difference, by paired bootstrap over blocks of %d days; bold where it does not hold zero. ± is half the range over seeds.", r.s.BlockDays),
		fmt.Sprintf("Gap MSE weighs cells to the age and distance of true gaps; overlays can stand for %.0f %% of those.", 100*reached),
	}
	for _, row := range r.job.Table.Rows {
		if row.trains() && row.Network.File == "" {
			c := r.s.Train
			notes = append(notes, fmt.Sprintf("Networks: %s %s, %d steps of %d patches of %d×%d cells.", c.Design.Size, c.Design.Backbone, c.Steps, c.Batch, c.Side, c.Side))
			break
		}
	}
	return notes
}

// timing writes the durations of rows.
func (r *run) timing() error {
	type took struct {
		Method       string  `json:"method"`
		Seed         uint64  `json:"seed"`
		TrainSeconds float64 `json:"train_seconds"` // time in the process that finished it
		FillSeconds  float64 `json:"fill_seconds"`
		Calls        int     `json:"calls,omitempty"`
	}
	all := make([]took, len(r.entries))
	for i, e := range r.entries {
		all[i] = took{e.row.Name, e.seed, e.record.TrainSeconds, e.record.Verdict.Seconds, e.record.Calls}
	}
	data, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		return fmt.Errorf("write %s: %w", TimingFile, err)
	}
	return os.WriteFile(filepath.Join(r.job.Folder, TimingFile), append(data, '\n'), 0o644)
}
