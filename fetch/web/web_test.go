package web

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"lacuna/fetch"
)

var content = bytes.Repeat([]byte("chlorophyll "), 10_000)

func modified() time.Time { return time.Date(2024, 5, 17, 12, 0, 0, 0, time.UTC) }

// get asks a host that answers with handle for an object of content.
func get(t *testing.T, handle http.HandlerFunc, edit func(*Get)) ([]byte, error) {
	t.Helper()
	server := httptest.NewServer(handle)
	defer server.Close()
	return getAt(t, server.URL+"/a.nc", edit)
}

func getAt(t *testing.T, address string, edit func(*Get)) ([]byte, error) {
	t.Helper()
	u, err := url.Parse(address)
	must(t, err)
	g := Get{URL: u, Object: fetch.Object{Name: "a.nc", Size: int64(len(content)), ModTime: modified(), ETag: "v1"}}
	if edit != nil {
		edit(&g)
	}
	client := New(Config{Timeout: 5 * time.Second}, fetch.Politeness{UserAgent: "lacuna/test"})
	r, err := client.Open(t.Context(), g)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// serve delivers content as the version of the given tag.
func serve(tag string, change time.Time) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if tag != "" {
			w.Header().Set("ETag", `"`+tag+`"`)
		}
		http.ServeContent(w, r, "", change, bytes.NewReader(content))
	}
}

func TestStatusIsTurnedIntoItsMeaning(t *testing.T) {
	for code, want := range map[int]error{
		http.StatusNotFound: fs.ErrNotExist, http.StatusGone: fs.ErrNotExist,
		http.StatusUnauthorized:       fetch.ErrPermanent,
		http.StatusPreconditionFailed: fetch.ErrChanged, http.StatusRequestedRangeNotSatisfiable: fetch.ErrChanged,
	} {
		_, err := get(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }, nil)
		if !errors.Is(err, want) {
			t.Errorf("%d: %v, want %v", code, err, want)
		}
	}
	for _, code := range []int{http.StatusForbidden, http.StatusInternalServerError, http.StatusBadGateway} {
		_, err := get(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }, nil)
		if err == nil || errors.Is(err, fetch.ErrPermanent) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fetch.ErrChanged) {
			t.Errorf("%d: %v, want a plain error", code, err)
		}
	}
}

func TestRetryAfterIsHandedOn(t *testing.T) {
	for _, code := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		_, err := get(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "120")
			w.WriteHeader(code)
		}, nil)
		var after *fetch.RetryAfterError
		if !errors.As(err, &after) || after.After != 2*time.Minute {
			t.Errorf("%d: %v, want to be told to wait two minutes", code, err)
		}
	}
	now := time.Date(2026, 11, 15, 8, 0, 0, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"":                              0,
		"0":                             0,
		"-5":                            0,
		"soon":                          0,
		"7":                             7 * time.Second,
		"999999999":                     24 * time.Hour,
		"Sun, 15 Nov 2026 08:00:30 GMT": 30 * time.Second,
		"Sun, 15 Nov 2026 07:00:00 GMT": 0,
		"Sun, 15 Nov 2099 07:00:00 GMT": 24 * time.Hour,
	} {
		if got := RetryAfter(header, now); got != want {
			t.Errorf("RetryAfter(%q) = %v, want %v", header, got, want)
		}
	}
}

func TestObjectIsReadFromItsOffset(t *testing.T) {
	plain := func(w http.ResponseWriter, _ *http.Request) { w.Write(content) } // knows no ranges, tags or times
	for name, handle := range map[string]http.HandlerFunc{
		"by tag": serve("v1", modified()), "by time": serve("", modified()), "from the start": plain,
	} {
		for _, offset := range []int64{0, 1, 5000, int64(len(content)) - 1, int64(len(content))} {
			got, err := get(t, handle, func(g *Get) {
				g.Offset = offset
				if name == "by time" {
					g.Object.ETag = ""
				}
			})
			if err != nil || !bytes.Equal(got, content[offset:]) {
				t.Errorf("%s, from %d: %d bytes, %v", name, offset, len(got), err)
			}
		}
	}
}

func TestObjectThatChangedIsNoticed(t *testing.T) {
	deaf := func(tag string, change time.Time, body []byte) http.HandlerFunc { // ignores conditions
		return func(w http.ResponseWriter, _ *http.Request) {
			if tag != "" {
				w.Header().Set("ETag", `"`+tag+`"`)
			}
			if !change.IsZero() {
				w.Header().Set("Last-Modified", change.Format(http.TimeFormat))
			}
			w.Write(body)
		}
	}
	later := modified().Add(time.Minute)
	for name, handle := range map[string]http.HandlerFunc{
		"another tag":                  serve("v2", modified()),
		"another time":                 serve("", later),
		"another tag, ignored by host": deaf("v2", time.Time{}, content),
		"another time, ignored":        deaf("", later, content),
		"shorter":                      deaf("", time.Time{}, content[:100]),
		"longer":                       deaf("", time.Time{}, append(bytes.Clone(content), "more"...)),
		"longer, without a length": func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			w.Write(content)
			w.Write([]byte("more"))
		},
	} {
		for _, offset := range []int64{0, 5000} {
			if got, err := get(t, handle, func(g *Get) { g.Offset = offset }); !errors.Is(err, fetch.ErrChanged) {
				t.Errorf("%s, from %d: %d bytes, %v; want ErrChanged", name, offset, len(got), err)
			}
		}
	}
}

func TestObjectThatEndsEarlyDoesNotEndInEOF(t *testing.T) {
	for name, handle := range map[string]http.HandlerFunc{
		"without a length": func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			w.Write(content[:5000])
		},
		"cut off": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(content)))
			w.Write(content[:5000])
			panic(http.ErrAbortHandler)
		},
	} {
		got, err := get(t, handle, nil)
		if len(got) != 5000 || !errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			t.Errorf("%s: %d bytes, %v; want 5000 and io.ErrUnexpectedEOF", name, len(got), err)
		}
	}
}

func TestWrongRangeIsRefused(t *testing.T) {
	rest := content[:len(content)-5000] // as many bytes as are wanted, but others
	for _, header := range []string{"bytes 0-114999/120000", "bytes 4999-119998/120000", "nonsense", ""} {
		got, err := get(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Range", header)
			w.WriteHeader(http.StatusPartialContent)
			w.Write(rest)
		}, func(g *Get) { g.Offset = 5000 })
		if err == nil {
			t.Errorf("an answer with Content-Range %q was taken for the %d bytes from 5000", header, len(got))
		}
	}
}

func TestSilentHostIsGivenUp(t *testing.T) {
	hang := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/a.nc" {
			w.Write(content[:100])
			w.(http.Flusher).Flush()
		}
		<-hang
	}))
	defer server.Close()
	defer close(hang)
	client := New(Config{Timeout: 100 * time.Millisecond}, fetch.Politeness{})
	for _, path := range []string{"/a.nc", "/silent.nc"} {
		u, err := url.Parse(server.URL + path)
		must(t, err)
		r, err := client.Open(t.Context(), Get{URL: u, Object: fetch.Object{Size: -1}})
		if err == nil {
			_, err = io.ReadAll(r)
			r.Close()
		}
		if err == nil || errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want a timeout", path, err)
		}
	}
}

func TestCancellationEndsARead(t *testing.T) {
	hang := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Write(content[:100])
		w.(http.Flusher).Flush()
		<-hang
	}))
	defer server.Close()
	defer close(hang)
	u, err := url.Parse(server.URL)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	r, err := New(Config{Timeout: time.Minute}, fetch.Politeness{}).Open(ctx, Get{URL: u, Object: fetch.Object{Size: -1}})
	must(t, err)
	defer r.Close()
	_, err = io.ReadFull(r, make([]byte, 100))
	must(t, err)
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("Read() = %v, want context.Canceled", err)
	}
}

func TestDownloadSurvivesRestartOfTheHost(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	address := listener.Addr().String()
	half := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"v1"`)
		w.Header().Set("Content-Length", fmt.Sprint(len(content)))
		w.Write(content[:len(content)/2])
		panic(http.ErrAbortHandler)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(half)}}
	server.Start()
	head, err := getAt(t, "http://"+address+"/a.nc", nil)
	if err == nil {
		t.Fatal("the first host was meant to break off")
	}
	server.Close()
	if _, err := getAt(t, "http://"+address+"/a.nc", func(g *Get) { g.Offset = int64(len(head)) }); err == nil || errors.Is(err, fetch.ErrPermanent) || errors.Is(err, io.EOF) {
		t.Errorf("while the host is down: %v, want an error that passes", err)
	}
	listener, err = net.Listen("tcp", address)
	must(t, err)
	again := &httptest.Server{Listener: listener, Config: &http.Server{Handler: serve("v1", modified())}}
	again.Start()
	defer again.Close()
	tail, err := getAt(t, "http://"+address+"/a.nc", func(g *Get) { g.Offset = int64(len(head)) })
	if err != nil || !bytes.Equal(append(head, tail...), content) {
		t.Errorf("%d and %d bytes, %v; want the object", len(head), len(tail), err)
	}
}

func TestPrivateAuthorityIsTrustedWhenNamed(t *testing.T) {
	server := httptest.NewTLSServer(serve("v1", modified()))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	must(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o644))
	for caFile, ok := range map[string]bool{file: true, "": false, filepath.Join(t.TempDir(), "absent"): false} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		must(t, err)
		resp, err := New(Config{CAFile: caFile, Timeout: time.Second}, fetch.Politeness{}).Do(req)
		if err == nil {
			resp.Body.Close()
		}
		if (err == nil) != ok {
			t.Errorf("with ca_file %q: %v", caFile, err)
		}
	}
}

func TestErrorsShowNoUserQueryOrSecret(t *testing.T) {
	echo := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/moved?token=planted-token", http.StatusFound)
	}
	var hops atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { hops.Add(1); echo(w, r) }))
	defer server.Close()
	address := strings.Replace(server.URL, "http://", "http://me:planted-password@", 1) + "/a.nc?x-cop-user=planted-user"
	_, err := getAt(t, address, nil)
	if err == nil || hops.Load() < 2 {
		t.Fatalf("the host was meant to send us in circles: %v", err)
	}
	server.Close()
	_, down := getAt(t, address, nil)
	for _, err := range []error{err, down} {
		if strings.Contains(fmt.Sprintf("%+v", err), "planted") {
			t.Errorf("the error shows too much: %v", err)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
