package archivetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"lacuna/internal/checkout"
)

// Example reads the example of a kind of archive in docs/archives.md into its
// settings, and returns the bbox beside it. Keys that the settings do not have
// fail the test. The archive's own test points it at a server of ours and lists
// it, so that nobody is shown what does not work.
func Example(t *testing.T, kind string, settings any) []float64 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(checkout.Root(t), "docs", "archives.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(text), "```yaml\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		var shown struct {
			Datasets []struct {
				BBox    []float64      `yaml:"bbox"`
				Archive map[string]any `yaml:"archive"`
			} `yaml:"datasets"`
		}
		if err := yaml.Unmarshal([]byte(block), &shown); err != nil {
			t.Fatalf("docs/archives.md: %v", err)
		}
		for _, d := range shown.Datasets {
			if d.Archive["type"] != kind {
				continue
			}
			section, err := yaml.Marshal(d.Archive[kind])
			if err != nil {
				t.Fatal(err)
			}
			if err := yaml.UnmarshalWithOptions(section, settings, yaml.Strict()); err != nil {
				t.Fatalf("docs/archives.md, %s: %v", kind, err)
			}
			return d.BBox
		}
	}
	t.Fatalf("docs/archives.md has no example of %s", kind)
	return nil
}
