package fetch_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"lacuna/fetch"
	archive "lacuna/fetch/http"

	"golang.org/x/sync/errgroup"
)

// BenchmarkDownloadAgainstCurl brings 200 MB over loopback into the spool,
// hashed and synced, and lets curl write the same object to the same disk,
// neither hashed nor synced.
func BenchmarkDownloadAgainstCurl(b *testing.B) { againstCurl(b, 1, 200_000_000, 0) }

// BenchmarkLinkAgainstCurl brings it by a link of 2 Gbit/s, as a machine near an archive
// has it: what our hash and sync take beyond the transfer is what can be seen.
func BenchmarkLinkAgainstCurl(b *testing.B) { againstCurl(b, 1, 200_000_000, 250_000_000) }

// BenchmarkParallelAgainstCurl brings four objects of 50 MB at a time, and lets
// curl do the same with --parallel.
func BenchmarkParallelAgainstCurl(b *testing.B) { againstCurl(b, 4, 50_000_000, 0) }

// againstCurl compares rounds in which each comes first by turns. The metric
// ours/curl, of the medians, is below 1 where we are faster; fastest, of the
// fastest rounds, is what remains on a busy machine, for other work only ever
// adds. What a round has written is removed before the next, so that nobody pays
// for the dirty pages of the other. A rate, in bytes a second, is that of the link of each
// object; 0: none.
func againstCurl(b *testing.B, count, size, rate int) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		b.Skip("curl is not installed")
	}
	a, objects, url := serve(b, count, bytes.Repeat([]byte("0123456789abcdef"), size/16), rate)
	bring := func(dir string) error {
		spool := fetch.NewSpool(dir)
		group, ctx := errgroup.WithContext(b.Context())
		for _, o := range objects {
			group.Go(func() error {
				_, err := spool.Bring(ctx, fetch.Download{Archive: a, Object: o})
				return err
			})
		}
		return group.Wait()
	}
	runCurl := func(dir string) error {
		args := []string{"-sS", "--parallel"}
		for _, o := range objects {
			args = append(args, "-o", filepath.Join(dir, o.Name), url+o.Name)
		}
		return exec.CommandContext(b.Context(), curl, args...).Run()
	}
	timed := func(do func(dir string) error) float64 {
		dir := b.TempDir()
		defer os.RemoveAll(dir)
		begun := time.Now()
		if err := do(dir); err != nil {
			b.Fatal(err)
		}
		return time.Since(begun).Seconds()
	}
	var ours, theirs []float64
	b.SetBytes(2 * int64(count*size))
	for b.Loop() {
		if len(ours)%2 == 0 {
			ours = append(ours, timed(bring))
			theirs = append(theirs, timed(runCurl))
		} else {
			theirs = append(theirs, timed(runCurl))
			ours = append(ours, timed(bring))
		}
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	middle := len(ours) / 2
	b.ReportMetric(ours[middle]*1e3, "ours-ms")
	b.ReportMetric(theirs[middle]*1e3, "curl-ms")
	b.ReportMetric(ours[middle]/theirs[middle], "ours/curl")
	b.ReportMetric(ours[0]/theirs[0], "fastest")
}

// serve serves a number of objects with one content, as an archive and by curl.
func serve(b *testing.B, count int, content []byte, rate int) (a *archive.Archive, objects []fetch.Object, url string) {
	modified := time.Date(2024, 5, 17, 0, 0, 0, 0, time.UTC)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			for i := range count {
				fmt.Fprintf(w, `<a href="%d.nc">%d.nc</a> `, i, i)
			}
			return
		}
		w.Header().Set("ETag", `"v1"`)
		http.ServeContent(w, r, "a.nc", modified, &link{Reader: bytes.NewReader(content), rate: rate})
	}))
	b.Cleanup(server.Close)
	cfg := archive.DefaultConfig()
	cfg.URL = server.URL + "/"
	a, err := archive.New(cfg, fetch.Politeness{UserAgent: "lacuna/test"})
	if err != nil {
		b.Fatal(err)
	}
	objects, err = a.List(b.Context(), fetch.Scope{})
	if err != nil || len(objects) != count {
		b.Fatalf("List() = %v, %v", objects, err)
	}
	return a, objects, cfg.URL
}

// A link gives its content at a rate.
type link struct {
	*bytes.Reader
	rate  int // bytes a second; 0: as fast as it is read
	begun time.Time
	sent  int
}

func (l *link) Read(p []byte) (int, error) {
	if l.rate > 0 {
		if l.sent == 0 {
			l.begun = time.Now()
		}
		time.Sleep(time.Until(l.begun.Add(time.Duration(float64(l.sent) / float64(l.rate) * float64(time.Second)))))
	}
	n, err := l.Reader.Read(p)
	l.sent += n
	return n, err
}
