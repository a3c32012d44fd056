package retrain

import (
	"bufio"
	"context"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"sync"

	"lacuna/pipeline/trusted"
)

// deviceMemory watches how much memory of the graphics card is in use, by this
// process and whatever else runs there.
type deviceMemory struct {
	stop func()

	mu        sync.Mutex
	peakBytes int64
}

// watchDevice starts nvidia-smi. Where that is missing, or ends, the peak stays
// unknown.
func watchDevice(ctx context.Context) *deviceMemory {
	m := &deviceMemory{}
	ctx, cancel := context.WithCancel(ctx)
	m.stop = cancel
	// Twice a second: the short peaks of a compiler count too.
	program, err := trusted.Program("nvidia-smi")
	if err != nil {
		return m
	}
	cmd := exec.CommandContext(ctx, program, "--query-gpu=memory.used", "--format=csv,noheader,nounits", "--loop-ms=500")
	out, err := cmd.StdoutPipe()
	if err != nil || cmd.Start() != nil {
		return m
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m.read(out)
		_ = cmd.Wait() // it ends by being killed
	}()
	m.stop = func() { cancel(); <-ended }
	return m
}

// read reads numbers of MiB, a line each.
func (m *deviceMemory) read(r io.Reader) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		mib, err := strconv.ParseInt(strings.TrimSpace(lines.Text()), 10, 64)
		if err != nil {
			continue
		}
		m.mu.Lock()
		m.peakBytes = max(m.peakBytes, mib<<20)
		m.mu.Unlock()
	}
}

// peak returns the largest use, 0 where it is not known.
func (m *deviceMemory) peak() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.peakBytes
}
