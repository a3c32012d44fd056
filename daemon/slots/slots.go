// Package slots bounds how much is done at a time, whoever asks, and leaves a
// place to what cannot wait.
//
// It knows nothing of datasets and granules: to it work is a function.
package slots

import "context"

// Slots bound how much is done at a time. One slot is left to work that somebody
// waits for. Nil slots bound nothing.
type Slots struct{ all, patient chan struct{} }

// New returns n slots, at least two.
func New(n int) *Slots {
	n = max(n, 2)
	return &Slots{all: make(chan struct{}, n), patient: make(chan struct{}, n-1)}
}

// Within calls work when there is a slot for it; urgent says that somebody waits
// for it.
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
