package ingest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"syscall"

	"lacuna/pipeline/ingest/ncfile"
	"lacuna/pipeline/ingest/sandbox"

	"golang.org/x/sys/unix"
)

// socketDescriptor is where the child is given the file: the first descriptor
// after standard error. A descriptor, because no name may reach the path
// parser of netCDF-C; through a socket, because the child may be running
// before there is a file.
const socketDescriptor = 3

// The tasks of a child.
const (
	wantGranule   = "granule"
	wantSea       = "sea"
	wantPoints    = "points"
	wantIsolation = "isolation"
)

// A request is the parent's message to the child, on standard input.
type request struct {
	Want        string
	Name        string // file name, which may hold a date; never opened
	Options     Options
	FileBytes   int64
	MemoryBytes int64
	CPUSeconds  uint64
}

// plan checks a header and plans the reading that the request asks for.
func (r request) plan(h *header) (*plan, error) {
	if err := h.Check(); err != nil {
		return nil, bad("its header contradicts itself: "+err.Error(), "the file is probably damaged: "+again)
	}
	var p *plan
	var err error
	switch r.Want {
	case wantSea:
		p, err = planSea(h)
	case wantPoints:
		p, err = planPoints(h)
	default:
		p, err = planGranule(h, r.Name, r.Options)
	}
	if err != nil {
		return nil, err
	}
	return p, p.check(h, r.MemoryBytes, r.FileBytes)
}

// RunChild does the work of the decoding child and ends the process. It confines
// the process for good, reads the request from stdin, decodes the file that it is
// given and writes the answer to stdout. It exits without the usual clean-up of
// a program: the race detector, for one, would wait a second.
func RunChild(stdin io.Reader, stdout io.Writer) {
	// HDF5 keeps its error settings by thread: netCDF-C silences the first
	// thread only, and on any other each failed look-up prints a page.
	runtime.LockOSThread()
	ncfile.WarmUp()
	state, err := sandbox.Restrict()
	if err == nil {
		err = serve(stdin, stdout, state)
	}
	if err != nil && writeFailure(stdout, err) != nil {
		syscall.Exit(1)
	}
	syscall.Exit(0)
}

func serve(stdin io.Reader, stdout io.Writer, state sandbox.State) error {
	var req request
	if err := json.NewDecoder(stdin).Decode(&req); err != nil {
		return fmt.Errorf("decode request: %w", err)
	}
	fd, err := receiveFile()
	if err != nil {
		return err
	}
	if err := limitProcess(req); err != nil {
		return err
	}
	if req.Want == wantIsolation {
		return sendIsolation(stdout, state.Probe())
	}
	m, err := ncfile.Map(fd, req.FileBytes)
	if err != nil {
		return err
	}
	defer func() { _ = m.Close() }() // read-only: a failed close loses nothing
	return send(stdout, m, req)
}

// receiveFile returns the descriptor that the parent sends.
func receiveFile() (int, error) {
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(socketDescriptor, make([]byte, 1), oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("receive descriptor: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil {
		return -1, fmt.Errorf("receive descriptor: %w", err)
	}
	for _, m := range messages {
		if fds, err := unix.ParseUnixRights(&m); err == nil && len(fds) == 1 {
			return fds[0], nil
		}
	}
	return -1, errors.New("receive descriptor: the parent sent none")
}

// limitProcess bounds memory and CPU time, and forbids core dumps and writing
// files. Package sandbox takes away everything else a decoder does not need.
func limitProcess(req request) error {
	for _, l := range []struct {
		name     string
		resource int
		limit    uint64
		hard     uint64
	}{
		// Not the address space: the Go runtime reserves far more than it uses.
		{"memory", unix.RLIMIT_DATA, uint64(req.MemoryBytes), uint64(req.MemoryBytes)},
		// The soft limit comes a second before the kill, so that the runtime can
		// report it.
		{"CPU time", unix.RLIMIT_CPU, req.CPUSeconds, req.CPUSeconds + 1},
		{"core size", unix.RLIMIT_CORE, 0, 0},
		{"file size", unix.RLIMIT_FSIZE, 0, 0},
	} {
		if err := unix.Setrlimit(l.resource, &unix.Rlimit{Cur: l.limit, Max: l.hard}); err != nil {
			return fmt.Errorf("limit %s to %d: %w", l.name, l.limit, err)
		}
	}
	return nil
}

// send decodes a file and writes the frames of the answer. A file that refers
// to others is refused before any of its numbers is read.
func send(w io.Writer, m *ncfile.Image, req request) error {
	if m.Packed() {
		store, err := m.Unpack(req.Options.Group, req.MemoryBytes)
		if err != nil {
			return err
		}
		defer func() { _ = store.Close() }() // read-only: a failed close loses nothing
		req.Options.Group = ""               // it has been taken
		return sendAll(w, store, req)
	}
	if err := m.SelfContained(); err != nil {
		return err
	}
	return sendAll(w, m, req)
}

// sendAll decodes a file that SelfContained has accepted.
func sendAll(w io.Writer, m *ncfile.Image, req request) error {
	lib, err := ncfile.Open(m)
	if err != nil {
		return err
	}
	defer func() { _ = lib.Close() }() // read-only: a failed close loses nothing
	h, err := lib.Header(req.Options.Group)
	if err != nil {
		return err
	}
	p, err := req.plan(h)
	if err != nil {
		return err
	}
	payload, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("encode header: %w", err)
	}
	if len(payload) > maxHeaderBytes {
		return bad(fmt.Sprintf("its header takes %d bytes", len(payload)), "leave it out")
	}
	if err := writeFrame(w, frameHeader, payload); err != nil {
		return err
	}
	for _, v := range p.reads {
		if err := sendNumbers(w, lib, h, v); err != nil {
			return err
		}
	}
	return writeFrame(w, frameEnd, nil)
}

// slabBytes is how much is read before it is sent: enough for the disk and
// the pipe, and little beside the memory limit.
const slabBytes = 8 << 20

// sendNumbers sends the stored numbers of variable v, slab by slab.
func sendNumbers(w io.Writer, lib *ncfile.Library, h *header, v int) error {
	shape := h.Shape(v)
	total := int(h.Bytes(v))
	if total == 0 {
		return nil
	}
	rows := 1
	if len(shape) > 0 {
		rows = shape[0]
	}
	rowBytes := total / rows
	chunk := lib.ChunkRows(v)
	step := max(1, slabBytes/rowBytes)
	step = min(rows, int(math.Ceil(float64(step)/float64(chunk)))*chunk)
	buf := lib.Slab(step * rowBytes)
	for first := 0; first < rows; first += step {
		n := min(step, rows-first)
		slab := buf[:n*rowBytes]
		if err := lib.Read(v, shape, first, n, slab); err != nil {
			return err
		}
		if err := writeFrame(w, frameNumbers, slab); err != nil {
			return err
		}
	}
	return nil
}
