package stac

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lacuna/fetch"
	"lacuna/fetch/archivetest"
	"lacuna/internal/bbox"
)

func TestSTACConforms(t *testing.T) {
	for _, tt := range []struct{ full, post bool }{{true, false}, {false, true}} {
		t.Run(fmt.Sprintf("items give size and checksum %v, pages by POST %v", tt.full, tt.post), func(t *testing.T) {
			archivetest.Run(t, func(t *testing.T) archivetest.Fixture {
				c := newCatalogue(t, tt.full, tt.post)
				t.Setenv("STAC_TEST_TOKEN", "opensesame")
				c.token = "opensesame"
				cfg := c.config()
				cfg.Token.Env = "STAC_TEST_TOKEN"
				return archivetest.Fixture{
					Archive: open(t, cfg),
					Put: func(name string, content []byte, modTime time.Time) {
						c.put(name, file{content: content, modTime: modTime})
					},
					Remove: func(name string) { c.set(func(c *catalogue) { delete(c.files, name) }) },
					Sever:  func() { c.set(func(c *catalogue) { c.severed = true }) },
					Refuse: func() { c.set(func(c *catalogue) { c.token = "changed" }) },
					Summed: tt.full,
				}
			})
		})
	}
}

func TestASearchAsksForTheDaysAndTheBoxAndSaysWhoAsks(t *testing.T) {
	c := newCatalogue(t, true, false)
	for day := 1; day <= 9; day++ {
		c.put(fmt.Sprintf("chl_2024050%d", day), file{content: []byte("x"), when: fmt.Sprintf("2024-05-0%dT00:00:00Z", day), box: []float64{27, 40, 42, 47}})
	}
	c.put("chl_20240508_pacific", file{content: []byte("x"), when: "2024-05-08T00:00:00Z", box: []float64{150, -10, -170, 10}})
	cfg := c.config()
	cfg.Box = bbox.Box{West: 20, South: 38, East: 43, North: 48}
	objects, err := open(t, cfg).List(t.Context(), fetch.Scope{Since: time.Date(2024, 5, 7, 13, 0, 0, 0, time.UTC)})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range objects {
		names = append(names, o.Name)
	}
	if got := strings.Join(names, " "); got != "chl_20240507 chl_20240508 chl_20240509" {
		t.Errorf("listed are %s, want the three days since the 7th in the box", got)
	}
	first := c.requests()[0]
	if q := first.URL.Query(); q.Get("bbox") != "20,38,43,48" || q.Get("datetime") != "2024-05-07T00:00:00Z/.." || first.UserAgent() != "lacuna/test" {
		t.Errorf("asked was %v by %q", q, first.UserAgent())
	}
}

func TestAnItemWithoutADayInItsNameGetsOneFromItsTime(t *testing.T) {
	c := newCatalogue(t, true, false)
	c.put("scene.nc", file{content: []byte("x"), when: "2024-05-03T09:00:00Z"})
	objects, err := open(t, c.config()).List(t.Context(), fetch.Scope{})
	if err != nil || len(objects) != 1 || objects[0].Name != "2024/05/03/scene.nc" {
		t.Errorf("List() = %+v, %v", objects, err)
	}
}

func TestTheHostOfAnAssetIsAskedOnceForEachVersion(t *testing.T) {
	c := newCatalogue(t, false, false)
	c.put("a_20240501.nc", file{content: []byte("a")})
	c.full = true // items have a time, and no size by the fault below
	c.fault = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/stac/search" {
			return false
		}
		rec := httptest.NewRecorder()
		c.search(rec, r)
		var page map[string]any
		if err := json.Unmarshal(rec.Body.Bytes(), &page); err != nil {
			t.Error(err)
		}
		for _, f := range page["features"].([]any) {
			delete(f.(map[string]any)["assets"].(map[string]any)["data"].(map[string]any), "file:size")
		}
		_ = json.NewEncoder(w).Encode(page)
		return true
	}
	a := open(t, c.config())
	heads := func() (n int) {
		if _, err := a.List(t.Context(), fetch.Scope{}); err != nil {
			t.Fatal(err)
		}
		for _, r := range c.requests() {
			if r.Method == http.MethodHead {
				n++
			}
		}
		return n
	}
	if n := heads(); n != 1 {
		t.Errorf("the first listing made %d HEAD requests, want 1", n)
	}
	if n := heads(); n != 0 {
		t.Errorf("a listing of what is known made %d HEAD requests, want none", n)
	}
	c.put("a_20240501.nc", file{content: []byte("new"), modTime: time.Date(2024, 6, 1, 0, 0, 0, 0, time.UTC)})
	if n := heads(); n != 1 {
		t.Errorf("a new version made %d HEAD requests, want 1", n)
	}
}

func TestFaultsOfAnAPIAreToldInASentence(t *testing.T) {
	answer := func(kind, text string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write([]byte(text))
			return true
		}
	}
	items := func(assets string) string {
		return `{"features":[{"id":"a_20240501","assets":` + assets + `}]}`
	}
	for _, tt := range []struct {
		name  string
		fault func(http.ResponseWriter, *http.Request) bool
		want  string
	}{
		{"a web page", answer("text/html", "<html>Sign in</html>"), "answered with a web page"},
		{"a web page that says it is JSON", answer("application/json", "<html>Sign in</html>"), "invalid character '<'"},
		{"another document", answer("application/json", `{"type":"Catalog","links":[]}`), "no features"},
		{"half a page", answer("application/json", `{"features":[{"id":"a"`), "unexpected EOF"},
		{"pages in a circle", answer("application/json", `{"features":[],"links":[{"rel":"next","href":"/stac/search?x=1"}]}`), "go in a circle"},
		{"pages on another host", answer("application/json", `{"features":[],"links":[{"rel":"next","href":"https://elsewhere.example/search"}]}`), "another host"},
		{"no NetCDF", answer("application/json", items(`{"x":{"href":"https://h.example/x.png"}}`)), "none of its assets is NetCDF; set asset"},
		{"two assets that are NetCDF", answer("application/json", items(`{"x":{"href":"https://h.example/x.nc"},"y":{"href":"https://h.example/y.nc"}}`)), "2 of its assets are NetCDF; set asset"},
		{"an asset of a local file", answer("application/json", items(`{"x":{"href":"file:///etc/x.nc"}}`)), "not at an address of http"},
		{"no such search", func(w http.ResponseWriter, r *http.Request) bool { http.NotFound(w, r); return true }, "is url the landing page"},
		{"forbidden", func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusForbidden); return true }, "ask for access"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCatalogue(t, true, false)
			c.fault = tt.fault
			objects, err := open(t, c.config()).List(t.Context(), fetch.Scope{})
			if err == nil || !strings.Contains(err.Error(), tt.want) || len(objects) != 0 {
				t.Errorf("List() = %v, %v; want an error with %q", objects, err, tt.want)
			}
		})
	}
}

func TestABusyAPIIsLeftAloneForAsLongAsItSays(t *testing.T) {
	c := newCatalogue(t, true, false)
	c.fault = func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	}
	_, err := open(t, c.config()).List(t.Context(), fetch.Scope{})
	var after *fetch.RetryAfterError
	if !errors.As(err, &after) || after.After != 7*time.Second {
		t.Errorf("List() = %v, want to wait 7 s", err)
	}
}

func TestASearchWithoutEndIsBounded(t *testing.T) {
	c := newCatalogue(t, true, false)
	c.fault = func(w http.ResponseWriter, _ *http.Request) bool {
		_, _ = fmt.Fprint(w, `{"features":[`)
		for i := range archivetest.Many {
			if _, err := fmt.Fprintf(w, `{"id":"a_%d.nc","assets":{"d":{"href":"/x.nc","file:size":1}},"properties":{"updated":"2024-05-01T00:00:00Z"}},`, i); err != nil {
				return true
			}
		}
		return true
	}
	cfg := c.config()
	cfg.MaxObjects = 3000
	archivetest.CheckBounded(t, open(t, cfg), "max_objects", 3000)
}

func TestATokenGoesToTheAPIAndToNamedHostsOnly(t *testing.T) {
	t.Setenv("STAC_TEST_TOKEN", "opensesame")
	var got []string
	assets := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization"))
		_, _ = w.Write([]byte("bytes"))
	}))
	defer assets.Close()
	for _, named := range []bool{false, true} {
		got = nil
		c := newCatalogue(t, true, false)
		c.token = "opensesame"
		c.fault = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Header.Get("Authorization") == "" {
				return false
			}
			_, _ = fmt.Fprintf(w, `{"features":[{"id":"a_20240501.nc","assets":{"d":{"href":"%s/a.nc","file:size":5}},"properties":{"updated":"2024-05-01T00:00:00Z"}}]}`, assets.URL)
			return true
		}
		cfg := c.config()
		cfg.Token.Env = "STAC_TEST_TOKEN"
		want := ""
		cfg.Hosts = []string{assets.URL}
		if named {
			cfg.Hosts, cfg.TokenHosts = nil, []string{assets.URL}
			want = "Bearer opensesame"
		}
		a := open(t, cfg)
		objects, err := a.List(t.Context(), fetch.Scope{})
		if err != nil || len(objects) != 1 {
			t.Fatalf("List() = %v, %v", objects, err)
		}
		if text, err := read(t, a, objects[0]); err != nil || text != "bytes" {
			t.Fatalf("read %q, %v", text, err)
		}
		if len(got) != 1 || got[0] != want {
			t.Errorf("the host of assets, named %v, got %q, want %q", named, got, want)
		}
	}
}

func TestNetrcLogsInOnTheWayToAnAsset(t *testing.T) {
	// The host of the data sends to a login on another host, which checks the
	// password and sends back with a code, for which the data's host gives a cookie.
	var login *httptest.Server
	data := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch cookie, err := r.Cookie("session"); {
		case r.URL.Path == "/back" && r.URL.Query().Get("code") == "42":
			http.SetCookie(w, &http.Cookie{Name: "session", Value: "mine", Path: "/"})
			http.Redirect(w, r, "/a.nc", http.StatusFound)
		case err == nil && cookie.Value == "mine":
			_, _ = w.Write([]byte("bytes"))
		default:
			http.Redirect(w, r, login.URL+"/authorize", http.StatusFound)
		}
	}))
	defer data.Close()
	var asked []string
	login = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("Authorization"))
		if user, password, _ := r.BasicAuth(); user != "ada" || password != "lovelace" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		http.Redirect(w, r, data.URL+"/back?code=42", http.StatusFound)
	}))
	defer login.Close()
	// Two names of this machine, so that each is a host of its own in .netrc.
	login.URL = strings.Replace(login.URL, "127.0.0.1", "localhost", 1)

	c := newCatalogue(t, true, false)
	c.fault = func(w http.ResponseWriter, _ *http.Request) bool {
		_, _ = fmt.Fprintf(w, `{"features":[{"id":"a_20240501.nc","assets":{"d":{"href":"%s/a.nc","file:size":5}},"properties":{"updated":"2024-05-01T00:00:00Z"}}]}`, data.URL)
		return true
	}
	netrc := filepath.Join(t.TempDir(), "netrc")
	text := "# mine\ndefault login nobody password everybody\nmachine localhost\n  login ada\n  password lovelace\n"
	if err := os.WriteFile(netrc, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := c.config()
	cfg.Netrc, cfg.Hosts = netrc, []string{data.URL, login.URL}
	a := open(t, cfg)
	objects, err := a.List(t.Context(), fetch.Scope{})
	if err != nil || len(objects) != 1 {
		t.Fatalf("List() = %v, %v", objects, err)
	}
	if got, err := read(t, a, objects[0]); err != nil || got != "bytes" {
		t.Errorf("read %q, %v", got, err)
	}
	for _, r := range c.requests() {
		if r.Header.Get("Authorization") != "" {
			t.Error("the API, which .netrc does not name, got credentials")
		}
	}
	if len(asked) != 1 {
		t.Errorf("the login was asked %d times, want once", len(asked))
	}
	if err := os.Chmod(netrc, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := a.List(t.Context(), fetch.Scope{}); !errors.Is(err, fetch.ErrPermanent) || !errors.Is(err, fetch.ErrExposed) {
		t.Errorf("a .netrc that others may read: %v, want a refusal", err)
	}
}

func TestACatalogueLeadsToNoOtherHost(t *testing.T) {
	asked := 0
	inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		_, _ = w.Write([]byte("only this machine may read me"))
	}))
	defer inside.Close()
	c := newCatalogue(t, true, false)
	c.fault = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasPrefix(r.URL.Path, "/data/") {
			http.Redirect(w, r, inside.URL+"/latest/meta-data", http.StatusFound)
			return true
		}
		_, _ = fmt.Fprintf(w, `{"features":[{"id":"a_20240501.nc","assets":{"d":{"href":"%s/a.nc","file:size":5}},"properties":{"updated":"2024-05-01T00:00:00Z"}},
{"id":"b_20240501.nc","assets":{"d":{"href":"/data/b.nc","file:size":5}},"properties":{"updated":"2024-05-01T00:00:00Z"}}]}`, inside.URL)
		return true
	}
	a := open(t, c.config())
	objects, err := a.List(t.Context(), fetch.Scope{})
	if err != nil || len(objects) != 2 {
		t.Fatalf("List() = %v, %v", objects, err)
	}
	for _, o := range objects { // by its address, and by a redirect
		if text, err := read(t, a, o); !errors.Is(err, fetch.ErrUnacceptable) || !strings.Contains(err.Error(), "setting hosts") {
			t.Errorf("%s reads as %q, %v; want a refusal that names hosts", o.Name, text, err)
		}
	}
	if asked != 0 {
		t.Errorf("a host that nobody named was asked %d times", asked)
	}
}

func TestHostsAreOverHTTPSUnlessTheSettingsSayOtherwise(t *testing.T) {
	hosts := []string{"data.example.org", "mirror.example:8443", "*.cloudfront.net", "http://127.0.0.1:9000"}
	for address, want := range map[string]bool{
		"https://data.example.org/x": true, "https://DATA.example.org:443/x": true, "http://data.example.org/x": false, "https://data.example.org:444/x": false,
		"https://mirror.example:8443/x": true, "https://mirror.example/x": false, "https://abc.cloudfront.net/x": true, "https://cloudfront.net/x": false,
		"https://evilcloudfront.net/x": false, "http://abc.cloudfront.net/x": false, "https://abc.cloudfront.net:99/x": false,
		"http://127.0.0.1:9000/x": true, "https://127.0.0.1:9000/x": false, "https://data.example.org.evil.example/x": false,
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if got := among(hosts, u); got != want {
			t.Errorf("%s is allowed: %v, want %v", address, got, want)
		}
	}
}

func TestNetrcIsReadAsCurlReadsIt(t *testing.T) {
	got := parseNetrc("machine A.example login u1 password p1\nmacdef init\nmachine evil login x password y\n\nmachine b.example\nlogin u2\npassword \"p2\"\nmachine a.example login late password late\n# machine c.example login u3\ndefault login d password d\n")
	if len(got) != 2 || got["a.example"] != (account{"u1", "p1"}) || got["b.example"] != (account{"u2", "p2"}) {
		t.Errorf("parseNetrc: %d hosts, a.example has user %q", len(got), got["a.example"].user)
	}
}

func TestSTACKeepsSecrets(t *testing.T) {
	c := newCatalogue(t, true, false)
	c.fault = func(w http.ResponseWriter, r *http.Request) bool {
		http.Error(w, "no: "+r.Header.Get("Authorization")+r.URL.String(), http.StatusTeapot)
		return true
	}
	t.Setenv("STAC_TEST_TOKEN", "hunter2-token")
	cfg := c.config()
	cfg.Token.Env = "STAC_TEST_TOKEN"
	archivetest.KeepSecrets(t, open(t, cfg), "hunter2-token")
	netrc := filepath.Join(t.TempDir(), "netrc")
	if err := os.WriteFile(netrc, []byte("machine 127.0.0.1 login ada password hunter3-password"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg = c.config()
	cfg.Netrc = netrc
	archivetest.KeepSecrets(t, open(t, cfg), "hunter3-password")
}

func TestSTACConfigFaultsNameTheKey(t *testing.T) {
	good := DefaultConfig()
	good.URL, good.Collections = "https://stac.example.org", []string{"chl"}
	archivetest.CheckConfigs(t, good, "hunter2", "stac", func(c Config) error { _, err := New(c, fetch.Politeness{}); return err },
		[]archivetest.ConfigCase[Config]{
			{Name: "no address", Edit: func(c *Config) { c.URL = "" }, Key: "url"},
			{Name: "a password in the address", Edit: func(c *Config) { c.URL = "https://u:hunter2@stac.example.org" }, Key: "url"},
			{Name: "no collections", Edit: func(c *Config) { c.Collections = nil }, Key: "collections"},
			{Name: "token and netrc", Edit: func(c *Config) { c.Token.Env, c.Netrc = "X", "y" }, Key: "token"},
			{Name: "hosts without a token", Edit: func(c *Config) { c.TokenHosts = []string{"a"} }, Key: "token_hosts"},
			{Name: "a path as host", Edit: func(c *Config) { c.Token.Env, c.TokenHosts = "X", []string{"https://a/b"} }, Key: "token_hosts"},
			{Name: "a token for anybody", Edit: func(c *Config) { c.Token.Env, c.TokenHosts = "X", []string{"*.a"} }, Key: "token_hosts"},
			{Name: "nothing as host", Edit: func(c *Config) { c.Hosts = []string{""} }, Key: "hosts"},
			{Name: "no page", Edit: func(c *Config) { c.PageSize = 0 }, Key: "page_size"},
			{Name: "no objects", Edit: func(c *Config) { c.MaxObjects = 0 }, Key: "max_objects"},
			{Name: "no time", Edit: func(c *Config) { c.Web.Timeout = 0 }, Key: "timeout"},
		})
}

func TestTheExampleOfTheHandbookWorks(t *testing.T) {
	cfg := DefaultConfig()
	box, err := bbox.Of(archivetest.Example(t, "stac", &cfg))
	if err != nil {
		t.Fatal(err)
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	c := newCatalogue(t, true, false)
	c.token = "opensesame"
	c.put("mur_20240501", file{content: []byte("a map"), when: "2024-05-01T09:00:00Z", box: []float64{-180, -90, 180, 90}})
	c.put("mur_20240501_pacific", file{content: []byte("another"), when: "2024-05-01T09:00:00Z", box: []float64{150, -20, -150, 20}})
	secret := filepath.Join(t.TempDir(), "earthdata.token")
	if err := os.WriteFile(secret, []byte("opensesame\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if cfg.Token.File == "" || len(cfg.TokenHosts) == 0 {
		t.Errorf("the example has no token: %+v", cfg)
	}
	cfg.URL, cfg.Collections, cfg.Token.File, cfg.Box = c.URL+"/stac", []string{"chl"}, secret, box // those of our server
	a := open(t, cfg)
	objects, err := a.List(t.Context(), fetch.Scope{})
	if err != nil || len(objects) != 1 {
		t.Fatalf("List() = %v, %v; want the item in the box", objects, err)
	}
	if text, err := read(t, a, objects[0]); err != nil || text != "a map" {
		t.Errorf("read %q, %v", text, err)
	}
}
