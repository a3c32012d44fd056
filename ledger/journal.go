package ledger

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"time"

	"lacuna/internal/durable"
)

// Fact is a line of the journal on one revision of a granule: the facts that no
// file on the disk holds.
type Fact struct {
	Dataset     string          `json:"dataset"`
	Name        string          `json:"name"`
	Revision    int             `json:"revision"`
	SHA256      string          `json:"sha256"`
	Size        int64           `json:"size"`
	ModTime     time.Time       `json:"mod_time"`
	ETag        string          `json:"etag,omitempty"`
	MD5         string          `json:"md5,omitempty"`
	SpoolPath   string          `json:"spool_path"`
	Lane        Lane            `json:"lane,omitempty"`
	Cause       Cause           `json:"cause,omitempty"`
	Why         string          `json:"why,omitempty"`
	Absent      bool            `json:"absent,omitempty"` // the archive has no such granule
	Recorded    time.Time       `json:"recorded"`
	Times       []time.Time     `json:"times,omitempty"`       // times of its fields, where it was read
	Publication *PublishedFact  `json:"publication,omitempty"` // set once its product is stored
	Grid        json.RawMessage `json:"grid,omitempty"`        // set in a line about the grid of a dataset
	Fingerprint string          `json:"fingerprint,omitempty"`
	Identity    *Identity       `json:"identity,omitempty"` // set in a line about the identity of the state
}

// PublishedFact is the part of a journal line on a product.
type PublishedFact struct {
	Time    time.Time       `json:"time"`
	File    string          `json:"file"`
	Size    int64           `json:"size"`
	Body    json.RawMessage `json:"body"`
	Stored  time.Time       `json:"stored"`
	Product Product         `json:"product"`
}

// The journal and its cursor lie beside the ledger.
const (
	journalEnding = ".journal"
	cursorEnding  = ".journal.cursor"
)

// cursor is the position of a journal: the last rows that are in it.
type cursor struct {
	Granule     int64 `json:"granule"`
	Publication int64 `json:"publication"`
	GridChange  int64 `json:"grid_change"`
}

// journalRows is the number of rows written at a time, so that memory does not
// grow with the backlog.
const journalRows = 500

// WriteJournal appends the new rows of the ledger to the journal. The journal
// is a file of JSON lines, only ever appended to: with it and the files on the
// disk a lost ledger can be rebuilt.
func (l *Ledger) WriteJournal(ctx context.Context) error {
	at, err := loadCursor(l.path)
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	for {
		before := at
		facts, err := l.news(ctx, &at)
		if err == nil && len(facts) > 0 {
			err = appendFacts(l.path+journalEnding, facts)
		}
		if err == nil && at != before {
			err = saveCursor(l.path, at)
		}
		if err != nil {
			return fmt.Errorf("write journal: %w", err)
		}
		if at == before {
			return nil
		}
	}
}

// news returns the facts behind a cursor and moves it on.
func (l *Ledger) news(ctx context.Context, at *cursor) ([]Fact, error) {
	granules, err := query(ctx, l.db, scanFact, factQuery+`LEFT JOIN publication AS p ON 0
		WHERE g.id > ? ORDER BY g.id LIMIT ?`, at.Granule, journalRows)
	if err != nil {
		return nil, err
	}
	published, err := query(ctx, l.db, scanFact, factQuery+`JOIN publication AS p ON p.granule = g.id
		WHERE p.id > ? ORDER BY p.id LIMIT ?`, at.Publication, journalRows)
	if err != nil {
		return nil, err
	}
	var facts []Fact
	for _, row := range granules {
		at.Granule = row.id
		facts = append(facts, row.Fact)
	}
	for _, row := range published {
		at.Publication = row.publication
		if row.Times, err = l.times(ctx, row.id); err != nil {
			return nil, err
		}
		facts = append(facts, row.Fact)
	}
	grids, err := query(ctx, l.db, scanGridFact, `SELECT id, dataset, fingerprint, json, at, why FROM grid_change
		WHERE id > ? ORDER BY id LIMIT ?`, at.GridChange, journalRows)
	if err != nil {
		return nil, err
	}
	for _, row := range grids {
		at.GridChange = row.id
		facts = append(facts, row.Fact)
	}
	return facts, nil
}

// factRow is a fact with the rows that it is from.
type factRow struct {
	Fact
	id, publication int64
}

const factQuery = `SELECT g.id, g.dataset, g.name, g.revision, g.sha256, g.size, g.mod_time, g.spool_path, g.lane, g.cause, g.why, g.absent, g.recorded,
	coalesce(o.etag, ''), coalesce(o.md5, ''), g.product_path, g.product_sha256, g.observed, g.covered,
	coalesce(p.id, 0), coalesce(p.time, ''), coalesce(p.file, ''), coalesce(p.size, 0), coalesce(p.body, ''), coalesce(p.stored, '')
	FROM granule AS g LEFT JOIN object AS o ON o.dataset = g.dataset AND o.name = g.name AND o.granule = g.id `

func scanFact(row scanner) (f factRow, err error) {
	var p PublishedFact
	var body string
	err = row.Scan(&f.id, &f.Dataset, &f.Name, &f.Revision, &f.SHA256, &f.Size, (*moment)(&f.ModTime), &f.SpoolPath, &f.Lane, &f.Cause, &f.Why, &f.Absent,
		(*moment)(&f.Recorded), &f.ETag, &f.MD5, &p.Product.Path, &p.Product.SHA256, &p.Product.Observed, &p.Product.Covered,
		&f.publication, (*moment)(&p.Time), &p.File, &p.Size, &body, (*moment)(&p.Stored))
	if f.publication > 0 {
		p.Body = json.RawMessage(body)
		f.Publication = &p
	}
	return f, err
}

// scanGridFact reads a change of a dataset's grid, which is null where it was
// forgotten.
func scanGridFact(row scanner) (f factRow, err error) {
	var grid string
	err = row.Scan(&f.id, &f.Dataset, &f.Fingerprint, &grid, (*moment)(&f.Recorded), &f.Why)
	f.Grid = json.RawMessage(cmp.Or(grid, "null"))
	return f, err
}

// times returns the times of the fields in a granule.
func (l *Ledger) times(ctx context.Context, granule int64) ([]time.Time, error) {
	return query(ctx, l.db, func(row scanner) (t time.Time, err error) { return t, row.Scan((*moment)(&t)) },
		"SELECT time FROM field_time WHERE granule = ? ORDER BY time", granule)
}

// appendFacts writes lines that are on the disk when it returns nil. A line
// that a crash cut off before is ended first.
func appendFacts(path string, facts []Fact) (err error) {
	var lines bytes.Buffer
	for _, f := range facts {
		text, err := json.Marshal(f)
		if err != nil {
			return err
		}
		lines.Write(append(text, '\n'))
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if size, err := f.Seek(0, io.SeekEnd); err == nil && size > 0 {
		last := make([]byte, 1)
		if _, err := f.ReadAt(last, size-1); err == nil && last[0] != '\n' {
			lines = *bytes.NewBuffer(append([]byte{'\n'}, lines.Bytes()...))
		}
	}
	if _, err := f.Write(lines.Bytes()); err != nil {
		return err
	}
	return f.Sync()
}

func loadCursor(path string) (cursor, error) {
	var at cursor
	content, err := os.ReadFile(path + cursorEnding)
	if errors.Is(err, fs.ErrNotExist) {
		return at, nil
	}
	if err == nil && json.Unmarshal(content, &at) != nil {
		return cursor{}, nil // begin anew: a repeated line does no harm
	}
	return at, err
}

func saveCursor(path string, at cursor) error {
	content, err := json.Marshal(at)
	if err != nil {
		return err
	}
	return durable.WriteFile(path+cursorEnding, content, 0o644)
}

// longestLine bounds a line of a journal: a grid of ten thousand by ten
// thousand cells has lines of some hundred kilobytes.
const longestLine = 16 << 20

// Journal yields the facts in the journal of a ledger, oldest first. Lines that
// cannot be read are skipped: most of a damaged journal is still of use. There
// may be no journal.
func Journal(path string) iter.Seq2[Fact, error] {
	return func(yield func(Fact, error) bool) {
		f, err := os.Open(path + journalEnding)
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err != nil {
			yield(Fact{}, fmt.Errorf("read journal: %w", err))
			return
		}
		defer f.Close()
		factsIn(f)(yield)
	}
}

// factsIn yields the facts in the text of a journal.
func factsIn(text io.Reader) iter.Seq2[Fact, error] {
	return func(yield func(Fact, error) bool) {
		lines := bufio.NewReaderSize(text, 64<<10)
		for {
			line, err := nextLine(lines)
			var fact Fact
			if json.Unmarshal(line, &fact) == nil && fact.Dataset != "" && !yield(fact, nil) {
				return
			}
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(Fact{}, fmt.Errorf("read journal: %w", err))
				return
			}
		}
	}
}

// nextLine returns the next line, which at the end of the text comes with io.EOF. One
// that is too long to be a fact is read over, and is empty.
func nextLine(text *bufio.Reader) (line []byte, err error) {
	long := false
	for {
		part, err := text.ReadSlice('\n')
		long = long || len(line)+len(part) > longestLine
		if long {
			line = nil
		} else {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// Behind reports whether the journal tells of rows that the ledger does not
// have: it was lost, or a part of it.
func (l *Ledger) Behind(ctx context.Context) (bool, error) {
	at, err := loadCursor(l.path)
	if err != nil {
		return false, err
	}
	var granule, publication int64
	err = l.db.QueryRowContext(ctx, "SELECT coalesce((SELECT max(id) FROM granule), 0), coalesce((SELECT max(id) FROM publication), 0)").
		Scan(&granule, &publication)
	if err != nil {
		return false, fmt.Errorf("compare with journal: %w", err)
	}
	if granule == 0 { // an empty ledger beside a journal, also one without a cursor
		for _, err := range Journal(l.path) { // identity lines are not yielded
			return err == nil, err
		}
		return false, nil
	}
	return granule < at.Granule || publication < at.Publication, nil
}
