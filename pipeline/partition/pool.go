package partition

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"lacuna/internal/faults"
	"lacuna/internal/pause"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/samples"
)

// PoolConfig says how many partitions are kept and how they are refreshed.
type PoolConfig struct {
	Size  int `json:"size" yaml:"size"`   // partitions kept; beyond it a fresh one replaces the oldest
	Batch int `json:"batch" yaml:"batch"` // patches split in one call

	// Prime is how many are drawn before the first is handed out, rounded up to
	// whole batches; 0: Size. PrimeSeconds ends that earlier, after the batch in
	// which so much time has passed; 0: no limit.
	Prime        int     `json:"prime" yaml:"prime"`
	PrimeSeconds float64 `json:"prime_seconds" yaml:"prime_seconds"`

	// Share is the most of the time that is spent on drawing fresh partitions
	// once the pool is primed. The receiver never waits for them.
	Share float64 `json:"share" yaml:"share"`
	// Uses, where it is not 0, paces by count instead: a fresh partition for
	// every so many items, and the receiver waits where drawing is slower. What
	// is handed out then depends on no clock.
	Uses int `json:"uses,omitempty" yaml:"uses,omitempty"`
}

// DefaultPool returns the settings that hold where a file is silent. With the
// second or so in which the first are drawn, drawing stays below a fifth of any
// training of half a minute or more.
func DefaultPool() PoolConfig {
	return PoolConfig{Size: 4096, Batch: 256, Prime: 512, PrimeSeconds: 60, Share: 0.15}
}

// ForSide returns c with a batch that takes no more memory in square windows of
// so many cells a side than it does in those of 64. Guided masks keep the
// tensors of the gradient: 256 of them at 256 cells a side do not fit a GPU of 140 GB.
func (c PoolConfig) ForSide(side int) PoolConfig {
	const usual = 64 // cells
	if side > usual {
		c.Batch = max(c.Batch*usual*usual/(side*side), 1)
	}
	return c
}

// Validate reports everything wrong with c.
func (c PoolConfig) Validate() error {
	var errs faults.List
	errs.Check(c.Size > 0 && c.Batch > 0, "size is %d and batch %d, must be positive", c.Size, c.Batch)
	errs.Check(c.Prime >= 0 && c.PrimeSeconds >= 0, "prime is %d and prime_seconds %g, must not be negative", c.Prime, c.PrimeSeconds)
	errs.Check(c.Uses >= 0, "uses is %d, must not be negative", c.Uses)
	errs.Check(c.Uses > 0 || c.Share > 0 && c.Share < 1, "share is %g, must be above 0 and below 1 where uses is 0", c.Share)
	return errs.Err()
}

// blocks returns how many batches are kept, and how many of them are primed.
func (c PoolConfig) blocks() (kept, primed int) {
	up := func(n int) int { return (n + c.Batch - 1) / c.Batch }
	kept = up(c.Size)
	if c.Prime == 0 {
		return kept, kept
	}
	return kept, min(up(c.Prime), kept)
}

// Item is a window with one partition of it.
type Item struct {
	Ref       samples.Ref
	Partition Parts
}

// Windows are the patches that a pool hands out, with their strategy.
type Windows struct {
	Data samples.Train
	Refs []samples.Ref
	By   Strategy
}

// Pool hands out partitions of training windows, drawn in large batches by a
// goroutine of its own while the receiver trains.
//
// It keeps the newest partitions and hands out any of them with equal
// probability. Drawing goes through all windows in random order, again and
// again, so that windows come equally often and each gets several partitions
// over time. A partition is only ever handed out with its own window.
//
// Paced by Share, which partitions are there depends on how fast the machine
// is, and two trainings differ as two seeds do. Paced by Uses, item n is a
// function of n, of the seed and of the strategy, whatever the speed of either
// side and wherever the pool began.
//
// A Pool is for one receiver.
type Pool struct {
	from   Windows
	cfg    PoolConfig
	stream noise.Stream

	drawn  chan block
	blocks [][]Item // a ring; block n is at n modulo its length
	have   uint64   // blocks that were put in, from the first on
	prime  uint64   // how many make the pool primed
	primed bool
	next   uint64 // number of the item to be handed out
	err    error

	stop context.CancelFunc
	wait sync.WaitGroup
	mu   sync.Mutex // guards cost
	cost poolCost
}

// block is one batch of items on its way from the drawing goroutine.
type block struct {
	items  []Item
	primes bool // the last one of priming
	err    error
}

// NewPool starts a pool that hands out items from number first on; a training
// that goes on after an interruption gives the number of items it has used.
// The goroutine ends when ctx is done or the pool is closed.
func NewPool(ctx context.Context, from Windows, cfg PoolConfig, stream noise.Stream, first uint64) (*Pool, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("partition pool: %w", err)
	}
	if len(from.Refs) == 0 {
		return nil, errors.New("partition pool: no windows to split")
	}
	kept, primed := cfg.blocks()
	p := &Pool{
		from: from, cfg: cfg, stream: stream, next: first, drawn: make(chan block),
		blocks: make([][]Item, kept), prime: uint64(primed), cost: poolCost{began: time.Now()},
	}
	if cfg.Uses > 0 {
		p.prime = p.due(first)
		p.have = p.prime - min(p.prime, uint64(kept)) // older blocks would be replaced
	} else {
		p.stream = stream.Sub(first) // earlier draws depended on the clock: draw others
	}
	ctx, p.stop = context.WithCancel(ctx)
	number := p.have
	p.wait.Go(func() { p.run(ctx, number) })
	return p, nil
}

// due returns how many blocks are in the pool when item n is handed out, where
// Uses paces it.
func (p *Pool) due(n uint64) uint64 {
	_, primed := p.cfg.blocks()
	return uint64(primed) + n/(uint64(p.cfg.Batch)*uint64(p.cfg.Uses))
}

// Next returns the next item. After an error it returns the same error again.
func (p *Pool) Next(ctx context.Context) (Item, error) {
	for p.err == nil && p.mustWait() {
		if err := p.receive(ctx); err != nil {
			return Item{}, err
		}
	}
	if p.cfg.Uses == 0 && p.err == nil {
		select { // take a block that is ready, wait for none
		case b, ok := <-p.drawn:
			p.put(b, ok)
		default:
		}
	}
	if p.err != nil {
		return Item{}, p.err
	}
	batch := uint64(p.cfg.Batch)
	at := p.stream.Sub(poolOrder).Rand(p.next).Uint64N(min(p.have, uint64(len(p.blocks))) * batch)
	p.next++
	p.mu.Lock()
	p.cost.items++
	p.mu.Unlock()
	return p.blocks[at/batch][at%batch], nil
}

// mustWait reports whether the next item cannot be chosen yet.
func (p *Pool) mustWait() bool {
	if p.cfg.Uses > 0 {
		return p.have < p.due(p.next)
	}
	return !p.primed
}

// receive waits for the next block.
func (p *Pool) receive(ctx context.Context) error {
	began, primed := time.Now(), p.primed
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case b, ok := <-p.drawn:
		p.put(b, ok)
	}
	if primed {
		p.mu.Lock()
		p.cost.waits += time.Since(began)
		p.mu.Unlock()
	}
	return nil
}

// put takes a block into the ring.
func (p *Pool) put(b block, ok bool) {
	switch {
	case !ok:
		p.err = errors.New("partition pool: closed")
	case b.err != nil:
		p.err = b.err
	default:
		p.blocks[p.have%uint64(len(p.blocks))] = b.items
		p.have++
		p.primed = p.primed || b.primes
	}
}

// Close ends the goroutine and waits for it.
func (p *Pool) Close() {
	p.stop()
	p.wait.Wait()
}

// Streams below that of the pool.
const (
	poolSplit = iota
	poolOrder
	poolPass
)

// run draws one block after the other, from number on.
func (p *Pool) run(ctx context.Context, number uint64) {
	defer close(p.drawn)
	began := time.Now()
	for primed := false; ; number++ {
		drawing := time.Now()
		var b block
		b.items, b.err = p.draw(ctx, number)
		took := time.Since(drawing)
		p.account(took, primed)
		if !primed {
			slow := p.cfg.Uses == 0 && p.cfg.PrimeSeconds > 0 && time.Since(began).Seconds() >= p.cfg.PrimeSeconds
			primed = number+1 >= p.prime || slow
			b.primes = primed
		}
		select {
		case <-ctx.Done():
			return
		case p.drawn <- b:
		}
		if b.err != nil || primed && !p.rest(ctx, took) {
			return
		}
	}
}

// rest waits for so long after a block that drawing keeps to its share. It
// reports false where ctx ended. A slow receiver gains no credit:
// drawing never makes up for lost time.
func (p *Pool) rest(ctx context.Context, took time.Duration) bool {
	if p.cfg.Uses > 0 {
		return ctx.Err() == nil
	}
	return pause.For(ctx, time.Duration(float64(took)*(1-p.cfg.Share)/p.cfg.Share))
}

// draw splits the windows of a block. A pass through all windows is one
// shuffle of them, however many blocks it takes.
func (p *Pool) draw(ctx context.Context, number uint64) ([]Item, error) {
	items, patches := make([]Item, p.cfg.Batch), make([]samples.Patch, p.cfg.Batch)
	all := uint64(len(p.from.Refs))
	var order []int
	for i := range items {
		k := number*uint64(p.cfg.Batch) + uint64(i)
		if order == nil || k%all == 0 {
			order = p.stream.Sub(poolPass).Rand(k / all).Perm(len(p.from.Refs))
		}
		items[i].Ref = p.from.Refs[order[k%all]]
		patches[i] = p.from.Data.Cut(items[i].Ref)
	}
	split, err := p.from.By.Partition(ctx, patches, p.stream.Sub(poolSplit).Sub(number))
	if err != nil {
		return nil, fmt.Errorf("partition pool: batch %d: %w", number, err)
	}
	for i := range items {
		items[i].Partition = split[i]
	}
	return items, nil
}
