package cli

import (
	"bytes"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestConsoleWritesForPeople(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(NewConsole(&b, slog.LevelInfo)).With("dataset", "sea", "component", "fetch")
	log.Info("product stored", "granule", "a.nc", "observed_percent", 12.5, "revision", 2)
	log.Warn("poll failed", "retry_in", "1s")
	log.Debug("not for now")
	want := regexp.MustCompile(`^\d\d:\d\d:\d\d product stored  sea  a.nc  observed 12.5 %  revision 2
\d\d:\d\d:\d\d warn poll failed  sea  retry in 1s
$`)
	if !want.Match(b.Bytes()) {
		t.Errorf("console wrote:\n%s", &b)
	}
}

func TestAFileNameCannotWriteALineOrSteerTheTerminal(t *testing.T) {
	const name = "a.nc\n12:00:00 error the ledger is lost"
	for _, hostile := range []string{name, "\x1b[2J\x1b]0;title\x07", "\r\x1b[Aover", "\u202ecn.a", "\u009b31m", "a\x00b", "a\xffb", "two\u2028lines"} {
		var out strings.Builder
		record := slog.NewRecord(time.Now(), slog.LevelWarn, hostile, 0)
		record.Add("granule", hostile, "err", fmt.Errorf("open %s: no such file", hostile), "why", hostile)
		if err := NewConsole(&out, slog.LevelInfo).WithAttrs([]slog.Attr{slog.String("archive", hostile)}).Handle(t.Context(), record); err != nil {
			t.Fatal(err)
		}
		text := strings.TrimSuffix(out.String(), "\n")
		if text == out.String() {
			t.Errorf("%q: the line does not end", hostile)
		}
		for _, r := range text {
			if !strconv.IsPrint(r) || r == utf8.RuneError {
				t.Errorf("of %q the terminal gets %q", hostile, text)
				break
			}
		}
		if n := strings.Count(text, strings.Trim(strconv.Quote(hostile), `"`)); n != 5 {
			t.Errorf("%q is told %d times, want 5: %s", hostile, n, text)
		}
	}
	var out strings.Builder
	slog.New(NewConsole(&out, slog.LevelInfo)).Info("granule spooled", "granule", "Schwarzes Meer_日本.nc", "size_percent", 3.5)
	if !strings.HasSuffix(out.String(), "granule spooled  Schwarzes Meer_日本.nc  size 3.5 %\n") {
		t.Errorf("an ordinary line is %q", out.String())
	}
}
