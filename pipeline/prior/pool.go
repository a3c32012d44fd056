package prior

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"lacuna/pipeline/noise"
	"lacuna/pipeline/samples"
)

// PoolConfig says how many partitions are kept and how often each is used.
type PoolConfig struct {
	Size  int `json:"size" yaml:"size"`   // partitions in a generation
	Uses  int `json:"uses" yaml:"uses"`   // of each partition, before its generation is replaced
	Batch int `json:"batch" yaml:"batch"` // patches split in one call
}

// DefaultPool returns the settings that hold where a file is silent. A guided
// mask costs as much as some forty looks of an imputer of the same size, and a
// look in training costs three: with sixteen uses and a prior of a quarter of
// the size, drawing is below a fifth of training.
func DefaultPool() PoolConfig { return PoolConfig{Size: 4096, Uses: 16, Batch: 256} }

// Validate reports everything wrong with c.
func (c PoolConfig) Validate() error {
	if c.Size < 1 || c.Uses < 1 || c.Batch < 1 {
		return fmt.Errorf("size is %d, uses %d and batch %d, must be positive", c.Size, c.Uses, c.Batch)
	}
	return nil
}

// Item is a window with one partition of it.
type Item struct {
	Ref       samples.Ref
	Partition Partition
}

// Pool hands out partitions of training windows, drawn in large batches by a
// goroutine of its own while the receiver trains.
//
// It works in generations. Each goes once through windows in random order, as
// many as its size, and is handed out Uses times in a new order each time
// while the next one is drawn. So no partition is older than its generation or
// used more often than that, and item n is a function of n, of the seed and of
// the strategy: it does not matter how fast either side is. Where the receiver
// is faster, Next waits.
//
// A Pool is for one receiver.
type Pool struct {
	from   Windows
	cfg    PoolConfig
	stream noise.Stream

	drawn   chan generation
	current generation
	order   []int
	next    uint64 // number of the item to be handed out

	stop    context.CancelFunc
	wait    sync.WaitGroup
	started time.Time
	mu      sync.Mutex // guards what follows
	busy    time.Duration
	waited  time.Duration
	count   int
}

type generation struct {
	number uint64
	items  []Item
	err    error
}

// Windows are what a pool hands out, and how they are split.
type Windows struct {
	Data samples.Train
	Refs []samples.Ref
	By   Partitioner
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
	cfg.Size = min(cfg.Size, len(from.Refs))
	p := &Pool{from: from, cfg: cfg, stream: stream, next: first, drawn: make(chan generation), started: time.Now()}
	ctx, p.stop = context.WithCancel(ctx)
	number := first / (uint64(cfg.Size) * uint64(cfg.Uses))
	p.wait.Go(func() { p.run(ctx, number) })
	return p, nil
}

// Next returns the next item. After an error it returns the same error again.
func (p *Pool) Next(ctx context.Context) (Item, error) {
	perGeneration := uint64(p.cfg.Size) * uint64(p.cfg.Uses)
	number, at := p.next/perGeneration, p.next%perGeneration
	if p.current.items == nil || p.current.number != number {
		if err := p.receive(ctx); err != nil {
			return Item{}, err
		}
	}
	if round := at / uint64(p.cfg.Size); p.order == nil || at%uint64(p.cfg.Size) == 0 {
		p.order = p.stream.Sub(number).Sub(poolOrder).Rand(round).Perm(p.cfg.Size)
	}
	item := p.current.items[p.order[at%uint64(p.cfg.Size)]]
	p.next++
	p.mu.Lock()
	p.count++
	p.mu.Unlock()
	return item, nil
}

// receive takes the next generation from the goroutine.
func (p *Pool) receive(ctx context.Context) error {
	if p.current.err != nil {
		return p.current.err
	}
	began := time.Now()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case g, ok := <-p.drawn:
		if !ok {
			return errors.New("partition pool: closed")
		}
		p.current = g
	}
	p.mu.Lock()
	p.waited += time.Since(began)
	p.mu.Unlock()
	return p.current.err
}

// Close ends the goroutine and waits for it.
func (p *Pool) Close() {
	p.stop()
	p.wait.Wait()
}

// PoolUse is what a pool cost so far.
type PoolUse struct {
	Items       int     `json:"items"`         // handed out
	DrawSeconds float64 `json:"draw_seconds"`  // in which partitions were drawn, beside the training or not
	WaitSeconds float64 `json:"wait_seconds"`  // in which the receiver waited for them
	ShareOfTime float64 `json:"share_of_time"` // of drawing in the time since the pool began
	WaitShare   float64 `json:"wait_share"`    // of waiting in it
	Uses        int     `json:"uses"`          // of each partition
	Size        int     `json:"size"`          // partitions in a generation
	Strategy    string  `json:"strategy"`
}

// Use returns what the pool cost so far. It may be called from any goroutine.
func (p *Pool) Use() PoolUse {
	p.mu.Lock()
	defer p.mu.Unlock()
	whole := time.Since(p.started).Seconds()
	return PoolUse{
		Items: p.count, DrawSeconds: p.busy.Seconds(), WaitSeconds: p.waited.Seconds(),
		ShareOfTime: p.busy.Seconds() / whole, WaitShare: p.waited.Seconds() / whole,
		Uses: p.cfg.Uses, Size: p.cfg.Size, Strategy: p.from.By.Name(),
	}
}

// Streams below that of a generation.
const (
	poolSplit = iota
	poolOrder
)

// run draws one generation after the other, one ahead of the receiver.
func (p *Pool) run(ctx context.Context, number uint64) {
	defer close(p.drawn)
	for ; ; number++ {
		began := time.Now()
		g := generation{number: number}
		g.items, g.err = p.draw(ctx, number)
		p.mu.Lock()
		p.busy += time.Since(began)
		p.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case p.drawn <- g:
		}
		if g.err != nil {
			return
		}
	}
}

// draw splits the windows of a generation. A pass through all windows is one
// shuffle of them, however many generations it takes.
func (p *Pool) draw(ctx context.Context, number uint64) ([]Item, error) {
	items := make([]Item, p.cfg.Size)
	all := uint64(len(p.from.Refs))
	var order []int
	for i := range items {
		k := number*uint64(p.cfg.Size) + uint64(i)
		if order == nil || k%all == 0 {
			order = p.stream.Rand(k / all).Perm(len(p.from.Refs))
		}
		items[i].Ref = p.from.Refs[order[k%all]]
	}
	stream := p.stream.Sub(number).Sub(poolSplit)
	for from := 0; from < len(items); from += p.cfg.Batch {
		part := items[from:min(from+p.cfg.Batch, len(items))]
		patches := make([]samples.Patch, len(part))
		for i, item := range part {
			patches[i] = p.from.Data.Cut(item.Ref)
		}
		split, err := p.from.By.Partition(ctx, patches, stream.Sub(uint64(from)))
		if err != nil {
			return nil, fmt.Errorf("partition pool: generation %d: %w", number, err)
		}
		for i := range part {
			part[i].Partition = split[i]
		}
	}
	return items, nil
}
