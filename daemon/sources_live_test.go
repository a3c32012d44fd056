package daemon

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestFaultsOfSourcesAreNamed(t *testing.T) {
	const head = "state_dir: var\nproducts_dir: out\ndatasets:\n  - name: chl\n    sources:\n"
	for _, tt := range []struct{ name, text, want string }{
		{"two sources", "      - {name: a, archive: {dir: x}}\n      - {name: b, error: 0.1, archive: {dir: y}}\n", ""},
		{"one name", "      - {name: a, archive: {dir: x}}\n      - {name: a, archive: {dir: y}}\n", "which another source has"},
		{"a name that is a flag", "      - {name: none, archive: {dir: x}}\n", "neither none nor adjusted"},
		{"no place", "      - {name: a}\n", "dir is empty"},
		{"an archive beside them", "      - {name: a, archive: {dir: x}}\n    archive: {dir: z}\n", "archive and sources are both given"},
		{"a negative error", "      - {name: a, error: -1, archive: {dir: x}}\n", "error is -1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := parseConfig("f", []byte(head+tt.text))
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("parseConfig() = %v, want a message with %q", err, tt.want)
			}
		})
	}
}

// A running service makes the product of a day from its first source, and again when
// the second brings it.
func TestSourcesAreMergedAsTheyCome(t *testing.T) {
	b := newDuo(t, 3)
	b.bring(t, 0, 0)
	d := b.daemon(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	sums := func() string {
		files, _ := filepath.Glob(filepath.Join(b.cfg.ProductsDir, "sea", "2*", "*", "*.sha256"))
		if len(files) != 1 {
			return ""
		}
		text, _ := os.ReadFile(files[0])
		return string(text)
	}
	await := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("waited a minute for %s", what)
			}
		}
	}
	await("the product of the first source", func() bool { return sums() != "" })
	before := sums()
	b.bring(t, 1, 0)
	await("the product of both", func() bool { return sums() != before })
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Run() = %v", err)
	}
}
