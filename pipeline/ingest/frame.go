package ingest

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// The child answers with frames: a kind, a length in eight bytes and a
// payload. A whole answer is a header, the numbers of each variable of the
// plan in as many frames as the child likes, and an end; or, at any point, a
// failure.
const (
	frameHeader  = 'H'
	frameNumbers = 'N'
	frameFailure = 'F'
	frameEnd     = 'E'
)

// Limits on the parts of an answer that the parent keeps. A header is text
// that library.go bounds too; a failure is two sentences.
const (
	maxHeaderBytes  = 16 << 20
	maxFailureBytes = 64 << 10
)

// errNonsense marks an answer that breaks the protocol.
var errNonsense = errors.New("the answer of the decoding child breaks the protocol")

// A failure is an error on its way through the pipe.
type failure struct {
	Problem, Remedy string // fields of a *BadGranule
	Ours            string // message of any other error
}

func writeFrame(w io.Writer, kind byte, payload []byte) error {
	head := binary.LittleEndian.AppendUint64([]byte{kind}, uint64(len(payload)))
	if _, err := w.Write(head); err != nil {
		return fmt.Errorf("write frame: %w", err)
	}
	if _, err := w.Write(payload); err != nil {
		return fmt.Errorf("write frame: %w", err)
	}
	return nil
}

func writeFailure(w io.Writer, err error) error {
	f := failure{Ours: err.Error()}
	if b := (*BadGranule)(nil); errors.As(err, &b) {
		f = failure{Problem: b.Problem, Remedy: b.Remedy}
	}
	payload, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("encode failure: %w", err)
	}
	return writeFrame(w, frameFailure, payload)
}

// receive reads the answer of a child to req. It allocates no more than
// maxHeaderBytes and, for the numbers, the memory limit of req.
func receive(r io.Reader, req request) (*extract, error) {
	payload, err := expect(r, frameHeader, maxHeaderBytes)
	if err != nil {
		return nil, err
	}
	h := new(header)
	if err := json.Unmarshal(payload, h); err != nil {
		return nil, fmt.Errorf("%w: decode header: %w", errNonsense, err)
	}
	p, err := req.plan(h)
	if err != nil {
		return nil, err
	}
	x := &extract{header: h, plan: p, raw: make(map[int][]byte, len(p.reads))}
	for _, v := range p.reads {
		raw := make([]byte, int(h.Bytes(v)))
		clear(raw) // the kernel finds the pages while the child decodes, not while it waits for us
		if err := receiveNumbers(r, raw); err != nil {
			return nil, fmt.Errorf("variable %s: %w", h.Vars[v].Name, err)
		}
		x.raw[v] = raw
	}
	if _, err := expect(r, frameEnd, 0); err != nil {
		return nil, err
	}
	return x, nil
}

// receiveNumbers fills dst from one frame or more.
func receiveNumbers(r io.Reader, dst []byte) error {
	for len(dst) > 0 {
		n, err := expectHead(r, frameNumbers, len(dst))
		if err != nil {
			return err
		}
		if n == 0 {
			return fmt.Errorf("%w: empty frame", errNonsense)
		}
		if _, err := io.ReadFull(r, dst[:n]); err != nil {
			return fmt.Errorf("read numbers: %w", err)
		}
		dst = dst[n:]
	}
	return nil
}

// expect reads a frame of the given kind.
func expect(r io.Reader, kind byte, limit int) ([]byte, error) {
	n, err := expectHead(r, kind, limit)
	if err != nil {
		return nil, err
	}
	payload := make([]byte, n)
	if _, err := io.ReadFull(r, payload); err != nil {
		return nil, fmt.Errorf("read frame: %w", err)
	}
	return payload, nil
}

// expectHead reads the head of a frame of the given kind and returns its
// length. A failure in its place becomes the error.
func expectHead(r io.Reader, kind byte, limit int) (int, error) {
	var head [9]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, fmt.Errorf("read frame: %w", err)
	}
	n := binary.LittleEndian.Uint64(head[1:])
	if head[0] == frameFailure && n <= maxFailureBytes {
		return 0, receiveFailure(r, int(n))
	}
	if head[0] != kind || n > uint64(limit) {
		return 0, fmt.Errorf("%w: frame %q of %d bytes where %q of at most %d belongs", errNonsense, head[0], n, kind, limit)
	}
	return int(n), nil
}

func receiveFailure(r io.Reader, n int) error {
	payload := make([]byte, n)
	if _, err := io.ReadFull(r, payload); err != nil {
		return fmt.Errorf("read failure: %w", err)
	}
	var f failure
	if err := json.Unmarshal(payload, &f); err != nil {
		return fmt.Errorf("%w: decode failure: %w", errNonsense, err)
	}
	if f.Problem != "" {
		return bad(f.Problem, f.Remedy)
	}
	return fmt.Errorf("decoding child: %s", f.Ours)
}
