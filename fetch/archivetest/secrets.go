package archivetest

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"lacuna/fetch"
)

// KeepSecrets lists archive and opens something on it, behind all decorators
// and with every line logged, and fails the test where an error, a line or the
// archive itself as text holds one of planted. The archive should talk to a
// host that echoes its input.
func KeepSecrets(t *testing.T, archive fetch.Archive, planted ...string) {
	t.Helper()
	var lines bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&lines, &slog.HandlerOptions{Level: slog.LevelDebug}))
	cfg := fetch.DefaultPolitenessConfig()
	cfg.Retry = fetch.RetryConfig{Attempts: 2, Base: time.Millisecond, Max: time.Second}
	guarded, err := fetch.NewPolite(archive, cfg, log)
	if err != nil {
		t.Fatal(err)
	}
	_, listErr := guarded.List(t.Context(), fetch.Scope{Prefixes: []string{"2024/"}})
	src, openErr := guarded.Open(t.Context(), fetch.Object{Name: "2024/a.nc", Size: 10, ModTime: base()}, 5)
	if openErr == nil {
		src.Close()
	}
	if listErr == nil {
		t.Error("the host was meant to fail, so that there is something to show")
	}
	log.Warn("poll failed", "err", listErr, "open_err", openErr, "state", guarded.State())
	shown := fmt.Sprintf("%s\n%v\n%+v\n%#v\n%v\n%+v\n%+v\n%#v", lines.String(), listErr, listErr, listErr, openErr, openErr,
		guarded.State(), archive)
	for _, secret := range planted {
		if i := strings.Index(shown, secret); i >= 0 {
			t.Errorf("a secret is shown: ...%s...", shown[max(0, i-80):min(len(shown), i+len(secret)+20)])
		}
	}
}
