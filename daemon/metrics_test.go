package daemon

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// The figures of the metrics come from a real run.
func TestMetricsOfARunShowItsWork(t *testing.T) {
	b := newBench(t)
	deliverDays(t, b, 2)
	d := b.daemon(t)
	stop := start(t, d)
	defer stop()
	scrape := func() string {
		if d.Addr() == "" {
			return ""
		}
		r, err := http.Get("http://" + d.Addr() + "/metrics")
		if err != nil {
			return "" // the port is bound, but the page is not served yet
		}
		defer r.Body.Close()
		text, _ := io.ReadAll(r.Body)
		return string(text)
	}
	text := ""
	until(t, "two announced products", func() bool {
		text = scrape()
		return strings.Contains(text, `lacuna_granules{dataset="sea",state="announced"} 2`) &&
			strings.Contains(text, `lacuna_last_poll_timestamp_seconds{dataset="sea"}`) // a poll ends after its granules were handed on
	})
	for _, want := range []string{
		`lacuna_queue_granules{dataset="sea"} 0`, `lacuna_stage_duration_seconds_count{dataset="sea",stage="analyse"} 2`,
		`lacuna_coverage_ratio{dataset="sea",when="after"} 1`, `lacuna_publish_backlog{sink="disk"} 0`, `lacuna_disk_free_bytes{folder="state"}`,
		`lacuna_lag_seconds{dataset="sea"}`, "lacuna_ready 1",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
}
