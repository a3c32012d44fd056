package http

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"lacuna/fetch"
	"lacuna/fetch/archivetest"
)

func TestOnlyLinksBelowThePageAreFollowed(t *testing.T) {
	at, err := url.Parse("https://data.example/pub/sst/")
	must(t, err)
	page := `<a href="a.nc">a</a> 2024 <a href='./b.nc'>b</a><a href="/pub/sst/c.nc">c</a><a href="https://data.example/pub/sst/d%20d.nc">d</a>
		<a href="2024/">y</a> <a href="..">up</a><a href="../">up</a><a href="/">top</a><a href="/pub/sst/">self</a><a href="./">self</a>
		<a href="?C=M;O=A">sort</a><a href="a.nc?download">q</a><a href="#x">x</a><a href="/etc/passwd">e</a><a href="2024/05/deep.nc">deep</a>
		<a href="http://data.example/pub/sst/plain.nc">s</a><a href="https://evil.example/pub/sst/x.nc">h</a><a href="javascript:alert(1)">j</a>
		<a href="%2e%2e/secret.nc">s</a><a href="x%2Fy.nc">s</a><a name="z">z</a><a href="./t12:00.nc">t</a><A HREF="UPPER.NC">u</A>`
	links, err := readIndex(strings.NewReader(page), at, fetch.Scope{}.Bound("max_objects", 100))
	must(t, err)
	var got []string
	for _, l := range links {
		got = append(got, l.name)
	}
	if want := "a.nc b.nc c.nc d d.nc 2024/ t12:00.nc UPPER.NC"; strings.Join(got, " ") != want {
		t.Errorf("links = %q, want %q", got, want)
	}
}

func TestManifestLinesAreReadInEveryForm(t *testing.T) {
	md5, sha := strings.Repeat("0a", 16), strings.Repeat("0B", 32)
	for _, tt := range []struct {
		line string
		want fetch.Object
		bad  bool
	}{
		{line: "2024/a b.nc", want: fetch.Object{Name: "2024/a b.nc", Size: -1}},
		{line: "./a.nc", want: fetch.Object{Name: "a.nc", Size: -1}},
		{line: md5 + "  a  b.nc", want: fetch.Object{Name: "a  b.nc", Size: -1, MD5: md5}},
		{line: sha + " *a.nc", want: fetch.Object{Name: "a.nc", Size: -1, ETag: "sha256:" + strings.ToLower(sha), Digest: strings.ToLower(sha)}},
		{line: "deadbeef  a.nc", want: fetch.Object{Name: "deadbeef  a.nc", Size: -1}},
		{
			line: `{"name":"a.nc","size":0,"mtime":"2024-05-17T12:00:00Z","md5":"` + strings.ToUpper(md5) + `"}`,
			want: fetch.Object{Name: "a.nc", ModTime: time.Date(2024, 5, 17, 12, 0, 0, 0, time.UTC), MD5: md5},
		},
		{line: `{"name":"a.nc","size":-4}`, bad: true},
		{line: `{"name":""}`, bad: true},
		{line: `{"name":"a.nc"`, bad: true},
		{line: `/etc/passwd`, bad: true},
		{line: `{"name":"a.nc","md5":"xyz"}`, bad: true},
	} {
		got, err := parseLine(tt.line)
		if (err != nil) != tt.bad || got != tt.want {
			t.Errorf("parseLine(%q) = %+v, %v; want %+v", tt.line, got, err, tt.want)
		}
	}
}

func TestRowIsAskedAboutOnce(t *testing.T) {
	s := newSite(t, "nginx", true)
	for i := range 20 {
		s.put(t, fmt.Sprintf("%d.nc", i), []byte("x"), time.Date(2024, 5, 17, 12, 0, 0, 0, time.UTC))
	}
	a := open(t, s.config())
	for range 3 {
		objects, err := a.List(t.Context(), fetch.Scope{})
		if err != nil || len(objects) != 20 {
			t.Fatalf("List() = %d, %v", len(objects), err)
		}
	}
	if n := s.heads.Load(); n != 20 {
		t.Errorf("%d questions in three listings of 20 files, want 20", n)
	}
	// Replaced within the minute and of the same size: the row looks as before,
	// and only the download shows it.
	old := find(t, a, "7.nc")
	s.put(t, "7.nc", []byte("y"), time.Date(2024, 5, 17, 12, 0, 30, 0, time.UTC))
	if _, err := a.Open(t.Context(), old, 0); !errors.Is(err, fetch.ErrChanged) {
		t.Fatalf("Open() = %v, want ErrChanged", err)
	}
	if got := find(t, a, "7.nc"); got == old {
		t.Error("after ErrChanged the listing still shows the old version")
	}
}

func TestCorruptBytesDoNotPassForTheManifest(t *testing.T) {
	s := newSite(t, "manifest", true)
	s.put(t, "a.nc", []byte("right"), time.Now())
	a := open(t, s.config())
	o := find(t, a, "a.nc")
	s.put(t, "a.nc", []byte("wrong"), time.Now())
	g, err := fetch.NewSpool(t.TempDir()).Bring(t.Context(), fetch.Download{Archive: a, Object: o})
	if !errors.Is(err, fetch.ErrCorrupt) {
		t.Errorf("Bring() = %+v, %v; want ErrCorrupt", g, err)
	}
}

func TestNamesThatLeaveTheFolderAreNotOpened(t *testing.T) {
	s := newSite(t, "manifest", true)
	s.fault = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "MANIFEST") {
			fmt.Fprintln(w, `{"name":"../../secret.nc","size":6,"mtime":"2024-05-17T12:00:00Z"}`)
			return true
		}
		t.Errorf("the host was asked for %s", r.URL.Path)
		return false
	}
	a := open(t, s.config())
	objects, err := a.List(t.Context(), fetch.Scope{})
	must(t, err)
	if len(objects) != 1 {
		t.Fatalf("List() = %v, want the odd name, so that it is reported", objects)
	}
	if _, err := a.Open(t.Context(), objects[0], 0); err == nil {
		t.Error("Open() followed a name out of the folder")
	}
}

func TestForbiddenFolderDoesNotHideTheOthers(t *testing.T) {
	s := newSite(t, "apache", true)
	for _, name := range []string{"open/a.nc", "closed/b.nc"} {
		s.put(t, name, []byte("x"), time.Now())
	}
	s.fault = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/closed/") {
			w.WriteHeader(http.StatusForbidden)
			return true
		}
		return false
	}
	objects, err := open(t, s.config()).List(t.Context(), fetch.Scope{})
	if err == nil || errors.Is(err, fetch.ErrPermanent) || len(objects) != 1 {
		t.Errorf("List() = %v, %v; want open/a.nc and an error", objects, err)
	}
}

func TestPageThatIsNoListingIsNotEmptiness(t *testing.T) {
	page := func(body string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool { io.WriteString(w, body); return true }
	}
	for name, fault := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"under repair": page("<!DOCTYPE html><html><body><h1>We will be back soon</h1><a href='/'>Home</a></body></html>"),
		"nothing":      page(""),
		"log in elsewhere": func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/login/" {
				io.WriteString(w, "<h1>Index of dreams</h1><a href='form.html'>log in</a>")
				return true
			}
			http.Redirect(w, r, "/login/?from=planted", http.StatusFound)
			return true
		},
		"cut off": func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Length", "5000")
			io.WriteString(w, "<h1>Index of /pub</h1><a href='a.nc'>a.nc</a>")
			panic(http.ErrAbortHandler)
		},
	} {
		for _, style := range []string{"nginx", "manifest"} {
			if name == "nothing" && style == "manifest" {
				continue // an empty manifest means that there are no files
			}
			s := newSite(t, style, true)
			s.fault = fault
			objects, err := open(t, s.config()).List(t.Context(), fetch.Scope{})
			if err == nil || errors.Is(err, fetch.ErrPermanent) {
				t.Errorf("%s, %s: List() = %v, %v; want an error", name, style, objects, err)
			}
			if err != nil && strings.Contains(err.Error(), "planted") {
				t.Errorf("%s, %s: the error shows a query: %v", name, style, err)
			}
		}
	}
}

func TestBusyHostIsGivenTime(t *testing.T) {
	s := newSite(t, "nginx", true)
	s.fault = func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Retry-After", "30")
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	}
	_, err := open(t, s.config()).List(t.Context(), fetch.Scope{})
	var after *fetch.RetryAfterError
	if !errors.As(err, &after) || after.After != 30*time.Second {
		t.Errorf("List() = %v, want to be told to wait", err)
	}
}

func TestSecretsAreKept(t *testing.T) {
	t.Setenv("HTTP_TEST_SECRET", "planted-secret")
	echo := func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Retry-After", "0")
		user, password, _ := r.BasicAuth()
		http.Redirect(w, r, "/"+url.PathEscape(r.Header.Get("Authorization")+user+password)+"?"+r.Header.Get("Authorization"), http.StatusFound)
		return true
	}
	s := newSite(t, "nginx", true)
	s.fault = echo
	for name, edit := range map[string]func(*Config){
		"token":    func(c *Config) { c.Token.Env = "HTTP_TEST_SECRET" },
		"password": func(c *Config) { c.User, c.Password.Env = "me", "HTTP_TEST_SECRET" },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := s.config()
			edit(&cfg)
			archivetest.KeepSecrets(t, open(t, cfg), "planted-secret", "bWU6cGxhbnRlZC1zZWNyZXQ=")
		})
	}
}

func TestConfigIsChecked(t *testing.T) {
	good := DefaultConfig()
	good.URL = "https://data.example/sst"
	open := func(c Config) error {
		_, err := New(c, fetch.Politeness{})
		return err
	}
	archivetest.CheckConfigs(t, good, "planted", "http", open, []archivetest.ConfigCase[Config]{
		{Name: "no url", Edit: func(c *Config) { c.URL = "" }, Key: "url"},
		{Name: "ftp url", Edit: func(c *Config) { c.URL = "ftp://data.example" }, Key: "url"},
		{Name: "url with a password", Edit: func(c *Config) { c.URL = "https://me:planted@data.example/" }, Key: "url"},
		{Name: "broken url with a password", Edit: func(c *Config) { c.URL = "https://me:planted@data.example:port/" }, Key: "url"},
		{Name: "manifest elsewhere", Edit: func(c *Config) { c.Manifest = "../x" }, Key: "manifest"},
		{Name: "token and user", Edit: func(c *Config) { c.Token.Env, c.User = "A", "me" }, Key: "token"},
		{Name: "password without user", Edit: func(c *Config) { c.Password.Env = "A" }, Key: "user"},
		{Name: "no objects", Edit: func(c *Config) { c.MaxObjects = 0 }, Key: "max_objects"},
		{Name: "no timeout", Edit: func(c *Config) { c.Web.Timeout = 0 }, Key: "timeout"},
	})
}

func find(t *testing.T, a *Archive, name string) fetch.Object {
	t.Helper()
	objects, err := a.List(t.Context(), fetch.Scope{})
	must(t, err)
	for _, o := range objects {
		if o.Name == name {
			return o
		}
	}
	t.Fatalf("%s is not listed", name)
	return fetch.Object{}
}
