package supply

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/licenseclassifier/v2/assets"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "supply")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	programFile = filepath.Join(dir, "lacuna")
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

var programFile string

var build = sync.OnceValue(func() error {
	out, err := exec.Command("go", "build", "-ldflags", "-w", "-o", programFile, "lacuna/daemon/cmd/lacuna").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
})

// built returns the program as it is shipped, and its build information.
func built(t *testing.T) Program {
	t.Helper()
	if testing.Short() {
		t.Skip("links the program; leave -short out to run it")
	}
	if err := build(); err != nil {
		t.Fatal(err)
	}
	p, err := Read(programFile)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func sources(t *testing.T) Sources {
	t.Helper()
	s, err := FindSources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestLicenceOfEveryLinkedModuleMayBeLinkedIn(t *testing.T) {
	p := built(t)
	c, err := NewClassifier()
	if err != nil {
		t.Fatal(err)
	}
	byModule, faults := Licences(p, sources(t), c)
	for _, fault := range faults {
		t.Error(fault)
	}
	if len(byModule) != len(p.Modules) {
		t.Errorf("licences of %d modules, want of all %d", len(byModule), len(p.Modules))
	}
	if got := byModule["github.com/spf13/cobra"]; !slices.Equal(got, []string{"Apache-2.0"}) {
		t.Errorf("cobra is under %v, want Apache-2.0", got)
	}
}

func TestModuleUnderAForbiddenOrUnknownLicenceIsNamed(t *testing.T) {
	c, err := NewClassifier()
	if err != nil {
		t.Fatal(err)
	}
	gpl, err := assets.ReadLicenseFile("License/GPL-3.0/license.txt")
	if err != nil {
		t.Fatal(err)
	}
	isc, err := assets.ReadLicenseFile("License/ISC/license.txt")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		files map[string][]byte
		want  string // in the one fault; empty for none
	}{
		"allowed":        {map[string][]byte{"LICENSE": isc}, ""},
		"forbidden":      {map[string][]byte{"COPYING": gpl}, "GPL-3.0"},
		"one of two":     {map[string][]byte{"LICENSE": isc, "LICENSE.lib": gpl}, "GPL-3.0"},
		"unknown":        {map[string][]byte{"LICENSE.txt": []byte("All rights reserved. Ask us.")}, "unknown licence"},
		"none":           {map[string][]byte{"README.md": isc}, "no licence file"},
		"empty":          {map[string][]byte{"LICENSE": nil}, "unknown licence"},
		"not downloaded": {nil, "go mod download"},
	} {
		t.Run(name, func(t *testing.T) {
			s := Sources{ModCache: t.TempDir()}
			m := Module{Path: "example.com/Owner/module", Version: "v1.0.0"}
			dir, err := s.Dir(m)
			if err != nil {
				t.Fatal(err)
			}
			for file, text := range test.files {
				write(t, filepath.Join(dir, file), text)
			}
			_, faults := Licences(Program{Modules: []Module{m}}, s, c)
			if test.want == "" && len(faults) == 0 {
				return
			}
			if len(faults) != 1 || test.want == "" || !strings.Contains(faults[0], test.want) || !strings.Contains(faults[0], m.Path) {
				t.Errorf("faults %q, want one with the module and %q", faults, test.want)
			}
		})
	}
}

func TestDeveloperToolsAreNotLinkedIn(t *testing.T) {
	for _, m := range built(t).Modules {
		for _, tool := range []string{"cyclonedx", "licenseclassifier", "golang.org/x/vuln"} {
			if strings.Contains(strings.ToLower(m.Path), tool) {
				t.Errorf("%s is linked into the program", m.Path)
			}
		}
	}
}

// bill returns the bill of the program as 'make sbom' makes it.
func bill(t *testing.T) ([]byte, Parts) {
	t.Helper()
	p := built(t)
	t.Chdir("../..")
	runtime := os.Getenv("LACUNA_ONNXRUNTIME")
	if _, err := os.Stat(runtime); err != nil {
		runtime = ""
	}
	parts, err := Gather(t.Context(), p.Path, runtime, "modelstore/starters/versions")
	if err != nil {
		t.Fatal(err)
	}
	parts.Version = "v1-test"
	data, err := Bill(parts)
	if err != nil {
		t.Fatal(err)
	}
	return data, parts
}

// The schemas come with the module that writes the bill, as its authors, who
// keep the specification, publish them.
func TestBillKeepsToTheSpecification(t *testing.T) {
	data, _ := bill(t)
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	for name, file := range map[string]string{
		"bom-1.6.schema.json": "bom-1.6.schema.json", "spdx.schema.json": "spdx.schema.json",
		"jsf-0.82.schema.json": "jsf-0.82.schemax.json",
	} {
		text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "schema", file))
		if err != nil {
			t.Fatal(err)
		}
		schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := compiler.AddResource("http://cyclonedx.org/schema/"+name, schema); err != nil {
			t.Fatal(err)
		}
	}
	schema, err := compiler.Compile("http://cyclonedx.org/schema/bom-1.6.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, old, new string
		valid          bool
	}{
		{name: "as it is", valid: true},
		{name: "no such licence", old: `"id": "Apache-2.0"`, new: `"id": "Apache-9"`},
		{name: "go.sum as a file's hash", old: `"alg": "SHA-256"`, new: `"alg": "h1"`},
		{name: "a number that is no UUID", old: `urn:uuid:`, new: `urn:`},
	} {
		text := strings.ReplaceAll(string(data), test.old, test.new)
		if test.old == "" {
			text = string(data)
		}
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); (err == nil) != test.valid {
			t.Errorf("%s: valid %v, want %v: %v", test.name, err == nil, test.valid, err)
		}
	}
}

func TestBillListsLinkedLoadedAndBuiltInParts(t *testing.T) {
	data, parts := bill(t)
	var bom cdx.BOM
	if err := json.Unmarshal(data, &bom); err != nil {
		t.Fatal(err)
	}
	byName := make(map[string]cdx.Component)
	for _, c := range *bom.Components {
		byName[c.Name] = c
	}
	for _, m := range parts.Program.Modules {
		c, ok := byName[m.Path]
		switch {
		case !ok:
			t.Errorf("%s is linked in and not listed", m.Path)
		case c.Hashes != nil:
			t.Errorf("%s has a hash of a file, want its line of go.sum as a property", m.Path)
		case c.Licenses == nil:
			t.Errorf("%s has no licence", m.Path)
		case m.Path != std && (*c.Properties)[0].Value != m.Sum:
			t.Errorf("%s has sum %v, want %s", m.Path, *c.Properties, m.Sum)
		}
	}
	if got, want := byName["github.com/spf13/cobra"].PackageURL, "pkg:golang/github.com/spf13/cobra@v"; !strings.HasPrefix(got, want) {
		t.Errorf("cobra is %q, want %s…", got, want)
	}
	for _, file := range []string{"chl", "sst"} {
		sum, err := Sum("modelstore/starters/versions/" + file + ".tar")
		if err != nil {
			t.Fatal(err)
		}
		c := byName["starter-"+file]
		if c.Hashes == nil || (*c.Hashes)[0].Value != sum || !strings.HasPrefix(c.Version, c.Name+"-20") {
			t.Errorf("starter %s is %+v, want its version and sha256 %s", file, c, sum)
		}
	}
	for _, soname := range []string{"libnetcdf.so", "libhdf5", "libc.so"} {
		if !strings.Contains(string(data), `"value": "`+soname) {
			t.Errorf("%s is loaded and not listed", soname)
		}
	}
}

func TestSamePartsGiveTheSameBillInAnyOrder(t *testing.T) {
	parts := Parts{
		Version: "v1", SHA256: strings.Repeat("a", 64), Own: []string{"MIT"},
		Program:   Program{Modules: []Module{{std, "go1.26.0", ""}, {"b.org/b", "v2.0.0+incompatible", "h1:b="}, {"a.org/a", "v1.0.0", "h1:a="}}},
		Licences:  map[string][]string{"a.org/a": {"BSD-3-Clause", "MIT"}, "b.org/b": {"ISC"}},
		Libraries: []Library{{Package: "libc6", Version: "1:2", Arch: "amd64", System: "debian", Sonames: []string{"libm.so.6", "libc.so.6"}}, {Package: "liba.so"}},
		Files:     []File{{Kind: cdx.ComponentTypeLibrary, Name: "y"}, {Kind: cdx.ComponentTypeLibrary, Name: "x"}},
	}
	first, err := Bill(parts)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(parts.Program.Modules)
	slices.Reverse(parts.Libraries)
	slices.Reverse(parts.Libraries[1].Sonames)
	slices.Reverse(parts.Files)
	second, err := Bill(parts)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Errorf("two bills of the same parts differ:\n%s\n%s", first, second)
	}
	for _, want := range []string{`"pkg:golang/b.org/b@v2.0.0%2Bincompatible"`, `"BSD-3-Clause AND MIT"`, `"pkg:deb/debian/libc6@1:2?arch=amd64"`} {
		if !bytes.Contains(first, []byte(want)) {
			t.Errorf("%s is missing in %s", want, first)
		}
	}
	parts.Version = "v2"
	third, err := Bill(parts)
	if err != nil {
		t.Fatal(err)
	}
	if serial(t, third) == serial(t, first) {
		t.Error("another program has the serial number of the first")
	}
}

func serial(t *testing.T, data []byte) string {
	t.Helper()
	var bom cdx.BOM
	if err := json.Unmarshal(data, &bom); err != nil || bom.SerialNumber == "" {
		t.Fatalf("no serial number: %v", err)
	}
	return bom.SerialNumber
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// Go as a Python package has no licence at its top, and one of the same authors below it.
func TestTheStandardLibraryHasALicenceWithoutOneAtItsTop(t *testing.T) {
	root := t.TempDir()
	of := func() string {
		t.Helper()
		dir, err := Sources{GoRoot: root}.Dir(Module{Path: std})
		if err != nil {
			t.Fatal(err)
		}
		return dir
	}
	if got := of(); got != root {
		t.Errorf("without any licence it is looked for in %s", got)
	}
	beside := filepath.Join(root, "src", "cmd", "vendor", "golang.org", "x", "mod")
	write(t, filepath.Join(beside, "LICENSE"), []byte("a licence"))
	if got := of(); got != beside {
		t.Errorf("the licence is in %s, and is looked for in %s", beside, got)
	}
	write(t, filepath.Join(root, "LICENSE"), []byte("a licence"))
	if got := of(); got != root {
		t.Errorf("with its own it is looked for in %s", got)
	}
}
