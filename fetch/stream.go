package fetch

import (
	"context"
	"encoding/hex"
	"sync"
)

const (
	// ringBytes is the memory of a download: a few steps for each of the three who
	// work on it, so that none waits for another.
	ringBytes = 2 << 20
	// stepBytes is the most that is hashed or written at a time: enough that
	// system calls do not count, little enough to stay in the processor's cache.
	stepBytes = 512 << 10
)

// A stream takes the bytes of a download from the archive to the part, by way of
// a ring. The caller puts bytes into it, one goroutine hashes them and another
// writes them, each behind the one before:
//
//	written ≤ hashed ≤ read ≤ written + length of the ring
//
// The slowest of the three sets the pace, and the others wait for it. On a slow
// line every byte is hashed and written as it comes. While the part belongs to
// a stream nobody else may use it.
type stream struct {
	part   *part
	ring   []byte
	onDisk func(n int)             // told of bytes in the file
	stop   context.CancelCauseFunc // ends the reading when the disk has failed
	ending sync.WaitGroup

	mu                    sync.Mutex // guards the fields below
	moved                 sync.Cond  // told of every change of them
	read, hashed, written int64      // bytes, from the beginning of the stream
	over                  bool       // no more bytes come
	due                   note       // the next note
	err                   error      // of the disk
}

// note is what a part is to remember when at bytes of a stream are in the file.
type note struct {
	at  int64
	sum string // SHA-256 of the object up to there
}

// newStream starts the goroutines, which end by end.
func newStream(p *part, onDisk func(int), stop context.CancelCauseFunc) *stream {
	ring := make([]byte, min(ringBytes, max(1, p.object.Size-p.written+1))) // one byte more shows that an object has grown
	s := &stream{part: p, ring: ring, onDisk: onDisk, stop: stop}
	s.moved.L = &s.mu
	s.ending.Go(s.hash)
	s.ending.Go(s.write)
	return s
}

// room returns the place for the next bytes, which is never empty.
func (s *stream) room() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.read == s.written+int64(len(s.ring)) {
		s.moved.Wait()
	}
	return s.span(s.read, s.written+int64(len(s.ring)))
}

// span returns the bytes of the ring from one position to another, or to its end.
func (s *stream) span(from, to int64) []byte {
	first := int(from % int64(len(s.ring)))
	return s.ring[first:min(first+int(to-from), len(s.ring))]
}

// filled says that n bytes more lie in the room.
func (s *stream) filled(n int) { s.move(func() { s.read += int64(n) }) }

// move changes the state of the stream.
func (s *stream) move(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	s.moved.Broadcast()
}

// end returns when all bytes are hashed and in the file, or with the error of
// the disk.
func (s *stream) end() error {
	s.move(func() { s.over = true })
	s.ending.Wait()
	return s.err
}

// hash brings the bytes into the hashes of the part.
func (s *stream) hash() {
	p := s.part
	var noted int64
	for at := int64(0); ; {
		b := s.unhashed()
		if len(b) == 0 {
			return
		}
		p.sha.Write(b)
		if p.object.MD5 != "" {
			p.md5.Write(b)
		}
		at += int64(len(b))
		due := note{}
		if at-noted >= noteEvery {
			due = note{at, hex.EncodeToString(p.sha.Sum(nil))}
			noted = at
		}
		s.move(func() {
			s.hashed = at
			if due.sum != "" { // the one before is written: the ring is shorter than noteEvery
				s.due = due
			}
		})
	}
}

// unhashed waits for bytes to hash; none: all are hashed.
func (s *stream) unhashed() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.hashed == s.read && !s.over {
		s.moved.Wait()
	}
	return s.span(s.hashed, min(s.read, s.hashed+stepBytes))
}

// write brings the bytes into the file of the part. After a failure of the disk
// it takes what still comes and drops it.
func (s *stream) write() {
	for at := int64(0); ; {
		b, due := s.unwritten()
		if len(b) == 0 {
			return
		}
		at += int64(len(b))
		if s.err == nil { // nobody else changes it
			err := s.part.append(b)
			if err == nil && at == due.at {
				err = s.part.remember(due.sum)
			}
			if err == nil {
				s.onDisk(len(b))
			} else {
				s.stop(err)
				s.move(func() { s.err = err })
			}
		}
		s.move(func() { s.written = at })
	}
}

// unwritten waits for bytes to write, which end where a note is due; none: all
// are written.
func (s *stream) unwritten() ([]byte, note) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.written == s.hashed && (!s.over || s.hashed != s.read) {
		s.moved.Wait()
	}
	to := min(s.hashed, s.written+stepBytes)
	if s.due.at > s.written {
		to = min(to, s.due.at)
	}
	return s.span(s.written, to), s.due
}
