package main

import (
	"bytes"
	"log/slog"
	"regexp"
	"testing"
)

func TestConsoleWritesForPeople(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(newConsole(&b, slog.LevelInfo)).With("dataset", "sea", "component", "fetch")
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
