package supervise

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A stage that panics, one that fails and one that hangs are named and started
// again, and the one beside them does not notice.
func TestStageThatEndsIsNamedAndStartedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		v := New(slog.New(slog.NewTextHandler(&log, nil)), func(error) bool { return false })
		heartbeats := NewHeartbeats(time.Now)
		intake, stop := context.WithCancel(t.Context())
		runs := map[string]int{}
		var mu sync.Mutex
		count := func(name string) int {
			mu.Lock()
			defer mu.Unlock()
			runs[name]++
			return runs[name]
		}
		slow := heartbeats.Add("slow", time.Minute)
		stages := []Stage{
			Lasting("panics", nil, func(ctx context.Context) error {
				if count("panics") < 4 {
					panic("index out of range")
				}
				<-ctx.Done()
				return nil
			}),
			Lasting("fails", nil, func(ctx context.Context) error {
				if count("fails") < 3 {
					return errors.New("no space left")
				}
				<-ctx.Done()
				return nil
			}),
			{Name: "slow", Heartbeat: slow, Run: func(intake, work context.Context) error {
				if count("slow") == 1 {
					slow.Beat()
					<-work.Done() // hangs until the supervisor cancels it
					return work.Err()
				}
				<-intake.Done()
				return nil
			}},
			Lasting("steady", nil, func(ctx context.Context) error { count("steady"); <-ctx.Done(); return nil }),
			Lasting("short", nil, func(context.Context) error { count("short"); return nil }),
		}
		ended := make(chan error, len(stages))
		for _, s := range stages {
			go func() { ended <- v.Keep(intake, t.Context(), s) }()
		}
		time.Sleep(10 * time.Minute)
		stop()
		for range stages {
			if err := <-ended; err != nil {
				t.Errorf("a stage ended with %v", err)
			}
		}
		if want := "map[fails:3 panics:4 short:1 slow:2 steady:1]"; fmt.Sprint(runs) != want {
			t.Errorf("starts %v, want %s", runs, want)
		}
		for _, want := range []string{"stage=panics", "index out of range", "stage=fails", "no space left", "stage=slow", "no sign of life"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log lacks %q", want)
			}
		}
		if strings.Contains(log.String(), "steady") || strings.Contains(log.String(), "short") {
			t.Errorf("the log names stages that are well:\n%s", log.String())
		}
	})
}

func TestAFatalFailureEndsAStage(t *testing.T) {
	errBroken := errors.New("broken beyond repair")
	v := New(slog.New(slog.DiscardHandler), func(err error) bool { return errors.Is(err, errBroken) })
	err := v.Keep(t.Context(), t.Context(), Lasting("x", nil, func(context.Context) error {
		return fmt.Errorf("check: %w", errBroken)
	}))
	if !errors.Is(err, errBroken) {
		t.Errorf("Keep() = %v", err)
	}
}

func TestAStageThatIsSilentAtWorkHangs(t *testing.T) {
	now := time.Date(2026, 11, 15, 0, 0, 0, 0, time.UTC)
	v := NewHeartbeats(func() time.Time { return now })
	quick, slow := v.Add("quick", time.Minute), v.Add("slow", time.Hour)
	quick.Beat()
	slow.Beat()
	for _, step := range []struct {
		name  string
		after time.Duration
		do    func()
		want  string
	}{
		{"within its limit", time.Minute, nil, ""},
		{"beyond it", time.Second, nil, "quick"},
		{"it moves again", 0, quick.Beat, ""},
		{"who waits may be silent", 50 * time.Minute, quick.Rest, ""},
		{"the slow one has its own limit", 10 * time.Minute, nil, "slow"},
	} {
		if step.do != nil {
			step.do()
		}
		now = now.Add(step.after)
		if got := v.Hung(); got != step.want {
			t.Errorf("%s: %q hangs, want %q", step.name, got, step.want)
		}
	}
	(*Heartbeats)(nil).Add("of nobody", time.Hour).Beat()
}
