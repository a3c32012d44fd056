package supply

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestNoLinkedPackageHasAKnownVulnerability(t *testing.T) {
	p := built(t)
	database, err := Database(os.Getenv("LACUNA_VULNDB"), sources(t))
	if errors.Is(err, ErrNoDatabase) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	found, err := Vulnerabilities(t.Context(), p.Path, database)
	if err != nil {
		t.Fatal(err)
	}
	exceptions, err := Exceptions()
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range Judge(found, exceptions) {
		t.Error(fault)
	}
}

func TestLinkedModulesAreNotBelowTheirFloors(t *testing.T) {
	faults, err := BelowFloors(built(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range faults {
		t.Error(fault)
	}
}

// A database with one vulnerability, of which the program has the package or
// has not.
func TestVulnerabilityIsFoundWhereItsPackageIsLinkedIn(t *testing.T) {
	p := built(t)
	for name, test := range map[string]struct {
		module, pkg, fixed string
		found              bool
	}{
		"open":               {"github.com/spf13/cobra", "github.com/spf13/cobra", "", true},
		"fixed later":        {"github.com/spf13/cobra", "github.com/spf13/cobra", "99.0.0", true},
		"fixed before":       {"github.com/spf13/cobra", "github.com/spf13/cobra", "1.0.0", false},
		"package not linked": {"github.com/spf13/cobra", "github.com/spf13/cobra/doc/none", "", false},
		"module not linked":  {"example.com/none", "example.com/none", "", false},
		"standard library":   {"stdlib", "net/http", "1.99.0", true},
		"older Go":           {"stdlib", "net/http", "1.20.0", false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			events := `{"introduced":"0"}`
			if test.fixed != "" {
				events += `,{"fixed":"` + test.fixed + `"}`
			}
			write(t, filepath.Join(dir, "GO-2026-0001.json"), fmt.Appendf(nil, `{"schema_version":"1.3.1","id":"GO-2026-0001",
				"modified":"2026-11-16T00:00:00Z","published":"2026-11-16T00:00:00Z","summary":"It breaks",
				"affected":[{"package":{"name":%q,"ecosystem":"Go"},"ranges":[{"type":"SEMVER","events":[%s]}],
				"ecosystem_specific":{"imports":[{"path":%q}]}}]}`, test.module, events, test.pkg))
			database, err := Database(dir, Sources{})
			if err != nil {
				t.Fatal(err)
			}
			found, err := Vulnerabilities(t.Context(), p.Path, database)
			if err != nil {
				t.Fatal(err)
			}
			if !test.found {
				if len(found) != 0 {
					t.Errorf("found %+v, want nothing", found)
				}
				return
			}
			if len(found) != 1 || found[0].ID != "GO-2026-0001" || found[0].Package != test.pkg || found[0].Summary != "It breaks" {
				t.Errorf("found %+v, want the one of %s", found, test.pkg)
			}
		})
	}
}

func TestFindingsAndExceptionsMustMatch(t *testing.T) {
	one := Finding{ID: "GO-1", Summary: "It breaks", Module: "a.org/a", Version: "v1.0.0", Package: "a.org/a/b", Fixed: "v1.1.0"}
	open := Finding{ID: "GO-2", Module: "a.org/a", Package: "a.org/a/c"}
	for name, test := range map[string]struct {
		found      []Finding
		exceptions string
		want       []string // in the faults, in order
	}{
		"nothing":         {nil, "# nothing\n", nil},
		"found":           {[]Finding{one}, "", []string{"GO-1: It breaks: package a.org/a/b of a.org/a v1.0.0: mended in v1.1.0"}},
		"found, no cure":  {[]Finding{open}, "", []string{"no version mends it"}},
		"excepted":        {[]Finding{one}, "GO-1 2026-11-16 never called\n", nil},
		"another's":       {[]Finding{one, open}, "GO-1 2026-11-16 never called\n", []string{"GO-2"}},
		"exception stale": {nil, "GO-1 2026-11-16 never called\n", []string{"GO-1: is an exception and no longer found"}},
	} {
		t.Run(name, func(t *testing.T) {
			exceptions, err := readExceptions(test.exceptions)
			if err != nil {
				t.Fatal(err)
			}
			match(t, Judge(test.found, exceptions), test.want)
		})
	}
	for _, text := range []string{"GO-1\n", "GO-1 2026-11-16\n", "GO-1 soon never called\n"} {
		if _, err := readExceptions(text); err == nil {
			t.Errorf("%q is an exception, want one with a date and a reason", text)
		}
	}
}

func TestModuleBelowItsFloorIsNamed(t *testing.T) {
	p := Program{Modules: []Module{{std, "go1.26.8", ""}, {"a.org/a", "v1.9.0", ""}, {"b.org/b", "v0.0.0-20260101000000-aaaaaaaaaaaa", ""}}}
	for floors, want := range map[string][]string{
		"# none\n\n":                      nil,
		"a.org/a v1.10.0 GO-1 it breaks":  {"a.org/a v1.9.0: older than v1.10.0, GO-1: it breaks"},
		"a.org/a v1.9.0 GO-1 it breaks":   nil,
		"std go1.26.10 GO-1 it breaks":    {"std go1.26.8: older than go1.26.10"},
		"std go1.26.8 GO-1 it breaks":     nil,
		"b.org/b v0.0.1 GO-1 it breaks":   {"b.org/b"},
		"gone.org/a v1.0.0 GO-1 it broke": {"gone.org/a: is no longer linked in"},
	} {
		faults, err := below(p, floors)
		if err != nil {
			t.Fatal(err)
		}
		match(t, faults, want)
	}
	for _, floors := range []string{"a.org/a v1.0.0 GO-1", "a.org/a 1.0.0 GO-1 it breaks", "std v1.26.0 GO-1 it breaks"} {
		if _, err := below(p, floors); err == nil {
			t.Errorf("%q is a floor, want MODULE VERSION ID REASON", floors)
		}
	}
}

func TestDatabaseIsTheOneNamedOrTheOneInTheCache(t *testing.T) {
	cache := Sources{ModCache: t.TempDir()}
	if _, err := Database("", cache); !errors.Is(err, ErrNoDatabase) {
		t.Errorf("an empty cache gives %v, want ErrNoDatabase", err)
	}
	osv := filepath.Join(cache.ModCache, "golang.org/x/vulndb@"+strings.TrimSpace(databaseVersion), "data/osv")
	write(t, filepath.Join(osv, "GO-1.json"), nil)
	for named, want := range map[string]string{
		"": "file://" + osv, "/srv/vulndb": "file:///srv/vulndb", "https://vuln.example.org": "https://vuln.example.org",
	} {
		if got, err := Database(named, cache); err != nil || got != want {
			t.Errorf("database %q is at %s (%v), want %s", named, got, err, want)
		}
	}
}

func TestRetractedAndAbandonedModulesAreNamed(t *testing.T) {
	faults, untold, err := readWithdrawn(strings.NewReader(`{"Path":"a.org/a","Version":"v1.0.0"}
		{"Path":"b.org/b","Version":"v1.0.0","Retracted":["leaks","breaks"]}
		{"Path":"c.org/c","Version":"v1.0.0","Deprecated":"use d"}
		{"Path":"d.org/d","Version":"v1.0.0","Error":{"Err":"403"}}`))
	if err != nil {
		t.Fatal(err)
	}
	match(t, faults, []string{"b.org/b v1.0.0: retracted by its authors: leaks; breaks", "c.org/c v1.0.0: given up by its authors: use d"})
	if !slices.Equal(untold, []string{"d.org/d"}) {
		t.Errorf("nothing is told of %q, want d.org/d", untold)
	}
}

func TestLibrariesAreListedByTheirPackage(t *testing.T) {
	paths := sharedLibraries("\tlinux-vdso.so.1 (0x0001)\n\tlibm.so.6 => /lib/x/libm.so.6 (0x0002)\n" +
		"\tlibc.so.6 => /lib/x/libc.so.6 (0x0003)\n\tlibown.so => /opt/libown.so (0x4)\n\tlibgone.so => not found\n\t/lib64/ld-linux.so.2 (0x0005)\n")
	if want := []string{"/lib/x/libm.so.6", "/lib/x/libc.so.6", "/opt/libown.so", "/lib64/ld-linux.so.2"}; !slices.Equal(paths, want) {
		t.Fatalf("libraries %q, want %q", paths, want)
	}
	libraries, known := byPackage(paths, "libc6:amd64: /usr/lib/x/libm.so.6\nlibc6:amd64: /lib/x/libc.so.6\nlibc6:amd64: /lib64/ld-linux.so.2\n")
	if !slices.Equal(known, []string{"libc6"}) {
		t.Errorf("packages %q, want libc6", known)
	}
	slices.SortFunc(libraries, func(a, b Library) int { return strings.Compare(a.Package, b.Package) })
	if len(libraries) != 2 || libraries[0].Package != "libc6" || len(libraries[0].Sonames) != 3 || libraries[1].Package != "libown.so" {
		t.Errorf("libraries %+v, want three of libc6 and libown.so by itself", libraries)
	}
}

// match checks that the faults contain the texts that are wanted, one each.
func match(t *testing.T, faults, want []string) {
	t.Helper()
	if len(faults) != len(want) {
		t.Errorf("faults %q, want %q", faults, want)
		return
	}
	for i, fault := range faults {
		if !strings.Contains(fault, want[i]) {
			t.Errorf("fault %q, want %q", fault, want[i])
		}
	}
}
