package ledger

import (
	"context"
	"database/sql"
	"sync"
)

// prepared keeps what SQLite has made of the texts of queries: to read a text takes it
// longer than to look up a row, and a page asks the same of a hundred datasets.
type prepared struct {
	*sql.DB

	mu    sync.Mutex // guards known
	known map[string]*sql.Stmt
}

// mostPrepared bounds the texts that are kept; the ledger has fewer.
const mostPrepared = 256

func prepare(db *sql.DB) *prepared { return &prepared{DB: db, known: map[string]*sql.Stmt{}} }

// QueryContext asks for rows.
func (p *prepared) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	if s := p.of(ctx, text); s != nil {
		return s.QueryContext(ctx, args...)
	}
	return p.DB.QueryContext(ctx, text, args...)
}

// QueryRowContext asks for one row.
func (p *prepared) QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row {
	if s := p.of(ctx, text); s != nil {
		return s.QueryRowContext(ctx, args...)
	}
	return p.DB.QueryRowContext(ctx, text, args...)
}

// of returns the statement of a text; nil where it cannot be prepared now, and the
// query itself then says why.
func (p *prepared) of(ctx context.Context, text string) *sql.Stmt {
	p.mu.Lock()
	s, ok := p.known[text]
	p.mu.Unlock()
	if ok {
		return s
	}
	s, err := p.PrepareContext(ctx, text) // without the lock: it may wait for a connection
	if err != nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if other, ok := p.known[text]; ok || len(p.known) >= mostPrepared {
		_ = s.Close() // nothing was asked of it
		return other
	}
	p.known[text] = s
	return s
}
