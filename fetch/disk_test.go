package fetch

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestIntakeStopsBeforeTheDiskFloorAndSaysSoOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		b := newBench(t, func(c *Config, p *Parts) {
			c.DiskFloor, c.Parallel = Floor{Bytes: 1000}, 1
			p.Log = slog.New(slog.NewTextHandler(&log, nil))
		})
		var cleaned atomic.Bool
		b.parts.Spool.room.space = func(string) (uint64, uint64, error) {
			switch {
			case cleaned.Load():
				return 1001, 1 << 20, nil
			case b.archive.reads() > 0: // a.nc is on the disk
				return 1000, 1 << 20, nil
			}
			return 1005, 1 << 20, nil
		}
		b.archive.put("a.nc", "12345", longAgo())
		b.archive.put("b.nc", "6", longAgo())
		out := make(chan Granule)
		go func() { _ = b.Run(t.Context(), out) }()
		wantWhole(t, <-out, "12345")
		time.Sleep(10 * b.cfg.PollInterval)
		synctest.Wait()
		if s := b.State(); !s.DiskFull || b.archive.reads() != 1 {
			t.Errorf("State() = %+v after %d reads, want a full disk and one", s, b.archive.reads())
		}
		if strings.Count(log.String(), "disk is full") != 1 || len(b.problems) != 0 {
			t.Errorf("want one complaint, and none that blames an object:\n%s", &log)
		}
		cleaned.Store(true)
		wantWhole(t, <-out, "6")
		synctest.Wait()
		if b.State().DiskFull || !strings.Contains(log.String(), "disk has room") {
			t.Errorf("State() = %+v once there is room:\n%s", b.State(), &log)
		}
	})
}

func TestDownloadsUnderWayShareTheRoom(t *testing.T) {
	r := room{space: func(string) (uint64, uint64, error) { return 100, 1000, nil }}
	first, err := r.take("", 40, Floor{Share: 0.02})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.take("", 41, Floor{Share: 0.02}); !errors.Is(err, ErrDiskFloor) || !errors.Is(err, ErrSpool) {
		t.Errorf("41 bytes beside 40 with 20 to stay free of 100: %v, want ErrDiskFloor", err)
	}
	if _, err := r.take("", 40, Floor{Share: 0.02}); err != nil {
		t.Errorf("40 bytes beside 40: %v", err)
	}
	first.release()
	first.release()
	if r.promised != 40 {
		t.Errorf("%d bytes are promised after the first was given back, want 40", r.promised)
	}
}

func TestFloorIsWrittenAsItIsRead(t *testing.T) {
	for text, want := range map[string]Floor{
		"0": {}, "1GiB": {Bytes: 1 << 30}, "1.5 GiB": {Bytes: 3 << 29}, "20GB": {Bytes: 20e9}, "5%": {Share: 0.05}, "123": {Bytes: 123},
	} {
		var f, again Floor
		if err := f.UnmarshalText([]byte(text)); err != nil || f != want {
			t.Errorf("%q reads as %+v, %v; want %+v", text, f, err, want)
		}
		if err := again.UnmarshalText([]byte(f.String())); err != nil || again != f {
			t.Errorf("%q is written as %q, which reads as %+v, %v", text, f, again, err)
		}
	}
	for _, text := range []string{"", "lots", "-1GiB", "100%", "-1%", "1e300GiB", "NaN%"} {
		if err := new(Floor).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}
