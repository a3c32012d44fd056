package cmems

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lacuna/fetch"
	"lacuna/fetch/archivetest"
)

func TestCMEMSConforms(t *testing.T) {
	archivetest.Run(t, func(t *testing.T) archivetest.Fixture {
		s := newService(t)
		a := open(t, s.config(t))
		return archivetest.Fixture{
			Archive: a,
			Put:     func(name string, content []byte, _ time.Time) { s.put(t, "202311", name, content) },
			Remove: func(name string) {
				_, err := s.backend.DeleteObject(bucket, prefix("202311")+"/"+name)
				must(t, err)
			},
			Sever: func() { must(t, s.backend.ForceDeleteBucket(bucket)) },
			Refuse: func() {
				s.set(func() { s.password = "changed" })
				a.checked = a.checked.Add(-checkEvery) // a day later
			},
			Summed: true,
		}
	})
}

func TestInterimFilesAreListedBesideFinalOnes(t *testing.T) {
	s := newService(t)
	final := "2024/10/20241020_" + dataset + ".nc"
	interim := "2024/10/20241021_" + strings.Replace(dataset, "_my_", "_myint_", 1) + ".nc"
	s.put(t, "202311", final, []byte("final"))
	s.put(t, "202311", interim, []byte("interim"))
	objects, err := open(t, s.config(t)).List(t.Context(), fetch.Scope{Prefixes: []string{"2024/10/"}})
	must(t, err)
	if len(objects) != 2 {
		t.Fatalf("List() = %v, want two files", objects)
	}
}

func TestOneHostOfEachKindMayBeDown(t *testing.T) {
	for _, down := range [][]string{{"direct"}, {"cdn"}, {"waw4"}, {"waw3"}, {"auth"}, {"direct", "waw4", "auth"}} {
		t.Run(strings.Join(down, " and "), func(t *testing.T) {
			s := newService(t)
			s.put(t, "202311", "2024/10/a.nc", []byte("a"))
			for _, host := range down {
				s.down[host] = true
			}
			a := open(t, s.config(t))
			objects, err := a.List(t.Context(), fetch.Scope{})
			if err != nil || len(objects) != 1 {
				t.Fatalf("List() = %v, %v; want the file", objects, err)
			}
			notices, err := a.Notices(t.Context())
			must(t, err)
			degraded := 0
			for _, n := range notices {
				if n.Kind == Degraded {
					degraded++
				}
			}
			if want := len(down); down[0] != "cdn" && degraded != want {
				t.Errorf("%d notices of hosts that are down, want %d: %v", degraded, want, notices)
			}
		})
	}
}

func TestBothHostsDownIsAnError(t *testing.T) {
	for _, down := range [][]string{{"direct", "cdn"}, {"waw3", "waw4"}} {
		s := newService(t)
		for _, host := range down {
			s.down[host] = true
		}
		if objects, err := open(t, s.config(t)).List(t.Context(), fetch.Scope{}); err == nil || errors.Is(err, fetch.ErrPermanent) {
			t.Errorf("List() with %v down = %v, %v; want an error that passes", down, objects, err)
		}
	}
}

func TestCatalogueThatWasReadServesWhileAllAreDown(t *testing.T) {
	s := newService(t)
	s.put(t, "202311", "a.nc", []byte("a"))
	a := open(t, s.config(t))
	_, err := a.List(t.Context(), fetch.Scope{})
	must(t, err)
	s.set(func() { s.down["direct"], s.down["cdn"] = true, true })
	must(t, a.outdate(t.Context()))
	if objects, err := a.List(t.Context(), fetch.Scope{}); err != nil || len(objects) != 1 {
		t.Errorf("List() = %v, %v; want the file", objects, err)
	}
}

func TestVersionIsChosenOnceAndKept(t *testing.T) {
	s := newService(t)
	s.put(t, "202311", "old.nc", []byte("old"))
	s.put(t, "202411", "new.nc", []byte("new"))
	cfg := s.config(t)
	cfg.Version, cfg.PinFile = "", filepath.Join(t.TempDir(), "pin")
	a := open(t, cfg)
	if v, err := a.Version(t.Context()); err != nil || v != "202311" {
		t.Fatalf("Version() = %q, %v", v, err)
	}
	s.set(func() { // a new version enters into service, the old one stays for five weeks
		both := []release{
			{label: "202311", retired: time.Now().Add(35 * 24 * time.Hour).UTC().Format(time.RFC3339)},
			{label: "202411", released: time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)},
		}
		s.releases = map[string][]release{"waw4": both, "waw3": both}
	})
	for range 2 { // after a refresh, and after a restart
		must(t, a.outdate(t.Context()))
		objects, err := a.List(t.Context(), fetch.Scope{})
		if err != nil || len(objects) != 1 || objects[0].Name != "old.nc" {
			t.Errorf("List() = %v, %v; want the version that was chosen first", objects, err)
		}
		notices, err := a.Notices(t.Context())
		must(t, err)
		kinds := []Kind{}
		for _, n := range notices {
			kinds = append(kinds, n.Kind)
		}
		if want := []Kind{Retiring, NewVersion}; !slices.Equal(kinds, want) {
			t.Errorf("Notices() = %v, want %v", kinds, want)
		}
		a = open(t, cfg)
	}
}

func TestVersionThatIsGoneIsNotReplaced(t *testing.T) {
	s := newService(t)
	s.put(t, "202411", "new.nc", []byte("new"))
	s.releases = map[string][]release{"waw4": {{label: "202411"}}, "waw3": {{label: "202411"}}}
	objects, err := open(t, s.config(t)).List(t.Context(), fetch.Scope{})
	if !errors.Is(err, fetch.ErrPermanent) || len(objects) != 0 || !strings.Contains(err.Error(), "202411") {
		t.Errorf("List() = %v, %v; want ErrPermanent and the versions there are", objects, err)
	}
}

func TestChosenVersionIsTheOneToStay(t *testing.T) {
	now := day(2026, 11, 15)
	v := func(label string, released, retired time.Time) Version {
		return Version{Label: label, Released: released, Retired: retired}
	}
	never := time.Time{}
	for _, tt := range []struct {
		name     string
		versions []Version
		want     string
	}{
		{"one", []Version{v("202311", never, never)}, "202311"},
		{"the newest", []Version{v("202311", never, never), v("202411", never, never)}, "202411"},
		{"not a retired one", []Version{v("202411", never, day(2026, 1, 1)), v("202311", never, never)}, "202311"},
		{"not one to be retired", []Version{v("202411", never, day(2027, 1, 1)), v("202311", never, never)}, "202311"},
		{"the one retired later", []Version{v("202411", never, day(2027, 1, 1)), v("202311", never, day(2028, 1, 1))}, "202311"},
		{"not one that is not out", []Version{v("202702", day(2027, 2, 1), never), v("202311", never, day(2027, 3, 1))}, "202311"},
		{"not one in preparation", []Version{{Label: "202702", Preparation: true}, v("202311", never, never)}, "202311"},
		{"one to come, if there is no other", []Version{v("202702", day(2027, 2, 1), never)}, "202702"},
		{"none", []Version{v("202311", never, day(2026, 1, 1))}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := choose(tt.versions, now)
			if got.Label != tt.want || ok != (tt.want != "") {
				t.Errorf("choose() = %q, %v; want %q", got.Label, ok, tt.want)
			}
		})
	}
}

func TestNoticesTellWhatChanges(t *testing.T) {
	now := day(2026, 11, 15)
	got := notices("d", "202311", []Version{
		{Label: "202207", Retired: day(2025, 1, 1)},
		{Label: "202211"},
		{Label: "202311", Retired: day(2026, 12, 1)},
		{Label: "202411", Released: day(2026, 10, 1)},
		{Label: "202702", Released: day(2027, 2, 1)},
	}, now)
	want := []Notice{
		{Kind: Retiring, Dataset: "d", Version: "202311", At: day(2026, 12, 1)},
		{Kind: NewVersion, Dataset: "d", Version: "202411", At: day(2026, 10, 1)},
		{Kind: ComingVersion, Dataset: "d", Version: "202702", At: day(2027, 2, 1)},
	}
	for i := range got {
		got[i].Text = ""
	}
	if !slices.Equal(got, want) {
		t.Errorf("notices() = %v\nwant %v", got, want)
	}
	if got := notices("d", "202311", []Version{{Label: "202311", Retired: day(2026, 11, 1)}}, now); len(got) != 1 || got[0].Kind != Retired {
		t.Errorf("notices() of a retired version = %v", got)
	}
}

func TestPartsAndNeighboursAreNotMixedUp(t *testing.T) {
	for id, want := range map[string][3]string{
		"a_P1D_202311":                {"a_P1D", "202311", ""},
		"a_P1D":                       {"a_P1D", "default", ""},
		"a_P1D_202311--ext--monthly":  {"a_P1D", "202311", "monthly"},
		"a_P1D_202311--ext--default":  {"a_P1D", "202311", ""},
		"a_P1D_202313":                {"a_P1D_202313", "default", ""},
		"a_P1D_my_2023_P1D--ext--bgc": {"a_P1D_my_2023_P1D", "default", "bgc"},
	} {
		dataset, version, part := parseItem(id)
		if got := [3]string{dataset, version, part}; got != want {
			t.Errorf("parseItem(%q) = %q, want %q", id, got, want)
		}
	}
}

func TestRequestsNameProgramAndUserButNoSecret(t *testing.T) {
	s := newService(t)
	s.put(t, "202311", "a.nc", []byte("a"))
	_, err := open(t, s.config(t)).List(t.Context(), fetch.Scope{})
	must(t, err)
	for _, r := range s.requests() {
		if r.UserAgent() != "lacuna/1.2" {
			t.Errorf("%s has the User-Agent %q", r.URL.Path, r.UserAgent())
		}
		if strings.Contains(r.URL.String(), "opensesame") {
			t.Errorf("a URL holds the password: %s", r.URL)
		}
		if strings.HasPrefix(r.URL.Path, "/auth/") {
			continue
		}
		if q := r.URL.Query(); q.Get("x-cop-user") != "marine1" || q.Get("x-cop-client") != "lacuna" || q.Get("x-cop-client-version") != "1.2" {
			t.Errorf("%s was asked with %v", r.URL.Path, q)
		}
		if r.Header.Get("Authorization") != "" {
			t.Errorf("%s was sent an authorization", r.URL.Path)
		}
	}
}

func TestRefusedLoginIsPermanentAndHidesThePassword(t *testing.T) {
	s := newService(t)
	s.password = "another"
	_, err := open(t, s.config(t)).List(t.Context(), fetch.Scope{})
	if !errors.Is(err, fetch.ErrPermanent) {
		t.Errorf("List() = %v, want ErrPermanent", err)
	}
	if strings.Contains(fmt.Sprintf("%+v", err), "opensesame") {
		t.Errorf("the error shows the password: %v", err)
	}
}

func TestLoginIsCheckedOnceADay(t *testing.T) {
	s := newService(t)
	a := open(t, s.config(t))
	logins := func() (n int) {
		_, err := a.List(t.Context(), fetch.Scope{})
		must(t, err)
		for _, r := range s.requests() {
			if strings.HasSuffix(r.URL.Path, "/token") {
				n++
			}
		}
		return n
	}
	first, second := logins(), logins()
	a.checked = a.checked.Add(-checkEvery)
	if third := logins(); first != 1 || second != 0 || third != 1 {
		t.Errorf("logins: %d at first, %d at once after, %d a day later; want 1, 0, 1", first, second, third)
	}
}

func TestCredentialsAreFoundWhereTheToolboxKeepsThem(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("COPERNICUSMARINE_CREDENTIALS_DIRECTORY", "")
	t.Setenv("COPERNICUSMARINE_SERVICE_USERNAME", "")
	t.Setenv("COPERNICUSMARINE_SERVICE_PASSWORD", "")
	a := &Archive{}
	if _, _, err := a.credentials(); !errors.Is(err, errNoCredentials) {
		t.Errorf("without any: %v", err)
	}
	put := func(home, user string) {
		dir := filepath.Join(home, ".copernicusmarine")
		must(t, os.MkdirAll(dir, 0o700))
		text := base64.StdEncoding.EncodeToString([]byte("[credentials]\nusername = " + user + "\npassword = pass=word\n\n"))
		must(t, os.WriteFile(filepath.Join(dir, ".copernicusmarine-credentials"), []byte(text+"\n"), 0o600))
	}
	want := func(user, password string) {
		t.Helper()
		got, secret, err := a.credentials()
		if err != nil || got != user || secret.Reveal() != password {
			t.Errorf("credentials() = %q, %q, %v; want %q, %q", got, secret.Reveal(), err, user, password)
		}
	}
	put(home, "from-home")
	want("from-home", "pass=word")
	elsewhere := t.TempDir()
	put(elsewhere, "from-directory")
	t.Setenv("COPERNICUSMARINE_CREDENTIALS_DIRECTORY", elsewhere)
	want("from-directory", "pass=word")
	t.Setenv("COPERNICUSMARINE_SERVICE_USERNAME", "from-environment")
	t.Setenv("COPERNICUSMARINE_SERVICE_PASSWORD", "p")
	want("from-environment", "p")
	t.Setenv("CMEMS_TEST_PASSWORD", "given")
	a.cfg.User, a.cfg.Password.Env = "me", "CMEMS_TEST_PASSWORD"
	want("me", "given")
}

func TestWaitingForTheCatalogueEndsWithTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &Archive{turn: make(chan struct{}, 1)}
		a.turn <- struct{}{} // somebody reads the catalogue
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := a.Open(ctx, fetch.Object{}, 0); !errors.Is(err, ctx.Err()) || err == nil {
			t.Errorf("Open() = %v, want %v", err, ctx.Err())
		}
	})
}

func day(y int, m time.Month, d int) time.Time { return time.Date(y, m, d, 0, 0, 0, 0, time.UTC) }

func TestSecretsAreKept(t *testing.T) {
	s := newService(t)
	cfg := s.config(t)
	s.set(func() { s.password = "changed" })
	archivetest.KeepSecrets(t, open(t, cfg), "opensesame")
	s.set(func() {
		s.password = "opensesame"
		s.down["waw3"], s.down["waw4"] = true, true
	})
	archivetest.KeepSecrets(t, open(t, cfg), "opensesame")
}

func TestConfigIsChecked(t *testing.T) {
	good := DefaultConfig()
	good.Dataset, good.Version = dataset, "202311"
	open := func(c Config) error {
		_, err := New(c, fetch.Politeness{})
		return err
	}
	archivetest.CheckConfigs(t, good, "planted", "cmems", open, []archivetest.ConfigCase[Config]{
		{Name: "no dataset", Edit: func(c *Config) { c.Dataset = "" }, Key: "dataset"},
		{Name: "version that is none", Edit: func(c *Config) { c.Version = "latest" }, Key: "version"},
		{Name: "neither version nor pin", Edit: func(c *Config) { c.Version = "" }, Key: "version and pin_file"},
		{Name: "no configuration", Edit: func(c *Config) { c.ConfigURLs = nil }, Key: "config_urls"},
		{Name: "configuration with a password", Edit: func(c *Config) { c.ConfigURLs = []string{"https://me:planted@x.example"} }, Key: "config_urls"},
		{Name: "login nowhere", Edit: func(c *Config) { c.AuthURL = "" }, Key: "auth_url"},
		{Name: "password without user", Edit: func(c *Config) { c.Password.Env = "A" }, Key: "user"},
		{Name: "no refresh", Edit: func(c *Config) { c.Refresh = 0 }, Key: "refresh"},
		{Name: "no timeout", Edit: func(c *Config) { c.Web.Timeout = 0 }, Key: "timeout"},
	})
}
