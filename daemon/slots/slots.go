// Package slots bounds how much is done at a time in the whole service: the
// granules in work, and the decoding children. One slot is always left to urgent
// work.
//
// It does not know datasets or the ledger: work is a function, or a file to be
// decoded.
package slots

import "context"

// Slots bound how much is done at a time. One slot is left to urgent work. Nil
// slots bound nothing.
type Slots struct{ all, patient chan struct{} }

// New returns n slots, at least two.
func New(n int) *Slots {
	n = max(n, 2)
	return &Slots{all: make(chan struct{}, n), patient: make(chan struct{}, n-1)}
}

// Within calls work when there is a slot for it. Only urgent work may take the
// last one.
func (s *Slots) Within(ctx context.Context, urgent bool, work func() error) error {
	if s == nil {
		return work()
	}
	take := []chan struct{}{s.all}
	if !urgent {
		take = []chan struct{}{s.patient, s.all}
	}
	for _, slot := range take {
		select {
		case slot <- struct{}{}:
			defer func() { <-slot }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return work()
}
