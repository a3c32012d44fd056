package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"lacuna/fetch"
	"lacuna/fetch/archivetest"
)

const bucket = "mdl-native-14"

// store is an S3 host in this process.
type store struct {
	*httptest.Server
	backend *s3mem.Backend
	mu      sync.Mutex // guards fault and requests
	fault   http.HandlerFunc
	seen    []*http.Request
}

func newStore(t *testing.T) *store {
	t.Helper()
	s := &store{backend: s3mem.New()}
	must(t, s.backend.CreateBucket(bucket))
	fake := gofakes3.New(s.backend, gofakes3.WithLogger(gofakes3.DiscardLog()), gofakes3.WithTimeSkewLimit(0)).Server()
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.seen = append(s.seen, r.Clone(context.WithoutCancel(r.Context())))
		fault := s.fault
		s.mu.Unlock()
		if fault != nil {
			fault(w, r)
			return
		}
		fake.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// answer makes the host answer with h; nil heals it.
func (s *store) answer(h http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = h
}

func (s *store) requests() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}

func (s *store) put(t *testing.T, key string, content []byte) {
	t.Helper()
	_, err := s.backend.PutObject(bucket, key, map[string]string{}, bytes.NewReader(content), int64(len(content)), nil)
	must(t, err)
}

func (s *store) config() Config {
	cfg := DefaultConfig()
	cfg.Endpoint, cfg.Bucket, cfg.Prefix = s.URL, bucket, "native/P/d_202311"
	cfg.Web.Timeout = 5 * time.Second
	return cfg
}

func open(t *testing.T, cfg Config) *Archive {
	t.Helper()
	a, err := New(cfg, fetch.Politeness{UserAgent: "lacuna/test"})
	must(t, err)
	return a
}

// refuse answers as S3 does to a key that was withdrawn.
func refuse(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusForbidden)
	fmt.Fprint(w, `<?xml version="1.0"?><Error><Code>InvalidAccessKeyId</Code><AWSAccessKeyId>AKIAPLANTED</AWSAccessKeyId></Error>`)
}

func TestS3Conforms(t *testing.T) {
	for _, signed := range []bool{false, true} {
		t.Run(fmt.Sprintf("signed %v", signed), func(t *testing.T) {
			archivetest.Run(t, func(t *testing.T) archivetest.Fixture {
				s := newStore(t)
				cfg := s.config()
				cfg.PageObjects = 2 // so that every listing has pages
				if signed {
					t.Setenv("S3_TEST_ACCESS", "AKIAPLANTED")
					t.Setenv("S3_TEST_SECRET", "sesame")
					cfg.AccessKey.Env, cfg.SecretKey.Env = "S3_TEST_ACCESS", "S3_TEST_SECRET"
				}
				key := func(name string) string { return cfg.Prefix + "/" + name }
				s.put(t, "native/P/d_202311_other/x.nc", []byte("a neighbour whose name begins alike"))
				return archivetest.Fixture{
					Archive: open(t, cfg),
					Put:     func(name string, content []byte, _ time.Time) { s.put(t, key(name), content) },
					Remove: func(name string) {
						_, err := s.backend.DeleteObject(bucket, key(name))
						must(t, err)
					},
					Sever:  func() { must(t, s.backend.ForceDeleteBucket(bucket)) },
					Refuse: func() { s.answer(refuse) },
					Summed: true,
				}
			})
		})
	}
}

func TestRequestsAreSignedOnlyWithKeysAndNameTheProgram(t *testing.T) {
	s := newStore(t)
	s.put(t, "native/P/d_202311/a.nc", []byte("a"))
	_, err := open(t, s.config()).List(t.Context(), fetch.Scope{})
	must(t, err)
	t.Setenv("S3_TEST_ACCESS", "AKIAPLANTED")
	t.Setenv("S3_TEST_SECRET", "sesame")
	cfg := s.config()
	cfg.AccessKey.Env, cfg.SecretKey.Env = "S3_TEST_ACCESS", "S3_TEST_SECRET"
	_, err = open(t, cfg).List(t.Context(), fetch.Scope{})
	must(t, err)
	seen := s.requests()
	if got := seen[0].Header.Get("Authorization"); got != "" {
		t.Errorf("an anonymous request has the authorization %q", got)
	}
	if got := seen[1].Header.Get("Authorization"); !strings.HasPrefix(got, "AWS4-HMAC-SHA256 Credential=AKIAPLANTED/") || strings.Contains(got, "sesame") {
		t.Errorf("a signed request has the authorization %q", got)
	}
	for _, r := range seen {
		if r.UserAgent() != "lacuna/test" {
			t.Errorf("User-Agent = %q", r.UserAgent())
		}
	}
}

func TestBucketStandsInThePathOrInTheHost(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Endpoint, cfg.Bucket, cfg.Prefix = "https://s3.example.org:8443/", "b", "native/"
	for virtual, want := range map[bool]string{
		false: "https://s3.example.org:8443/b/native/a%20b%2B%25/%C3%A9.nc",
		true:  "https://b.s3.example.org:8443/native/a%20b%2B%25/%C3%A9.nc",
	} {
		cfg.VirtualHost = virtual
		a := open(t, cfg)
		if got := a.at(a.prefix+"a b+%/é.nc", nil).String(); got != want {
			t.Errorf("virtual host %v: %s, want %s", virtual, got, want)
		}
	}
}

func TestMultipartTagIsNoChecksum(t *testing.T) {
	for _, tt := range []struct {
		tag  string
		is   bool
		want string
	}{
		{"9e107d9d372bb6826bd81d3542a419d6", true, "9e107d9d372bb6826bd81d3542a419d6"},
		{"9E107D9D372BB6826BD81D3542A419D6", true, "9e107d9d372bb6826bd81d3542a419d6"},
		{"9e107d9d372bb6826bd81d3542a419d6-6", true, ""},
		{"not-a-hash-but-thirty-two-bytes!", true, ""},
		{"9e107d9d372bb6826bd81d3542a419d6", false, ""},
	} {
		a := &Archive{cfg: Config{ETagIsMD5: tt.is}}
		if got := a.md5(tt.tag); got != tt.want {
			t.Errorf("md5(%q), trusted %v: %q, want %q", tt.tag, tt.is, got, tt.want)
		}
	}
}

func TestObjectReplacedDuringDownloadIsNotResumed(t *testing.T) {
	s := newStore(t)
	s.put(t, "native/P/d_202311/a.nc", bytes.Repeat([]byte("old "), 1000))
	a := open(t, s.config())
	objects, err := a.List(t.Context(), fetch.Scope{})
	must(t, err)
	s.put(t, "native/P/d_202311/a.nc", bytes.Repeat([]byte("new "), 1000)) // the same length
	for _, offset := range []int64{0, 2000} {
		r, err := a.Open(t.Context(), objects[0], offset)
		if err == nil {
			_, err = io.ReadAll(r)
			r.Close()
		}
		if !errors.Is(err, fetch.ErrChanged) {
			t.Errorf("from %d: %v, want ErrChanged", offset, err)
		}
	}
	last := s.requests()[len(s.requests())-1]
	if last.Header.Get("If-Match") == "" || last.Header.Get("Range") != "bytes=2000-" {
		t.Errorf("the download was asked for with %v, want If-Match and Range", last.Header)
	}
}

func TestListingThatLies(t *testing.T) {
	page := func(inner string) string {
		return `<?xml version="1.0"?><ListBucketResult>` + inner + `</ListBucketResult>`
	}
	const one = `<Contents><Key>native/P/d_202311/a.nc</Key><Size>1</Size><LastModified>2024-05-17T12:00:00.000Z</LastModified><ETag>"x"</ETag></Contents>`
	for _, tt := range []struct {
		name, body string
		objects    int
	}{
		{"cut in the middle", page(one)[:120], 0},
		{"not a listing", "<html><body>Welcome to our hotel</body></html>", 0},
		{"nothing at all", "", 0},
		{"more pages, but no token", page(one + `<IsTruncated>true</IsTruncated>`), 1},
		{"the same page for ever", page(one + `<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>`), 1},
		{"an object twice", page(one + one), 1},
		{"an object from elsewhere", page(strings.Replace(one, "native/P", "secret", 1)), 0},
		{"a size that is none", page(strings.Replace(one, "<Size>1<", "<Size>many<", 1)), 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStore(t)
			s.answer(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, tt.body) })
			objects, err := open(t, s.config()).List(t.Context(), fetch.Scope{})
			if err == nil || errors.Is(err, io.EOF) || len(objects) != tt.objects {
				t.Errorf("List() = %d objects, %v; want %d and an error", len(objects), err, tt.objects)
			}
		})
	}
}

func TestErrorsTellWhatToDoAndHideKeys(t *testing.T) {
	t.Setenv("S3_TEST_ACCESS", "AKIAPLANTED")
	t.Setenv("S3_TEST_SECRET", "sesame")
	for _, tt := range []struct {
		name      string
		answer    http.HandlerFunc
		permanent bool
		want      string
	}{
		{"key withdrawn", refuse, true, "InvalidAccessKeyId"},
		{"bucket closed", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			io.WriteString(w, "<Error><Code>AccessDenied</Code></Error>")
		}, true, "AccessDenied"},
		{"clock is off", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			io.WriteString(w, "<Error><Code>RequestTimeTooSkewed</Code></Error>")
		}, false, "RequestTimeTooSkewed"},
		{"code that is none", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, "<Error><Code>key sesame</Code></Error>")
		}, false, "400"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStore(t)
			s.answer(tt.answer)
			cfg := s.config()
			cfg.AccessKey.Env, cfg.SecretKey.Env = "S3_TEST_ACCESS", "S3_TEST_SECRET"
			_, err := open(t, cfg).List(t.Context(), fetch.Scope{})
			if err == nil || errors.Is(err, fetch.ErrPermanent) != tt.permanent || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("List() = %v, want %q, permanent %v", err, tt.want, tt.permanent)
			}
			if text := fmt.Sprintf("%+v", err); strings.Contains(text, "sesame") || strings.Contains(text, "AKIAPLANTED") {
				t.Errorf("the error shows a key: %s", text)
			}
		})
	}
}

func TestHostThatHangsUpCostsOneDownload(t *testing.T) {
	s := newStore(t)
	content := bytes.Repeat([]byte("0123456789"), 500_000)
	s.put(t, "native/P/d_202311/a.nc", content)
	a := open(t, s.config())
	objects, err := a.List(t.Context(), fetch.Scope{})
	must(t, err)
	object := objects[0]
	var sent atomic.Int64
	s.answer(func(w http.ResponseWriter, r *http.Request) { // a tenth, then the line is cut
		var from int
		fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from)
		to := min(from+len(content)/10, len(content))
		w.Header().Set("ETag", `"`+object.ETag+`"`)
		w.Header().Set("Content-Length", fmt.Sprint(len(content)-from))
		if from > 0 {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(content)-1, len(content)))
			w.WriteHeader(http.StatusPartialContent)
		}
		sent.Add(int64(to - from)) // before: a reader that has the last byte does not wait for this function
		_, _ = w.Write(content[from:to])
		if to < len(content) {
			panic(http.ErrAbortHandler)
		}
	})
	cfg := fetch.DefaultPolitenessConfig()
	cfg.Retry.Base = time.Millisecond
	polite, err := fetch.NewPolite(a, cfg, slog.New(slog.DiscardHandler))
	must(t, err)
	r, err := polite.Open(t.Context(), object, 0)
	must(t, err)
	defer r.Close()
	got, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("read %d bytes, %v; want %d", len(got), err, len(content))
	}
	if sent.Load() != int64(len(content)) {
		t.Errorf("%d bytes were sent for %d", sent.Load(), len(content))
	}
}

func TestTenThousandObjectsAreListedInPages(t *testing.T) {
	s := newStore(t)
	for i := range 10_000 {
		s.put(t, fmt.Sprintf("native/P/d_202311/%04d/%02d/%d.nc", 1997+i/365, i/31%12+1, i), []byte{byte(i)})
	}
	objects, err := open(t, s.config()).List(t.Context(), fetch.Scope{})
	if err != nil || len(objects) != 10_000 {
		t.Errorf("List() = %d objects, %v", len(objects), err)
	}
	if n := len(s.requests()); n > 11 {
		t.Errorf("%d requests for 10,000 objects, want about 10", n)
	}
}

func TestConfigIsChecked(t *testing.T) {
	good := DefaultConfig()
	good.Endpoint, good.Bucket = "https://s3.example.org", "b"
	open := func(c Config) error {
		_, err := New(c, fetch.Politeness{})
		return err
	}
	archivetest.CheckConfigs(t, good, "sesame", "s3", open, []archivetest.ConfigCase[Config]{
		{Name: "no endpoint", Edit: func(c *Config) { c.Endpoint = "" }, Key: "endpoint"},
		{Name: "endpoint without scheme", Edit: func(c *Config) { c.Endpoint = "s3.example.org" }, Key: "endpoint"},
		{Name: "endpoint with a password", Edit: func(c *Config) { c.Endpoint = "https://me:sesame@s3.example.org" }, Key: "endpoint"},
		{Name: "no bucket", Edit: func(c *Config) { c.Bucket = "" }, Key: "bucket"},
		{Name: "absolute prefix", Edit: func(c *Config) { c.Prefix = "/x" }, Key: "prefix"},
		{Name: "half a key", Edit: func(c *Config) { c.AccessKey.Env = "A" }, Key: "access_key"},
		{Name: "page too large", Edit: func(c *Config) { c.PageObjects = 5000 }, Key: "page_objects"},
		{Name: "no timeout", Edit: func(c *Config) { c.Web.Timeout = 0 }, Key: "timeout"},
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestSecretsAreKept(t *testing.T) {
	for name, place := range map[string]string{"S3_TEST_ACCESS": "AKIAPLANTED", "S3_TEST_SECRET": "planted/secret", "S3_TEST_SESSION": "planted-session"} {
		t.Setenv(name, place)
	}
	s := newStore(t)
	cfg := s.config()
	cfg.AccessKey.Env, cfg.SecretKey.Env, cfg.SessionToken.Env = "S3_TEST_ACCESS", "S3_TEST_SECRET", "S3_TEST_SESSION"
	for _, code := range []int{http.StatusForbidden, http.StatusServiceUnavailable, http.StatusFound} {
		s.answer(func(w http.ResponseWriter, r *http.Request) {
			heard := r.Header.Get("Authorization") + r.Header.Get("X-Amz-Security-Token")
			w.Header().Set("Location", "/"+url.PathEscape(heard))
			w.WriteHeader(code)
			fmt.Fprintf(w, "<Error><Code>SignatureDoesNotMatch</Code><Message>%s</Message></Error>", heard)
		})
		archivetest.KeepSecrets(t, open(t, cfg), "AKIAPLANTED", "planted")
	}
}
