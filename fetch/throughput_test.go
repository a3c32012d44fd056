package fetch_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"lacuna/fetch"
	archive "lacuna/fetch/http"

	"golang.org/x/sync/errgroup"
)

// BenchmarkDownloadAgainstCurl brings 200 MB over loopback into the spool,
// hashed and synced, and lets curl write the same object to the same disk. The
// metric curl/ours compares the fastest run of each, for other work on the
// machine only ever adds; it is above 1 where we are faster. checked/ours has
// curl followed by sha256sum, for our copy is hashed too.
func BenchmarkDownloadAgainstCurl(b *testing.B) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		b.Skip("curl is not installed")
	}
	content := bytes.Repeat([]byte("0123456789abcdef"), 200_000_000/16)
	modified := time.Date(2024, 5, 17, 0, 0, 0, 0, time.UTC)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			fmt.Fprint(w, `<a href="a.nc">a.nc</a>`)
			return
		}
		w.Header().Set("ETag", `"v1"`)
		http.ServeContent(w, r, "a.nc", modified, bytes.NewReader(content))
	}))
	defer server.Close()
	cfg := archive.DefaultConfig()
	cfg.URL = server.URL + "/"
	a, err := archive.New(cfg, fetch.Politeness{UserAgent: "lacuna/test"})
	if err != nil {
		b.Fatal(err)
	}
	objects, err := a.List(b.Context(), fetch.Scope{})
	if err != nil || len(objects) != 1 {
		b.Fatalf("List() = %v, %v", objects, err)
	}
	b.SetBytes(int64(len(content)))
	ours, theirs, checked := time.Hour, time.Hour, time.Hour
	for b.Loop() {
		started := time.Now()
		_, err := fetch.NewSpool(b.TempDir()).Bring(b.Context(), fetch.Download{Archive: a, Object: objects[0]})
		if err != nil {
			b.Fatal(err)
		}
		ours = min(ours, time.Since(started))
		b.StopTimer()
		started = time.Now()
		file := filepath.Join(b.TempDir(), "a.nc")
		out, err := exec.CommandContext(b.Context(), curl, "-sS", "-o", file, server.URL+"/a.nc").CombinedOutput()
		if err != nil {
			b.Fatalf("curl: %v: %s", err, out)
		}
		theirs = min(theirs, time.Since(started))
		if out, err := exec.CommandContext(b.Context(), "sha256sum", file).CombinedOutput(); err != nil {
			b.Fatalf("sha256sum: %v: %s", err, out)
		}
		checked = min(checked, time.Since(started))
		b.StartTimer()
	}
	b.ReportMetric(theirs.Seconds()/ours.Seconds(), "curl/ours")
	b.ReportMetric(checked.Seconds()/ours.Seconds(), "checked/ours")
}

// BenchmarkParallelAgainstCurl brings four objects of 50 MB at a time, and lets
// curl do the same with --parallel.
func BenchmarkParallelAgainstCurl(b *testing.B) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		b.Skip("curl is not installed")
	}
	const objectCount = 4
	content := bytes.Repeat([]byte("0123456789abcdef"), 50_000_000/16)
	modified := time.Date(2024, 5, 17, 0, 0, 0, 0, time.UTC)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			for i := range objectCount {
				fmt.Fprintf(w, `<a href="%d.nc">%d.nc</a> `, i, i)
			}
			return
		}
		http.ServeContent(w, r, "a.nc", modified, bytes.NewReader(content))
	}))
	defer server.Close()
	cfg := archive.DefaultConfig()
	cfg.URL = server.URL + "/"
	a, err := archive.New(cfg, fetch.Politeness{UserAgent: "lacuna/test"})
	if err != nil {
		b.Fatal(err)
	}
	objects, err := a.List(b.Context(), fetch.Scope{})
	if err != nil || len(objects) != objectCount {
		b.Fatalf("List() = %v, %v", objects, err)
	}
	b.SetBytes(objectCount * int64(len(content)))
	ours, theirs := time.Hour, time.Hour
	for b.Loop() {
		started := time.Now()
		spool := fetch.NewSpool(b.TempDir())
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
		ours = min(ours, time.Since(started))
		b.StopTimer()
		started = time.Now()
		args, dir := []string{"-sS", "--parallel"}, b.TempDir()
		for _, o := range objects {
			args = append(args, "-o", filepath.Join(dir, o.Name), server.URL+"/"+o.Name)
		}
		if out, err := exec.CommandContext(b.Context(), curl, args...).CombinedOutput(); err != nil {
			b.Fatalf("curl: %v: %s", err, out)
		}
		theirs = min(theirs, time.Since(started))
		b.StartTimer()
	}
	b.ReportMetric(theirs.Seconds()/ours.Seconds(), "curl/ours")
}
