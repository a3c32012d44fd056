package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"lacuna/internal/pause"
)

// PaceConfig is the rate limit of a host.
type PaceConfig struct {
	RequestsPerSecond float64 `yaml:"requests_per_second"` // to one host, on average
	Burst             int     `yaml:"burst"`               // requests that may follow one another at once
}

// DefaultPaceConfig returns the settings that hold where a file is silent.
func DefaultPaceConfig() PaceConfig {
	return PaceConfig{
		RequestsPerSecond: 10, // a 10,000 object listing is 10 requests, a day of granules a handful
		Burst:             20, // one poll of a dataset passes without waiting
	}
}

// Validate reports everything wrong with c.
func (c PaceConfig) Validate() error {
	var errs []error
	if c.RequestsPerSecond <= 0 {
		errs = append(errs, fmt.Errorf("requests_per_second is %v, must be positive", c.RequestsPerSecond))
	}
	if c.Burst < 1 {
		errs = append(errs, fmt.Errorf("burst is %d, must be at least 1", c.Burst))
	}
	return errors.Join(errs...)
}

// Pacer spaces out requests, host by host, with one token bucket for each. All
// archives of a process share one Pacer, so that ten datasets on a host are as
// polite as one. A nil Pacer never waits. It is safe for concurrent use.
type Pacer struct {
	cfg   PaceConfig
	mu    sync.Mutex // guards hosts and their state
	hosts map[string]*hostPace
}

type hostPace struct {
	bucket *rate.Limiter
	until  time.Time // the host asked for a pause until then
}

// NewPacer returns a Pacer for any number of hosts.
func NewPacer(cfg PaceConfig) (*Pacer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("pace config: %w", err)
	}
	return &Pacer{cfg: cfg, hosts: map[string]*hostPace{}}, nil
}

// Wait returns when a request to host may be made, or with the error of ctx.
func (p *Pacer) Wait(ctx context.Context, host string) error {
	if p == nil {
		return ctx.Err()
	}
	bucket, until := p.host(host)
	if wait := time.Until(until); wait > 0 && !pause.For(ctx, wait) {
		return ctx.Err()
	}
	if err := bucket.Wait(ctx); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("wait for a turn at %s: %w", host, err)
	}
	return nil
}

// maxHold bounds the pause that a host may ask for: a poll that comes later
// asks again and is told again.
const maxHold = time.Minute

// Hold delays all requests to host by d, at most a minute.
func (p *Pacer) Hold(host string, d time.Duration) {
	if p == nil || d <= 0 {
		return
	}
	until := time.Now().Add(min(d, maxHold))
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.at(host)
	if until.After(h.until) {
		h.until = until
	}
}

func (p *Pacer) host(host string) (*rate.Limiter, time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.at(host)
	return h.bucket, h.until
}

// at returns the pace of host. The caller holds mu.
func (p *Pacer) at(host string) *hostPace {
	h, ok := p.hosts[host]
	if !ok {
		h = &hostPace{bucket: rate.NewLimiter(rate.Limit(p.cfg.RequestsPerSecond), p.cfg.Burst)}
		p.hosts[host] = h
	}
	return h
}

// Limited bounds how many calls of an archive are under way. An open reader
// counts until it is closed.
type Limited struct {
	archive Archive
	slots   chan struct{}
}

// NewLimited returns archive with at most n calls under way.
func NewLimited(archive Archive, n int) (*Limited, error) {
	if n < 1 {
		return nil, fmt.Errorf("concurrent is %d, must be at least 1", n)
	}
	return &Limited{archive: archive, slots: make(chan struct{}, n)}, nil
}

// List waits for a slot and lists.
func (l *Limited) List(ctx context.Context, scope Scope) ([]Object, error) {
	if err := l.enter(ctx); err != nil {
		return nil, err
	}
	defer l.leave()
	return l.archive.List(ctx, scope)
}

// Open waits for a slot and opens o. Closing the reader frees the slot.
func (l *Limited) Open(ctx context.Context, o Object, offset int64) (io.ReadCloser, error) {
	if err := l.enter(ctx); err != nil {
		return nil, err
	}
	src, err := l.archive.Open(ctx, o, offset)
	if err != nil {
		l.leave()
		return nil, err
	}
	return &slotReader{ReadCloser: src, leave: sync.OnceFunc(l.leave)}, nil
}

func (l *Limited) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case l.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *Limited) leave() { <-l.slots }

type slotReader struct {
	io.ReadCloser
	leave func()
}

// Close closes the reader and frees its slot.
func (s *slotReader) Close() error {
	defer s.leave()
	return s.ReadCloser.Close()
}
