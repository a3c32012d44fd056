package fetch

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// webArchive has one object, on a web server: real connections that really
// break. It is as simple as an archive over HTTP can be.
type webArchive struct{ url string }

func (a webArchive) List(context.Context, Scope) ([]Object, error) { return nil, nil }

func (a webArchive) Open(ctx context.Context, o Object, offset int64) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("If-Match", strconv.Quote(o.ETag))
	if offset > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 != 2 {
		resp.Body.Close()
		if resp.StatusCode == http.StatusPreconditionFailed {
			return nil, ErrChanged
		}
		return nil, errors.New(resp.Status)
	}
	return resp.Body, nil
}

// shakyServer serves one object and cuts connections at given bytes.
type shakyServer struct {
	served atomic.Int64 // bytes of the object that left it

	mu      sync.Mutex // guards the fields below
	content []byte
	etag    string
	cuts    []int64 // positions in the object; each is used once
}

func (s *shakyServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	content, etag := s.content, s.etag
	s.mu.Unlock()
	w.Header().Set("ETag", strconv.Quote(etag))
	http.ServeContent(&cuttingWriter{ResponseWriter: w, server: s, r: r}, r, "a.nc", time.Time{}, bytes.NewReader(content))
}

// replace puts another object in the place of the one before.
func (s *shakyServer) replace(content []byte, etag string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.content, s.etag = content, etag
}

type cuttingWriter struct {
	http.ResponseWriter
	server *shakyServer
	r      *http.Request
	at     int64
}

func (w *cuttingWriter) WriteHeader(status int) {
	fmt.Sscanf(w.r.Header.Get("Range"), "bytes=%d-", &w.at)
	w.ResponseWriter.WriteHeader(status)
}

func (w *cuttingWriter) Write(p []byte) (int, error) {
	s := w.server
	s.mu.Lock()
	defer s.mu.Unlock()
	cut := len(s.cuts) > 0 && w.at+int64(len(p)) >= s.cuts[0]
	if cut {
		p = p[:max(s.cuts[0]-w.at, 0)]
	}
	n, err := w.ResponseWriter.Write(p)
	s.served.Add(int64(n))
	w.at += int64(n)
	if cut {
		s.cuts = s.cuts[1:]
		_ = http.NewResponseController(w.ResponseWriter).Flush()
		panic(http.ErrAbortHandler) // the connection breaks
	}
	return n, err
}

func randomBytes(n int) []byte {
	content := make([]byte, n)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(content)
	return content
}

func TestConnectionCutAtEveryTenthPercentIsOneDownload(t *testing.T) {
	content := randomBytes(2 << 20)
	server := &shakyServer{content: content, etag: "v1"}
	for tenth := int64(1); tenth < 10; tenth++ {
		server.cuts = append(server.cuts, tenth*int64(len(content))/10)
	}
	web := httptest.NewServer(server)
	defer web.Close()
	o := Object{Name: "a.nc", Size: int64(len(content)), ETag: "v1", MD5: md5Of(content)}
	dir := t.TempDir()
	cuts := 0
	for {
		// Each attempt is a new spool, as after a restart.
		g, err := NewSpool(dir).Bring(t.Context(), Download{Archive: webArchive{web.URL}, Object: o})
		if err == nil {
			wantWhole(t, g, string(content))
			break
		}
		if cuts++; cuts > 9 {
			t.Fatalf("Bring() still fails: %v", err)
		}
	}
	if served := server.served.Load(); cuts != 9 || served != o.Size {
		t.Errorf("%d cuts and %d bytes served, want 9 and the %d of one download", cuts, served, o.Size)
	}
	if files := filesIn(t, dir); len(files) != 1 {
		t.Errorf("spool holds %v, want the granule alone", files)
	}
}

func TestDownloadGoesOnAfterTheServerRestarts(t *testing.T) {
	content := randomBytes(300_000)
	server := &shakyServer{content: content, etag: "v1", cuts: []int64{123_456}}
	web := httptest.NewServer(server)
	address := web.Listener.Addr().String()
	o := Object{Name: "a.nc", Size: int64(len(content)), ETag: "v1"}
	spool := NewSpool(t.TempDir())
	bring := func() (Granule, error) {
		return spool.Bring(t.Context(), Download{Archive: webArchive{"http://" + address}, Object: o})
	}
	if _, err := bring(); err == nil {
		t.Fatal("Bring() of a cut connection came through")
	}
	web.Close()
	if _, err := bring(); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("Bring() from a server that is down = %v", err)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("the port was taken meanwhile: %v", err)
	}
	again := httptest.NewUnstartedServer(server)
	again.Listener.Close()
	again.Listener = listener
	again.Start()
	defer again.Close()
	g, err := bring()
	if err != nil {
		t.Fatal(err)
	}
	wantWhole(t, g, string(content))
	if served := server.served.Load(); served != o.Size {
		t.Errorf("%d bytes served, want the %d of one download", served, o.Size)
	}
}

func TestObjectReplacedDuringDownloadStartsAnew(t *testing.T) {
	first, second := randomBytes(200_000), bytes.Repeat([]byte("sea"), 70_000)
	server := &shakyServer{content: first, etag: "v1", cuts: []int64{100_000}}
	web := httptest.NewServer(server)
	defer web.Close()
	dir := t.TempDir()
	bring := func(content []byte, etag string) (Granule, error) {
		return NewSpool(dir).Bring(t.Context(), Download{
			Archive: webArchive{web.URL}, Object: Object{Name: "a.nc", Size: int64(len(content)), ETag: etag},
		})
	}
	if _, err := bring(first, "v1"); err == nil {
		t.Fatal("Bring() of a cut connection came through")
	}
	server.replace(second, "v2")
	if _, err := bring(first, "v1"); !errors.Is(err, ErrChanged) {
		t.Errorf("Bring() of a replaced object = %v, want ErrChanged", err)
	}
	if files := filesIn(t, dir); len(files) != 0 {
		t.Errorf("spool holds %v, want nothing of the old object", files)
	}
	g, err := bring(second, "v2")
	if err != nil {
		t.Fatal(err)
	}
	wantWhole(t, g, string(second))
}

func TestPartOfAnotherVersionIsNotResumed(t *testing.T) {
	for name, modTimes := range map[string][2]time.Time{
		"modified since":                   {longAgo(), longAgo().Add(time.Second)},
		"an archive that tells no version": {},
	} {
		t.Run(name, func(t *testing.T) {
			dir, a := t.TempDir(), newMemArchive()
			old, replaced := strings.Repeat("o", 1000), strings.Repeat("n", 1000)
			a.put("a.nc", old, modTimes[0])
			a.onOpen = func(Object) (io.ReadCloser, error) { return cutReader(old[:600], syscall.ECONNRESET), nil }
			_, err := NewSpool(dir).Bring(t.Context(), Download{Archive: a, Object: a.objects["a.nc"]})
			if !errors.Is(err, syscall.ECONNRESET) {
				t.Fatalf("Bring() = %v", err)
			}
			a.onOpen = nil
			a.put("a.nc", replaced, modTimes[1]) // the same name and length
			g, err := NewSpool(dir).Bring(t.Context(), Download{Archive: a, Object: a.objects["a.nc"]})
			if err != nil {
				t.Fatal(err)
			}
			wantWhole(t, g, replaced)
		})
	}
}

func TestPartThatAPowerCutSpoiltIsFetchedAgain(t *testing.T) {
	content := string(randomBytes(5000))
	for name, spoil := range map[string]func(path string) error{
		"zeroes where bytes were": func(path string) error {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteAt(make([]byte, 100), 2000)
			return err
		},
		"shorter than noted": func(path string) error { return os.Truncate(path, 1000) },
		"longer than noted": func(path string) error {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteString("never noted")
			return err
		},
		"no note": func(path string) error { return os.Remove(strings.TrimSuffix(path, partEnding) + noteEnding) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, a := t.TempDir(), newMemArchive()
			a.put("a.nc", content, longAgo())
			a.onOpen = func(Object) (io.ReadCloser, error) { return cutReader(content[:3000], syscall.ECONNRESET), nil }
			d := Download{Archive: a, Object: a.objects["a.nc"]}
			if _, err := NewSpool(dir).Bring(t.Context(), d); err == nil {
				t.Fatal("Bring() of a cut connection came through")
			}
			parts, err := filepath.Glob(filepath.Join(dir, tempPrefix+"*"+partEnding))
			if err != nil || len(parts) != 1 {
				t.Fatalf("parts = %v, %v; want one", parts, err)
			}
			if err := spoil(parts[0]); err != nil {
				t.Fatal(err)
			}
			a.onOpen = nil
			g, err := NewSpool(dir).Bring(t.Context(), d)
			if err != nil {
				t.Fatal(err)
			}
			wantWhole(t, g, content)
		})
	}
}

func TestCorruptBytesAreNoGranule(t *testing.T) {
	b := newBench(t, nil)
	b.archive.put("a.nc", "right", longAgo())
	o := b.archive.objects["a.nc"]
	o.MD5 = md5Of([]byte("right"))
	b.archive.objects["a.nc"] = o
	b.archive.onOpen = func(Object) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("wrong")), nil }
	if got := b.pollNames(t); len(got) != 0 {
		t.Errorf("Poll() = %v, want nothing", got)
	}
	if len(b.problems) != 1 || !errors.Is(b.problems[0].Err, ErrCorrupt) {
		t.Errorf("problems = %v, want ErrCorrupt", b.problems)
	}
	if files := filesIn(t, b.spoolDir); len(files) != 0 {
		t.Errorf("spool holds %v, want nothing", files)
	}
	b.archive.onOpen = nil
	if got := b.pollNames(t); len(got) != 1 {
		t.Errorf("Poll() once the bytes are right = %v", got)
	}
}

func TestCancelledDownloadIsKeptForTheNextOne(t *testing.T) {
	dir, a := t.TempDir(), newMemArchive()
	content := strings.Repeat("a", 1<<20)
	a.put("a.nc", content, longAgo())
	ctx, cancel := context.WithCancel(t.Context())
	a.onOpen = func(Object) (io.ReadCloser, error) {
		return io.NopCloser(readerFunc(func(p []byte) (int, error) {
			cancel() // in the middle of the copy
			return copy(p, "aaa"), nil
		})), nil
	}
	d := Download{Archive: a, Object: a.objects["a.nc"]}
	if _, err := NewSpool(dir).Bring(ctx, d); !errors.Is(err, context.Canceled) {
		t.Errorf("Bring() = %v, want the cancellation", err)
	}
	a.onOpen = nil
	came := 0
	d.OnBytes = func(n int) { came += n }
	g, err := NewSpool(dir).Bring(t.Context(), d)
	if err != nil || came != len(content) {
		t.Fatalf("Bring() = %v after %d bytes, want all of them told of", err, came)
	}
	wantWhole(t, g, content)
}

func TestSweepKeepsPartsThatCanBeResumed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool [a-")
	spool, a := NewSpool(dir), newMemArchive()
	a.put("a.nc", "a", longAgo())
	g, err := spool.Bring(t.Context(), Download{Archive: a, Object: a.objects["a.nc"]})
	if err != nil {
		t.Fatal(err)
	}
	a.put("b.nc", "whole", longAgo())
	a.onOpen = func(Object) (io.ReadCloser, error) { return cutReader("who", syscall.ECONNRESET), nil }
	_, _ = spool.Bring(t.Context(), Download{Archive: a, Object: a.objects["b.nc"]})
	for _, name := range []string{"x.tmp", "y.part", "z.json"} { // as killed processes leave them
		if err := os.WriteFile(filepath.Join(dir, tempPrefix+name), []byte("left"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	held, err := openPart(dir, Object{Name: "c.nc", Size: 1}) // a download under way
	if err != nil {
		t.Fatal(err)
	}
	defer held.discard()
	if err := spool.Sweep(time.Now()); err != nil {
		t.Errorf("Sweep(): %v", err)
	}
	if files := filesIn(t, dir); len(files) != 4 { // a.nc, b's part and note, c's part
		t.Errorf("spool holds %v, want the granule, the part with its note and the download under way", files)
	}
	if err := spool.Sweep(time.Now().Add(2 * partLife)); err != nil {
		t.Errorf("Sweep(): %v", err)
	}
	if err := spool.Sweep(time.Now().Add(2 * partLife)); err != nil { // the note, now alone
		t.Errorf("Sweep(): %v", err)
	}
	wantWhole(t, g, "a")
	if files := filesIn(t, dir); len(files) != 2 {
		t.Errorf("spool holds %v, want the granule and the download under way", files)
	}
	if err := NewSpool(filepath.Join(dir, "absent")).Sweep(time.Now()); err != nil {
		t.Errorf("Sweep() of a spool that is not made yet: %v", err)
	}
}

func md5Of(content []byte) string {
	sum := md5.Sum(content)
	return hex.EncodeToString(sum[:])
}
