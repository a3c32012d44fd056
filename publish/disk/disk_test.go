package disk

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var someDay = time.Date(2021, 1, 5, 23, 30, 0, 0, time.UTC)

func TestPutLaysProductsOutByDatasetYearAndMonth(t *testing.T) {
	root := t.TempDir()
	got, err := Store{root}.Put(context.Background(), "chl_l4", someDay, "20210105_chl", content("abc"))
	if err != nil {
		t.Fatal(err)
	}
	want := Stored{
		Path: filepath.Join(root, "chl_l4", "2021", "01", "20210105_chl.nc"), Bytes: 3, New: true,
		SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte("abc"))),
	}
	if got != want {
		t.Errorf("Put() = %+v, want %+v", got, want)
	}
	side, err := os.ReadFile(want.Path + ".sha256")
	if err != nil || string(side) != want.SHA256+"  20210105_chl.nc\n" {
		t.Errorf("side file is %q, %v", side, err)
	}
	if names := list(t, root); len(names) != 2 {
		t.Errorf("store holds %v, want the product and its side file only", names)
	}
}

func TestDayIsCountedInUTC(t *testing.T) {
	east := time.FixedZone("east", 3600)
	path, err := Store{"r"}.Path("d", time.Date(2021, 2, 1, 0, 30, 0, 0, east), "n.nc")
	if want := filepath.Join("r", "d", "2021", "01", "n.nc"); err != nil || path != want {
		t.Errorf("Path() = %s, %v, want %s", path, err, want)
	}
}

func TestPuttingTheSameBytesAgainChangesNothing(t *testing.T) {
	s := Store{t.TempDir()}
	first := put(t, s, "abc")
	long := time.Unix(1e9, 0)
	if err := os.Chtimes(first.Path, long, long); err != nil {
		t.Fatal(err)
	}
	second := put(t, s, "abc")
	info, err := os.Stat(first.Path)
	if err != nil || !info.ModTime().Equal(long) || second.New {
		t.Errorf("the product was written again: %v, %v, new %v", info.ModTime(), err, second.New)
	}
	if third := put(t, s, "abcd"); !third.New || third.SHA256 == first.SHA256 {
		t.Errorf("other bytes did not replace the product: %+v", third)
	}
}

func TestPuttingAgainMendsAMissingSideFileAndADamagedProduct(t *testing.T) {
	s := Store{t.TempDir()}
	first := put(t, s, "abc")
	if err := os.Remove(first.sidePath()); err != nil {
		t.Fatal(err)
	}
	if put(t, s, "abc"); !first.holds() {
		t.Error("side file is still missing")
	}
	if err := os.WriteFile(first.Path, []byte("ab"), 0o600); err != nil {
		t.Fatal(err)
	}
	if put(t, s, "abc"); !first.holds() {
		t.Error("product is still damaged")
	}
}

func TestFailureLeavesTheOldProductAndNothingElse(t *testing.T) {
	boom := errors.New("boom")
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	tests := []struct {
		name  string
		ctx   context.Context
		write func(string) error
		want  error
	}{
		{"writer fails half way", context.Background(), func(path string) error {
			return errors.Join(os.WriteFile(path, []byte("half"), 0o600), boom)
		}, boom},
		{"writer writes nothing", context.Background(), func(string) error { return nil }, fs.ErrNotExist},
		{"cancelled", cancelled, content("new"), context.Canceled},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := Store{t.TempDir()}
			old := put(t, s, "old")
			before := list(t, s.Root)
			if _, err := s.Put(tt.ctx, "d", someDay, "n", tt.write); !errors.Is(err, tt.want) {
				t.Errorf("Put() = %v, want %v", err, tt.want)
			}
			if !old.holds() || !slices.Equal(list(t, s.Root), before) {
				t.Errorf("store holds %v, was %v", list(t, s.Root), before)
			}
		})
	}
}

func TestNamesThatLeadElsewhereAreRefused(t *testing.T) {
	for _, bad := range []string{"", ".", "..", "../x", "a/b", `a\b`, "a\nb", "a\x00b", ".hidden", "\xff", strings.Repeat("x", 300)} {
		s := Store{t.TempDir()}
		if _, err := s.Put(context.Background(), "d", someDay, bad, content("x")); err == nil {
			t.Errorf("product name %q was accepted", bad)
		}
		if _, err := s.Put(context.Background(), bad, someDay, "n", content("x")); err == nil {
			t.Errorf("dataset name %q was accepted", bad)
		}
		if names := list(t, s.Root); len(names) != 0 {
			t.Errorf("a refused name left %v", names)
		}
	}
}

func TestSideFileFitsTheProductAfterARace(t *testing.T) {
	s := Store{t.TempDir()}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 5 {
				text := strings.Repeat(fmt.Sprint(i, j), 1+i)
				if _, err := s.Put(context.Background(), "d", someDay, "n", content(text)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	path, _ := s.Path("d", someDay, "n")
	sum, n, err := sumAndSync(path)
	if last := (Stored{Path: path, SHA256: sum, Bytes: n}); err != nil || !last.holds() {
		t.Errorf("side file does not fit the product, %v", err)
	}
	if names := list(t, s.Root); len(names) != 2 {
		t.Errorf("store holds %v, want two files", names)
	}
}

func content(text string) func(string) error {
	return func(path string) error { return os.WriteFile(path, []byte(text), 0o600) }
}

func put(t *testing.T, s Store, text string) Stored {
	t.Helper()
	stored, err := s.Put(context.Background(), "d", someDay, "n", content(text))
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

// list returns the files under root.
func list(t *testing.T, root string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
