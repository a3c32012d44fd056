package pages

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lacuna/daemon/fill"
	"lacuna/daemon/operate"
	"lacuna/internal/convert"
	"lacuna/ledger"
	"lacuna/ops"
	"lacuna/publish"
)

// granules are the pages of granules, with their stories and maps.
type granules struct {
	reading
	reader Reader
}

// OfDay implements ops.Granules.
func (w granules) OfDay(ctx context.Context, dataset string, day time.Time) ([]ops.GranuleLine, error) {
	if err := w.known(dataset); err != nil {
		return nil, err
	}
	rows, err := w.Operations.OfDay(ctx, dataset, day)
	if err != nil {
		return nil, err
	}
	slices.Reverse(rows) // newest first
	lines := convert.Each(newestRows(rows), func(g ledger.Granule) ops.GranuleLine {
		line := ops.GranuleLine{ID: ops.GranuleID{Dataset: dataset, Name: g.Name}, State: string(g.State), Time: g.First}
		if g.Absent {
			line.State = "is not in the archive; its product is " + line.State
		}
		return line
	})
	slices.SortFunc(lines, func(a, b ops.GranuleLine) int { return a.Time.Compare(b.Time) })
	return lines, nil
}

// Granule implements ops.Granules.
func (w granules) Granule(ctx context.Context, id ops.GranuleID) (ops.Granule, error) {
	rows, row, err := w.revision(ctx, id)
	if err != nil {
		return ops.Granule{}, err
	}
	id.Revision = row.Revision
	g := ops.Granule{
		ID: id, State: string(row.State), Reason: row.Reason, First: row.First, Last: row.Last,
		Input: ops.File{Name: row.Name, Bytes: row.Size, SHA256: row.SHA256},
	}
	switch {
	case row.Absent:
		g.Input = ops.File{Name: row.Name}
		g.Note = "The archive has no granule of this time: everything here is filled from other days. If the granule comes, it is the next revision."
	case row.Product.Path != "" && row.Product.Observed == 0:
		g.Note = "The granule holds no observation: everything here is filled from other days."
	}
	story, err := w.Story(ctx, id.Dataset, id.Name)
	if err != nil {
		return g, err
	}
	g.ToDo = story.ToDo
	short := strings.NewReplacer(w.settings.Products+"/", "", string(w.settings.State)+"/", "") // operators know these two folders
	g.History = convert.Each(story.Lines, func(l operate.StoryLine) ops.Event { return ops.Event{At: l.At, Text: short.Replace(l.Text)} })
	deliveries, err := w.book.Deliveries(ctx, id.Dataset, id.Name)
	if err != nil {
		return g, err
	}
	g.Revisions = revisionsOf(rows, deliveries)
	for _, d := range deliveries {
		if d.Publication.Revision == id.Revision {
			g.Product = w.made(row, d.Publication)
			g.Deliveries = append(g.Deliveries, deliveryRow(d))
		}
	}
	if g.Product != nil && productFile(row, deliveries) != "" {
		times, err := w.book.Times(ctx, row.ID)
		if err != nil {
			return g, err
		}
		g.Fields = max(1, len(times))
	}
	return g, nil
}

// revision returns the rows of a granule, newest first, and the row of the
// revision in id, or of the current one where that is 0.
func (w granules) revision(ctx context.Context, id ops.GranuleID) (rows []ledger.Granule, meant ledger.Granule, err error) {
	if err := w.known(id.Dataset); err != nil {
		return nil, meant, err
	}
	rows, err = w.book.Granules(ctx, ledger.GranuleQuery{Dataset: id.Dataset, Name: id.Name})
	if err != nil {
		return nil, meant, err
	}
	if id.Revision == 0 && len(rows) > 0 {
		return rows, newestRows(rows)[0], nil
	}
	for _, g := range rows {
		if g.Revision == id.Revision {
			return rows, g, nil
		}
	}
	return nil, meant, fmt.Errorf("granule %s of %s, revision %d: %w", id.Name, id.Dataset, id.Revision, ops.ErrNotFound)
}

// made returns the product of a row as it was published.
func (w granules) made(row ledger.Granule, p ledger.Publication) *ops.Made {
	told := toldOf(p)
	m := &ops.Made{
		File:     ops.File{Name: told.Name, Bytes: p.Size, SHA256: told.SHA256},
		Variable: told.Variable, Units: told.Units, Mode: told.Mode, Model: told.Model, Seed: told.Seed, Created: told.Created,
		ObservedBefore: told.CoverageBefore, FilledAfter: told.CoverageAfter,
	}
	if t := told.Members; t != nil {
		m.Drawn = t.Count
		m.Members = &ops.File{Name: t.Name, Bytes: t.Size, SHA256: t.SHA256}
	}
	if told.Sampling != nil {
		m.Drawn = max(m.Drawn, told.Sampling.Members)
	}
	m.Model = cmp.Or(fill.Method(told.Model), told.Model) + told.Trust.String() + told.Sampling.String() + told.Refused.String()
	if !p.Retracted.IsZero() {
		m.Retracted = p.Why
		return m
	}
	visible := w.below(row.Product.Path)
	if visible == "" || !sameFile(row.Product.Path, p.File) {
		return m // the visible file is of another revision
	}
	m.URL = ops.ProductURL(visible)
	if m.Members != nil {
		m.Members.URL = ops.ProductURL(publish.MembersName(visible))
	}
	if picture := strings.TrimSuffix(visible, filepath.Ext(visible)) + ".png"; w.settings.Publish.QuickLook {
		m.QuickLook = picture
	}
	return m
}

// below returns the path of a file relative to the folder of products, with
// slashes; empty where the file lies elsewhere.
func (w granules) below(file string) string {
	rel, err := filepath.Rel(w.settings.Products, file)
	if err != nil || file == "" || strings.HasPrefix(rel, "..") {
		return ""
	}
	return filepath.ToSlash(rel)
}

// sameFile reports whether two paths are of one file: the visible product is a
// hard link to the file of its revision.
func sameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// productFile returns the file with the bytes of the product of a row; empty
// where it is gone.
func productFile(row ledger.Granule, deliveries []ledger.Delivery) string {
	for _, d := range deliveries {
		if d.Publication.Revision != row.Revision {
			continue
		}
		if info, err := os.Stat(d.Publication.File); err == nil && info.Mode().IsRegular() {
			return d.Publication.File
		}
	}
	return ""
}

// revisionsOf lists the revisions of a granule, newest first.
func revisionsOf(rows []ledger.Granule, deliveries []ledger.Delivery) []ops.Revision {
	return convert.Each(rows, func(g ledger.Granule) ops.Revision {
		r := ops.Revision{Number: g.Revision, Note: string(g.State)}
		for _, d := range deliveries {
			if p := d.Publication; p.Revision == g.Revision {
				r.Stored, r.Note = p.Stored, toldOf(p).Mode
				if !p.Retracted.IsZero() {
					r.Note += ", retracted"
				}
			}
		}
		return r
	})
}

// deliveryRow returns a delivery with the topic and key of its message.
func deliveryRow(d ledger.Delivery) ops.Delivery {
	row := ops.Delivery{
		Sink: d.Sink, Kind: string(d.Kind), State: string(d.State), At: d.Ended, Attempts: d.Attempts, Problem: d.Problem,
	}
	if d.State == ledger.Delivered {
		row.Problem = "" // the problem of an earlier attempt
	}
	if prefix, ok := strings.CutPrefix(d.Sink, "kafka:"); ok {
		row.Message = fmt.Sprintf("topic %s.events, key %s", prefix, toldOf(d.Publication).Key())
	}
	return row
}

// toldOf returns the description of a product that sinks get. A body that cannot
// be read, such as one of a later version, leaves it nearly empty.
func toldOf(p ledger.Publication) publish.Product {
	var told publish.Product
	if err := json.Unmarshal([]byte(p.Body), &told); err != nil {
		return publish.Product{Dataset: p.Dataset, Granule: p.Granule, Name: filepath.Base(p.File), Revision: p.Revision}
	}
	return told
}
