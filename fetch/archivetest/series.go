package archivetest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"lacuna/fetch"
)

// SeriesFixture is an archive that makes an object of every time of a series,
// under names of its own, with functions that change the series. In the
// beginning the series has one map, of SeriesStart.
type SeriesFixture struct {
	Archive fetch.Archive
	// Put makes or replaces the map of a time, all cells of which have value.
	Put func(at time.Time, value float32)
	// Remove takes the map of a time away.
	Remove func(at time.Time)
	// Value returns the value that the bytes of an object have in all cells.
	Value func(content []byte) (float32, error)
	// Sever makes the root unreachable.
	Sever func()
	// Refuse makes the host turn the archive's credentials down from now on.
	// It is nil where there are none.
	Refuse func()
}

// SeriesStart is the first time of a series.
func SeriesStart() time.Time { return time.Date(2024, 4, 30, 12, 0, 0, 0, time.UTC) }

// RunSeries checks the archives that open returns, one for each check. It is for
// archives whose objects and names the host does not know; others use Run.
func RunSeries(t *testing.T, open func(t *testing.T) SeriesFixture) {
	t.Helper()
	for _, check := range []struct {
		name string
		run  func(t *testing.T, f SeriesFixture)
	}{
		{"every time is listed once, by its day", seriesEveryTimeOnce},
		{"an object has the listed size and always the same bytes", seriesSameBytes},
		{"a reader begins at its offset", seriesBeginsAtOffset},
		{"a replaced map is delivered whole or not at all", seriesReplaced},
		{"a map replaced under a broken download is found out", seriesReplacedInBetween},
		{"a time that is gone does not exist", seriesVanished},
		{"an unreachable root is not emptiness", seriesUnreachable},
		{"cancellation ends calls", seriesCancellation},
		{"readers do not disturb each other", seriesConcurrent},
		{"a scope narrows the listing", seriesScope},
		{"refused credentials are permanent", seriesRefused},
	} {
		t.Run(check.name, func(t *testing.T) { check.run(t, open(t)) })
	}
}

// days puts maps of days after the start and returns what a listing shows, in
// order; object i is that of day i.
func (f SeriesFixture) days(t *testing.T, n int) []fetch.Object {
	t.Helper()
	for i := range n {
		f.Put(SeriesStart().AddDate(0, 0, i), float32(i))
	}
	return f.list(t, fetch.Scope{})
}

func (f SeriesFixture) list(t *testing.T, scope fetch.Scope) []fetch.Object {
	t.Helper()
	byName := listScope(t, Fixture{Archive: f.Archive}, scope)
	var objects []fetch.Object
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		objects = append(objects, byName[name])
	}
	return objects
}

func (f SeriesFixture) read(t *testing.T, o fetch.Object, offset int64) ([]byte, string, error) {
	t.Helper()
	r, err := f.Archive.Open(t.Context(), o, offset)
	if err != nil {
		return nil, "", err
	}
	defer r.Close()
	content, err := io.ReadAll(r)
	digest := ""
	if d, ok := r.(fetch.Digested); ok {
		digest = d.Digest()
	}
	return content, digest, err
}

// expect reads o and fails the test where it is not a map of value.
func (f SeriesFixture) expect(t *testing.T, o fetch.Object, value float32) []byte {
	t.Helper()
	content, _, err := f.read(t, o, 0)
	if err != nil {
		t.Fatalf("read %s: %v", o.Name, err)
	}
	if got, err := f.Value(content); err != nil || got != value {
		t.Errorf("%s has the value %v, %v; want %v", o.Name, got, err, value)
	}
	return content
}

func seriesEveryTimeOnce(t *testing.T, f SeriesFixture) {
	objects := f.days(t, 4)
	if len(objects) != 4 {
		t.Fatalf("List() = %+v, want 4 objects", objects)
	}
	for i, o := range objects {
		want := SeriesStart().AddDate(0, 0, i).Truncate(24 * time.Hour)
		if day, ok := fetch.DayInName(o.Name); !ok || !day.Equal(want) || o.Size <= 0 || fetch.CheckName(o.Name) != nil {
			t.Errorf("object %d is %+v, want a name with %s and a size", i, o, want.Format(time.DateOnly))
		}
	}
	if again := f.list(t, fetch.Scope{}); !slices.Equal(again, objects) {
		t.Errorf("two listings of the same series differ:\n%v\n%v", objects, again)
	}
}

func seriesSameBytes(t *testing.T, f SeriesFixture) {
	for i, o := range f.days(t, 3) {
		first, second := f.expect(t, o, float32(i)), f.expect(t, o, float32(i))
		if int64(len(first)) != o.Size || !bytes.Equal(first, second) {
			t.Errorf("%s has %d bytes, listed are %d; a second time they are the same: %v", o.Name, len(first), o.Size, bytes.Equal(first, second))
		}
	}
}

func seriesBeginsAtOffset(t *testing.T, f SeriesFixture) {
	o := f.days(t, 2)[1]
	whole := f.expect(t, o, 1)
	for _, offset := range []int64{1, o.Size / 2, o.Size - 1, o.Size} {
		if got, _, err := f.read(t, o, offset); err != nil || !bytes.Equal(got, whole[offset:]) {
			t.Errorf("from %d: %d bytes, %v; want the last %d", offset, len(got), err, o.Size-offset)
		}
	}
}

func seriesReplaced(t *testing.T, f SeriesFixture) {
	o := f.days(t, 2)[1]
	f.Put(SeriesStart().AddDate(0, 0, 1), 99)
	content, _, err := f.read(t, o, 0)
	switch {
	case err != nil && !errors.Is(err, fetch.ErrChanged):
		t.Errorf("reading a replaced map: %v, want ErrChanged", err)
	case err == nil:
		if got, err := f.Value(content); err != nil || got != 99 {
			t.Errorf("a replaced map has the value %v, %v; want the new one, 99, in all cells", got, err)
		}
	}
}

// seriesReplacedInBetween breaks a download half-way, replaces the map, and
// resumes: a mixture of two maps has the right length and must not be believed.
func seriesReplacedInBetween(t *testing.T, f SeriesFixture) {
	o := f.days(t, 2)[1]
	dir := t.TempDir()
	bring := func(archive fetch.Archive) (fetch.Granule, error) {
		return fetch.NewSpool(dir).Bring(t.Context(), fetch.Download{Archive: archive, Object: o})
	}
	if _, err := bring(broken{Archive: f.Archive, after: o.Size / 2}); !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("Bring() over a broken connection: %v", err)
	}
	f.Put(SeriesStart().AddDate(0, 0, 1), 99)
	for range 2 { // the mixture may cost an attempt
		g, err := bring(f.Archive)
		if errors.Is(err, fetch.ErrCorrupt) || errors.Is(err, fetch.ErrChanged) {
			continue
		}
		if err != nil {
			t.Fatalf("Bring(): %v", err)
		}
		content, err := os.ReadFile(g.Path)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := f.Value(content); err != nil || got != 99 {
			t.Errorf("the spool has the value %v, %v; want 99 in all cells", got, err)
		}
		return
	}
	t.Error("the replaced map never came")
}

func seriesVanished(t *testing.T, f SeriesFixture) {
	objects := f.days(t, 3)
	f.Remove(SeriesStart().AddDate(0, 0, 1))
	for _, offset := range []int64{0, 4} {
		if _, _, err := f.read(t, objects[1], offset); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("reading a map that is gone, from %d: %v, want fs.ErrNotExist", offset, err)
		}
	}
	if got := f.list(t, fetch.Scope{}); len(got) != 2 || got[0] != objects[0] || got[1] != objects[2] {
		t.Errorf("List() = %+v, want the first and the last", got)
	}
}

func seriesUnreachable(t *testing.T, f SeriesFixture) {
	f.days(t, 1)
	f.Sever()
	if objects, err := f.Archive.List(t.Context(), fetch.Scope{}); err == nil {
		t.Errorf("List() = %v without an error, though the root is gone", objects)
	}
}

func seriesCancellation(t *testing.T, f SeriesFixture) {
	o := f.days(t, 1)[0]
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Archive.List(ctx, fetch.Scope{}); !errors.Is(err, context.Canceled) {
		t.Errorf("List() after cancellation: %v", err)
	}
	r, err := f.Archive.Open(ctx, o, 0)
	if err == nil {
		_, err = io.Copy(io.Discard, r)
		r.Close()
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Open() and Read() after cancellation: %v", err)
	}
}

func seriesConcurrent(t *testing.T, f SeriesFixture) {
	objects := f.days(t, 6)
	var wg sync.WaitGroup
	for i, o := range objects {
		wg.Go(func() {
			content, _, err := f.read(t, o, 0)
			if err != nil {
				t.Errorf("reader %d: %v", i, err)
				return
			}
			if got, err := f.Value(content); err != nil || got != float32(i) {
				t.Errorf("reader %d got the value %v, %v", i, got, err)
			}
			if _, err := f.Archive.List(t.Context(), fetch.Scope{}); err != nil {
				t.Errorf("List() beside readers: %v", err)
			}
		})
	}
	wg.Wait()
}

func seriesScope(t *testing.T, f SeriesFixture) {
	objects := f.days(t, 40) // from the last of April into June
	for _, tt := range []struct {
		scope fetch.Scope
		want  []fetch.Object
	}{
		{fetch.Scope{Prefixes: []string{"2024/05/"}}, objects[1:32]},
		{fetch.Scope{Prefixes: []string{"2024/05/", "2024/", "2024/05/"}}, objects},
		{fetch.Scope{Prefixes: []string{"1999/"}}, nil},
		{fetch.Scope{Since: SeriesStart().AddDate(0, 0, 35).Truncate(24 * time.Hour)}, objects[35:]},
		{fetch.Scope{Since: SeriesStart().AddDate(1, 0, 0)}, nil},
		{fetch.Scope{Since: SeriesStart().AddDate(-1, 0, 0)}, objects},
	} {
		got := f.list(t, tt.scope)
		if got = slices.DeleteFunc(got, func(o fetch.Object) bool { // an archive may show what is older
			day, _ := fetch.DayInName(o.Name)
			return day.Before(tt.scope.Since)
		}); !slices.Equal(got, tt.want) {
			t.Errorf("List(%+v) has %d objects, want %d", tt.scope, len(got), len(tt.want))
		}
	}
}

func seriesRefused(t *testing.T, f SeriesFixture) {
	if f.Refuse == nil {
		t.Skip("this archive has no credentials")
	}
	f.days(t, 1)
	f.Refuse()
	if _, err := f.Archive.List(t.Context(), fetch.Scope{}); !errors.Is(err, fetch.ErrPermanent) {
		t.Errorf("List() with refused credentials: %v, want ErrPermanent", err)
	}
}
