package files

import (
	"context"
	"fmt"
	"io"
	"slices"

	"lacuna/daemon/fill"
	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest"
)

// screenAll screens all granules together, a grid after the other, and replaces
// each by its screened copy. For products in near real time nothing is done yet:
// there every granule is judged by the days before it.
func (f fillFlags) screenAll(ctx context.Context, reader *ingest.Reader, all []ingest.Granule) error {
	if !f.screen.Any() || f.fill.Ahead == 0 && f.fill.FutureDays == 0 {
		return nil
	}
	for _, like := range all {
		if _, done := f.refused[like.SHA256]; done {
			continue
		}
		sea, err := fill.SeaMask(ctx, f.mask, reader, like, all)
		if err != nil {
			return fmt.Errorf("sea mask for %s: %w", like.Name, err)
		}
		found, err := f.screen.Series(ctx, like, all, sea.Mask)
		if err != nil {
			return err
		}
		for i, g := range all {
			if g.Fields[0].Grid.Same(like.Fields[0].Grid) {
				f.refused[g.SHA256] = found[i]
			}
		}
	}
	return nil
}

// screened adds to a job what was refused in its granule, in near real time after
// judging it by the days before.
func (f fillFlags) screened(ctx context.Context, job *fill.Job, stderr io.Writer) (err error) {
	if !f.screen.Any() {
		return nil
	}
	var done bool
	if job.Screened, done = f.refused[job.Granule.SHA256]; !done {
		_, last := field.Span(job.Granule.Fields)
		past := slices.DeleteFunc(slices.Clone(job.History), func(h ingest.Granule) bool {
			_, end := field.Span(h.Fields)
			return end.After(last)
		})
		if job.Granule, job.History, job.Screened, err = f.screen.Granule(ctx, job.Granule, past, job.Sea); err != nil {
			return err
		}
	}
	fmt.Fprintf(stderr, "%s: %v\n", job.Granule.Name, job.Screened)
	return nil
}
