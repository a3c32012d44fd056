package jobs

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lacuna/pipeline/lab/tables"
)

func TestALongPhaseSaysEveryHalfMinuteHowLongItStillTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		told := teller{job: "pacific", log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{
			ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			},
		}))}
		for step := 400; step <= 410; step++ { // a training that goes on from a checkpoint
			told.tell(tables.Progress{Name: "ours", Phase: "imputer", Step: step, Steps: 500, Rows: 3})
			time.Sleep(8 * time.Second)
		}
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		want := []string{"msg=doing", "step=404 of=500 left=\"13 min\"", "step=408 of=500 left=\"12 min\""}
		if len(lines) != len(want) {
			t.Fatalf("%d lines, want %d:\n%s", len(lines), len(want), log.String())
		}
		for i, w := range want {
			if !strings.Contains(lines[i], w) {
				t.Errorf("line %q, want it to have %q", lines[i], w)
			}
		}
	})
}
