package publish

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A file is not hashed again until somebody writes to it, replaces it, or it has lain
// there for long: else a sink would tell that the bytes are the promised ones, and they
// are not.
func TestAFileIsHashedAgainWhenItMayBeAnother(t *testing.T) {
	content := []byte("a product that was made")
	sum := sha256.Sum256(content)
	want := hex.EncodeToString(sum[:])
	other := []byte("a product that was else")
	for name, tt := range map[string]struct {
		then  func(t *testing.T, path string) time.Duration
		known bool
	}{
		"nothing happens": {then: func(*testing.T, string) time.Duration { return 0 }, known: true},
		"it gets a second name": {then: func(t *testing.T, path string) time.Duration {
			if err := os.Link(path, path+".link"); err != nil {
				t.Fatal(err)
			}
			return time.Minute
		}, known: true},
		"it is written to": {then: func(t *testing.T, path string) time.Duration {
			time.Sleep(20 * time.Millisecond) // the clock of file systems ticks slowly
			if err := os.WriteFile(path, other, 0o600); err != nil {
				t.Fatal(err)
			}
			return 0
		}},
		"it is replaced": {then: func(t *testing.T, path string) time.Duration {
			if err := os.WriteFile(path+".new", other, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
			return 0
		}},
		"time passes": {then: func(*testing.T, string) time.Duration { return 11 * time.Minute }},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "product.nc")
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			now := time.Date(2026, 11, 19, 0, 0, 0, 0, time.UTC)
			h := &Hashed{now: func() time.Time { return now }}
			p := Product{Path: path, SHA256: want, Hashed: h}
			has := func() bool {
				f, err := os.Open(path)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				return h.Has(f, want)
			}
			if has() {
				t.Fatal("known before it was hashed")
			}
			if err := p.CheckFiles(); err != nil || !has() {
				t.Fatalf("hashed with %v, known: %v", err, has())
			}
			now = now.Add(tt.then(t, path))
			if got := has(); got != tt.known {
				t.Errorf("known: %v", got)
			}
			there, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.CheckFiles(); errors.Is(err, ErrPermanent) != (string(there) != string(content)) {
				t.Errorf("of %q: %v", there, err)
			}
		})
	}
}

// What is not believed any more does not stay in memory.
func TestHashesOfAYearAreNotKept(t *testing.T) {
	now := time.Now()
	h := &Hashed{now: func() time.Time { return now }}
	dir := t.TempDir()
	for i := range 3 * hashedMost {
		path := filepath.Join(dir, "file")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path, filepath.Join(dir, time.Duration(i).String())); err != nil {
			t.Fatal(err)
		}
		h.Note(filepath.Join(dir, time.Duration(i).String()), "sum")
		now = now.Add(time.Second)
	}
	if n := len(h.files); n > hashedMost {
		t.Errorf("%d are kept", n)
	}
	(*Hashed)(nil).Note(dir, "sum")
}
