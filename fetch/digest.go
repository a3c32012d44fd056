package fetch

import "io"

// Digested is a reader that knows the SHA-256 of its whole object, in
// lower-case hex, wherever it began: some hosts say it with the bytes and not
// in a listing. It is asked when the reader has ended; empty: not known.
type Digested interface {
	Digest() string
}

// digestOf returns the hash that r knows; empty: none.
func digestOf(r io.Reader) string {
	if d, ok := r.(Digested); ok {
		return d.Digest()
	}
	return ""
}

// Digest returns the hash that the reader below knows.
func (s *slotReader) Digest() string { return digestOf(s.ReadCloser) }

// Digest returns the hash that the reader below knows.
func (r *loggedReader) Digest() string { return digestOf(r.ReadCloser) }

// Digest returns the hash that the reader below knows.
func (w *watchedReader) Digest() string { return digestOf(w.ReadCloser) }

// Digest returns the hash that the last reader knows.
func (s *resumed) Digest() string { return digestOf(s.src) }
