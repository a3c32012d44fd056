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

// watchDevice begins to watch with nvidia-smi. Where that is not there, or ends,
// nothing is known.
func watchDevice(ctx context.Context) *deviceMemory {
	m := &deviceMemory{}
	ctx, cancel := context.WithCancel(ctx)
	m.stop = cancel
	// Twice a second: what a compiler takes for a moment counts too.
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

// read takes numbers of MiB, a line each.
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

// peak returns the most that was in use, 0 where that is not known.
func (m *deviceMemory) peak() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.peakBytes
}
