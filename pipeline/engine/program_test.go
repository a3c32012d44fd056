package engine

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestOnlyALongCompilationIsAnnounced(t *testing.T) {
	var said bytes.Buffer
	log := slog.New(slog.NewTextHandler(&said, nil))
	announce(log, "step", time.Hour)()
	if said.Len() > 0 {
		t.Errorf("a short one: %s", said.String())
	}
	done := announce(log, "step", time.Millisecond)
	time.Sleep(200 * time.Millisecond)
	done()
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], `"compiling a network" program=step`) || !strings.Contains(lines[1], "took_seconds=0.") {
		t.Errorf("a long one: %q", lines)
	}
}
