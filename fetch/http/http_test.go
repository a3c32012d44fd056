package http

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
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
	"lacuna/fetch/archivetest"
)

// site is a web server over a folder, with index pages or a manifest.
type site struct {
	*httptest.Server
	root   string
	style  string // apache, nginx, bare or manifest
	tags   bool   // answers have an ETag
	token  atomic.Value
	heads  atomic.Int32
	fault  func(w http.ResponseWriter, r *http.Request) bool // true: it has answered
	agents chan string
}

func newSite(t *testing.T, style string, tags bool) *site {
	t.Helper()
	s := &site{root: filepath.Join(t.TempDir(), "data"), style: style, tags: tags, agents: make(chan string, 1000)}
	must(t, os.Mkdir(s.root, 0o755))
	s.token.Store("")
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case s.agents <- r.UserAgent():
	default:
	}
	if s.fault != nil && s.fault(w, r) {
		return
	}
	if token := s.token.Load().(string); token != "" && r.Header.Get("Authorization") != "Bearer "+token {
		http.Error(w, "who are you, "+r.Header.Get("Authorization")+"?", http.StatusUnauthorized)
		return
	}
	name, ok := strings.CutPrefix(r.URL.Path, "/pub/")
	if !ok {
		http.NotFound(w, r)
		return
	}
	if name == "MANIFEST" && s.style == "manifest" {
		s.manifest(w)
		return
	}
	file := filepath.Join(s.root, filepath.FromSlash(name))
	info, err := os.Stat(file)
	switch {
	case err != nil:
		http.NotFound(w, r)
	case info.IsDir():
		s.index(w, r, file)
	default:
		s.file(w, r, file)
	}
}

func (s *site) file(w http.ResponseWriter, r *http.Request, file string) {
	if r.Method == http.MethodHead {
		s.heads.Add(1)
	}
	f, err := os.Open(file)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	defer f.Close()
	info, _ := f.Stat()
	if s.tags {
		w.Header().Set("ETag", fmt.Sprintf(`"%x-%x"`, info.ModTime().UnixNano(), info.Size()))
	}
	http.ServeContent(w, r, "", info.ModTime(), f)
}

func (s *site) index(w http.ResponseWriter, r *http.Request, dir string) {
	entries, _ := os.ReadDir(dir)
	w.Header().Set("Content-Type", "text/html;charset=utf-8")
	fmt.Fprintf(w, `<html><head><title>Index</title></head><body><h1>Index of %s</h1><pre>
<a href="?C=N;O=D">Name</a> <a href="?C=M;O=A">Last modified</a><hr><a href="../">../</a> <a href="/pub/">Top</a>
<a href="https://elsewhere.example/x.nc">mirror</a> <a href="#top">up</a>`, r.URL.Path)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue
		}
		name, size := e.Name(), fmt.Sprint(info.Size())
		href := (&url.URL{Path: "./" + name}).String()[2:]
		if e.IsDir() {
			name, href, size = name+"/", href+"/", "-"
		}
		label, when := html.EscapeString(name), info.ModTime().UTC()
		switch s.style {
		case "apache":
			fmt.Fprintf(w, `<tr><td><img src="/i.gif" alt="[ ]"></td><td><a href="%s">%s</a></td><td align="right">%s  </td><td align="right">%sK</td></tr>`,
				href, label, when.Format("2006-01-02 15:04"), size)
		case "nginx":
			fmt.Fprintf(w, "<a href=\"%s\">%s</a>      %s      %s\n", href, label, when.Format("02-Jan-2006 15:04"), size)
		default:
			fmt.Fprintf(w, "<a href=\"%s\">a file</a>\n", href)
		}
	}
	fmt.Fprint(w, "</pre></body></html>")
}

func (s *site) manifest(w http.ResponseWriter) {
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	if _, err := os.Stat(s.root); err != nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	fmt.Fprintln(w, "# files of today")
	must(filepath.WalkDir(s.root, func(file string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(s.root, file)
		must(err)
		content, err := os.ReadFile(file)
		must(err)
		info, err := d.Info()
		must(err)
		sum := sha256.Sum256(content)
		if len(content)%2 == 0 { // both forms in one manifest
			fmt.Fprintf(w, "%x  %s\n", sum, name)
			return nil
		}
		line, err := json.Marshal(map[string]any{
			"name": name, "size": len(content), "mtime": info.ModTime().UTC(), "sha256": hex.EncodeToString(sum[:]),
		})
		must(err)
		fmt.Fprintf(w, "%s\n", line)
		return nil
	}))
}

func (s *site) config() Config {
	cfg := DefaultConfig()
	cfg.URL = s.URL + "/pub"
	cfg.Web.Timeout = 5 * time.Second
	if s.style == "manifest" {
		cfg.Manifest = "MANIFEST"
	}
	return cfg
}

func (s *site) put(t *testing.T, name string, content []byte, modTime time.Time) {
	t.Helper()
	file := filepath.Join(s.root, name)
	must(t, os.MkdirAll(filepath.Dir(file), 0o755))
	must(t, os.WriteFile(file+".writing~", content, 0o644))
	must(t, os.Chtimes(file+".writing~", modTime, modTime))
	must(t, os.Rename(file+".writing~", file))
}

func open(t *testing.T, cfg Config) *Archive {
	t.Helper()
	a, err := New(cfg, fetch.Politeness{UserAgent: "lacuna/test"})
	must(t, err)
	return a
}

func TestHTTPConforms(t *testing.T) {
	for _, tt := range []struct {
		style string
		tags  bool
	}{{"apache", true}, {"nginx", false}, {"bare", true}, {"manifest", true}, {"manifest", false}} {
		t.Run(fmt.Sprintf("%s, tags %v", tt.style, tt.tags), func(t *testing.T) {
			archivetest.Run(t, func(t *testing.T) archivetest.Fixture {
				s := newSite(t, tt.style, tt.tags)
				t.Setenv("HTTP_TEST_TOKEN", "opensesame")
				s.token.Store("opensesame")
				cfg := s.config()
				cfg.Token.Env = "HTTP_TEST_TOKEN"
				return archivetest.Fixture{
					Archive: open(t, cfg),
					Put:     func(name string, content []byte, modTime time.Time) { s.put(t, name, content, modTime) },
					Remove:  func(name string) { must(t, os.Remove(filepath.Join(s.root, name))) },
					Sever:   func() { must(t, os.Rename(s.root, s.root+".gone")) },
					Refuse:  func() { s.token.Store("changed") },
					Summed:  tt.style == "manifest",
				}
			})
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
