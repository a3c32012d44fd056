package checkout

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Planted builds the test program of a package with a bug: a piece of a file of the
// checkout, which must be there once, is replaced. It returns the path of the
// program.
func Planted(t testing.TB, pkg, file, code, planted string) string {
	t.Helper()
	root, dir := Root(t), t.TempDir()
	source, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(source), code) != 1 {
		t.Fatalf("%s has %q not once: plant the bug elsewhere", file, code)
	}
	changed, overlay, program := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "lacuna.test")
	table, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(root, file): changed}})
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]string{changed: strings.Replace(string(source), code, planted, 1), overlay: string(table)} {
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", program, pkg)
	c.Dir = root
	if said, err := c.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, said)
	}
	return program
}
