package jobs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"lacuna/pipeline/evaluate"
	"lacuna/pipeline/lab/tables"
)

// poolFiles prints a table for every job and mode in files of results, seeds
// pooled and differences paired by case.
func poolFiles(o options, out io.Writer) error {
	var order []evaluate.Results
	verdicts := map[string][]evaluate.Verdict{}
	first := map[string]tables.Record{} // records of first seeds, by table and row
	for _, path := range o.files {
		err := readRecords(path, func(r tables.Record) {
			key := fmt.Sprint(r.Table, r.Dataset, r.Mode)
			if verdicts[key] == nil {
				order = append(order, evaluate.Results{
					Table: r.Table, Dataset: r.Dataset, Mode: string(r.Mode), Cases: r.Verdict.Summary.Samples, Reference: o.reference,
					Side: r.Side, BlockDays: r.BlockDays,
				})
			}
			r.Verdict.Losses = r.Losses
			if r.Verdict.Seed <= 1 {
				first[key+r.Verdict.Method] = r
			}
			// A resumed run repeats its earlier rows.
			verdicts[key] = slices.DeleteFunc(verdicts[key], func(v evaluate.Verdict) bool {
				return v.Method == r.Verdict.Method && v.Seed == r.Verdict.Seed
			})
			verdicts[key] = append(verdicts[key], r.Verdict)
		})
		if err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
	}
	for _, about := range order {
		key := fmt.Sprint(about.Table, about.Dataset, about.Mode)
		table, err := about.Of(verdicts[key])
		if err != nil {
			return err
		}
		for i, row := range table.Rows {
			r := first[key+row.Method]
			table.Rows[i].Masks, table.Rows[i].Calls = r.Masks, r.Calls
		}
		if _, err := fmt.Fprintln(out, table.Markdown()); err != nil {
			return err
		}
	}
	return nil
}

// readRecords calls each with the records of a file, and skips other lines.
func readRecords(path string, each func(tables.Record)) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // read-only: a failed close loses nothing
	for d := json.NewDecoder(f); ; {
		var r tables.Record
		switch err := d.Decode(&r); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if r.Table != "" {
			each(r)
		}
	}
}
