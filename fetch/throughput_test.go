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
func BenchmarkDownloadAgainstCurl(b *testing.B) { againstCurl(b, 1, 200_000_000) }

// BenchmarkParallelAgainstCurl brings four objects of 50 MB at a time, and lets
// curl do the same with --parallel.
func BenchmarkParallelAgainstCurl(b *testing.B) { againstCurl(b, 4, 50_000_000) }

// againstCurl compares the medians of rounds in which each comes first by turns.
// The metric ours/curl is below 1 where we are faster; ours/checked has curl
// followed by sha256sum and sync, for our copy is both hashed and synced. What
// a round has written is removed before the next, so that nobody pays for the
// dirty pages of the other.
func againstCurl(b *testing.B, count, size int) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		b.Skip("curl is not installed")
	}
	a, objects, url := serve(b, count, bytes.Repeat([]byte("0123456789abcdef"), size/16))
	ours := func() time.Duration {
		dir := b.TempDir()
		defer os.RemoveAll(dir)
		defer b.StopTimer()
		b.StartTimer()
		begun := time.Now()
		spool := fetch.NewSpool(dir)
		group, ctx := errgroup.WithContext(b.Context())
		for _, o := range objects {
			group.Go(func() error {
				_, err := spool.Bring(ctx, fetch.Download{Archive: a, Object: o})
				return err
			})
		}
		if err := group.Wait(); err != nil {
			b.Fatal(err)
		}
		return time.Since(begun)
	}
	theirs := func() (plain, checked time.Duration) {
		dir := b.TempDir()
		defer os.RemoveAll(dir)
		args, files := []string{"-sS", "--parallel"}, []string{}
		for _, o := range objects {
			files = append(files, filepath.Join(dir, o.Name))
			args = append(args, "-o", filepath.Join(dir, o.Name), url+o.Name)
		}
		begun := time.Now()
		run(b, curl, args...)
		plain = time.Since(begun)
		run(b, "sha256sum", files...)
		run(b, "sync", files...)
		return plain, time.Since(begun)
	}
	var times [3][]float64
	b.SetBytes(int64(count * size))
	b.StopTimer()
	for round := range b.N {
		if round%2 == 0 {
			times[0] = append(times[0], ours().Seconds())
		}
		plain, checked := theirs()
		times[1], times[2] = append(times[1], plain.Seconds()), append(times[2], checked.Seconds())
		if round%2 == 1 {
			times[0] = append(times[0], ours().Seconds())
		}
	}
	var middle [3]float64
	for i := range times {
		slices.Sort(times[i])
		middle[i] = times[i][len(times[i])/2]
	}
	b.ReportMetric(middle[0]*1e3, "ours-ms")
	b.ReportMetric(middle[1]*1e3, "curl-ms")
	b.ReportMetric(middle[0]/middle[1], "ours/curl")
	b.ReportMetric(middle[0]/middle[2], "ours/checked")
}

// serve serves a number of objects with one content, as an archive and by curl.
func serve(b *testing.B, count int, content []byte) (a *archive.Archive, objects []fetch.Object, url string) {
	modified := time.Date(2024, 5, 17, 0, 0, 0, 0, time.UTC)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			for i := range count {
				fmt.Fprintf(w, `<a href="%d.nc">%d.nc</a> `, i, i)
			}
			return
		}
		w.Header().Set("ETag", `"v1"`)
		http.ServeContent(w, r, "a.nc", modified, bytes.NewReader(content))
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

func run(b *testing.B, program string, args ...string) {
	b.Helper()
	if out, err := exec.CommandContext(b.Context(), program, args...).CombinedOutput(); err != nil {
		b.Fatalf("%s: %v: %s", program, err, out)
	}
}
