package compiled

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/go-xla/pkg/pjrt"
)

// The plug-in of testdata through the real binding: what is compiled once is loaded from
// then on, by another client too, and whatever may not be used is compiled again.
func TestAProgramIsCompiledOnce(t *testing.T) {
	plugin, log := buildPlugin(t), filepath.Join(t.TempDir(), "compiled")
	for name, value := range map[string]string{"PLUGIN_COMPILED": log, "PLUGIN_VERSION": "1", "PLUGIN_KIND": "card", "PLUGIN_DEVICES": "1"} {
		t.Setenv(name, value)
	}
	dir := filepath.Join(t.TempDir(), "programs")
	if err := Load(plugin, dir); err != nil {
		t.Fatal(err)
	}
	if err := Load(plugin, dir); err != nil {
		t.Errorf("the same plug-in a second time: %v", err)
	}
	if err := Load(plugin+"2", dir); err == nil {
		t.Error("a second plug-in was taken")
	}

	var want []string
	compile := func(when, code string, compiles bool) {
		t.Helper()
		found, err := pjrt.GetPlugin(plugin)
		if err != nil {
			t.Fatal(err)
		}
		client, err := found.NewClient(nil)
		if err != nil {
			t.Fatal(err)
		}
		program, err := client.Compile().WithHLO([]byte(code)).Done()
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if compiles {
			want = append(want, code)
		}
		got, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		if program.Name != code || program.NumOutputs != 0 || strings.Join(strings.Fields(string(got)), " ") != strings.Join(want, " ") {
			t.Errorf("%s: got the program %q, with %d errors kept, and %q were compiled; want %q, 0 and %q", when, program.Name, program.NumOutputs, got, code, want)
		}
	}
	compile("first", "one", true)
	compile("again", "one", false)
	compile("another program", "two", true)
	compile("that again", "two", false)
	compile("the first again", "one", false)

	t.Setenv("PLUGIN_KIND", "another card")
	compile("on another card", "one", true)
	t.Setenv("PLUGIN_KIND", "card")
	t.Setenv("PLUGIN_VERSION", "2")
	compile("by another version", "one", true)
	t.Setenv("PLUGIN_VERSION", "1")
	t.Setenv("PLUGIN_DEVICES", "2")
	compile("for several cards", "one", true)
	compile("for several cards again", "one", true)
	t.Setenv("PLUGIN_DEVICES", "1")
	compile("as at first", "one", false)

	client := func() *pjrt.Client {
		found, _ := pjrt.GetPlugin(plugin)
		c, err := found.NewClient(nil)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}()
	if _, err := client.Compile().WithHLO([]byte("wrong")).Done(); err == nil {
		t.Error("a program that does not compile is no error")
	}

	spoil := func(how func(path string)) {
		files, err := filepath.Glob(filepath.Join(dir, "*.xla"))
		if err != nil || len(files) == 0 {
			t.Fatalf("programs kept: %q, %v", files, err)
		}
		for _, file := range files {
			how(file)
		}
	}
	spoil(func(path string) {
		if err := os.Truncate(path, 34); err != nil {
			t.Fatal(err)
		}
	})
	compile("with a damaged file", "one", true)
	compile("after that", "one", false)
	spoil(func(path string) {
		name := filepath.Base(path)
		if err := (folder{dir, limit}).write(name, []byte("of another layout")); err != nil {
			t.Fatal(err)
		}
	})
	compile("with what the plug-in refuses", "one", true)
	compile("after that", "one", false)
	spoil(func(path string) {
		if err := os.Chmod(path, 0o666); err != nil {
			t.Fatal(err)
		}
	})
	compile("with what others may change", "one", true)
	compile("after that", "one", false)
}

// buildPlugin compiles the plug-in of testdata with the header of the binding.
func buildPlugin(t *testing.T) string {
	t.Helper()
	binding, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/gomlx/go-xla").Output()
	if err != nil {
		t.Fatalf("find the binding: %v", err)
	}
	plugin := filepath.Join(t.TempDir(), "plugin.so")
	out, err := exec.Command("gcc", "-shared", "-fPIC", "-I", filepath.Join(strings.TrimSpace(string(binding)), "pkg", "pjrt"),
		"-o", plugin, filepath.Join("testdata", "plugin.c")).CombinedOutput()
	if err != nil {
		t.Fatalf("build the plug-in: %v\n%s", err, out)
	}
	return plugin
}
