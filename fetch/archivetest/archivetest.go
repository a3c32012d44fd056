// Package archivetest checks that an archive keeps the promises written on
// fetch.Archive. Every implementation runs it in its tests.
//
// Faults that only one kind of archive can have, such as links in a folder, are
// for that archive's own tests.
package archivetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"lacuna/fetch"
)

// Fixture is an empty archive with functions that change it.
type Fixture struct {
	Archive fetch.Archive
	// Put makes or replaces an object. An archive that dates objects itself
	// may ignore modTime.
	Put func(name string, content []byte, modTime time.Time)
	// Remove takes an object away.
	Remove func(name string)
	// Sever makes the root unreachable.
	Sever func()
	// Refuse makes the host turn the archive's credentials down from now on.
	// It is nil where there are none.
	Refuse func()
	// Coarse is the resolution of the times in a listing; 0 stands for an hour.
	Coarse time.Duration
	// Summed says that listings give a checksum of every object.
	Summed bool
}

// later returns the modification time of a replaced object.
func (f Fixture) later() time.Time { return base().Add(max(f.Coarse, time.Hour)) }

// base is the modification time of the objects of the suite: a whole second,
// for some archives keep no more.
func base() time.Time { return time.Date(2024, 5, 17, 12, 0, 0, 0, time.UTC) }

// Run checks the archives that open returns, one for each check.
func Run(t *testing.T, open func(t *testing.T) Fixture) {
	t.Helper()
	for _, check := range []struct {
		name string
		run  func(t *testing.T, f Fixture)
	}{
		{"an empty archive lists nothing", emptyListsNothing},
		{"every object is listed once", everyObjectOnce},
		{"odd names are listed", oddNames},
		{"unfinished objects are not listed", unfinishedNotListed},
		{"a listing repeats itself", listingRepeats},
		{"open returns the whole object", openReturnsWhole},
		{"a replaced object shows in the listing", replacedShows},
		{"a replaced object is not passed off as the listed one", replacedNotPassedOff},
		{"a vanished object does not exist", vanishedDoesNotExist},
		{"an unreachable root is not emptiness", unreachableRoot},
		{"cancellation ends calls", cancellation},
		{"readers do not disturb each other", concurrentReaders},
		{"a checksum is that of the bytes", checksumIsOfTheBytes},
		{"a scope narrows the listing", scopeNarrows},
		{"overlapping prefixes list nothing twice", prefixesOverlap},
		{"a reader begins at its offset", beginsAtOffset},
		{"a replaced object is not resumed", replacedNotResumed},
		{"a vanished object is not resumed", vanishedNotResumed},
		{"versions are not mixed", versionsNotMixed},
		{"refused credentials are permanent", refusedIsPermanent},
		{"altered bytes of a resumed download are found out", alteredResumption},
	} {
		t.Run(check.name, func(t *testing.T) { check.run(t, open(t)) })
	}
}

func emptyListsNothing(t *testing.T, f Fixture) {
	if got := list(t, f); len(got) != 0 {
		t.Errorf("List() = %v, want nothing", got)
	}
}

func everyObjectOnce(t *testing.T, f Fixture) {
	want := map[string]int{"a.nc": 3, "2024/05/b.nc": 0, "2024/06/b.nc": 70_000}
	for name, size := range want {
		f.Put(name, make([]byte, size), base())
	}
	got := list(t, f)
	for name, size := range want {
		if o, ok := got[name]; !ok || o.Size != int64(size) || o.ModTime.IsZero() {
			t.Errorf("List() has %q as %+v, want it with %d bytes and a time", name, o, size)
		}
	}
	if len(got) != len(want) {
		t.Errorf("List() = %v, want just %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}

func oddNames(t *testing.T, f Fixture) {
	for _, name := range []string{"a b.nc", "50%25.nc", "a+b&c=d.nc", "Größe_λ.nc", "x#y?z.nc", "no-ending"} {
		f.Put(name, []byte(name), base())
		if o, ok := list(t, f)[name]; !ok {
			t.Errorf("%q is not listed", name)
		} else if got, err := read(t, f, o); err != nil || string(got) != name {
			t.Errorf("%q reads as %q, %v", name, got, err)
		}
	}
}

func unfinishedNotListed(t *testing.T, f Fixture) {
	for _, name := range []string{".a.nc.x7Qf", "a.nc.tmp", "a.nc.part", "2024/a.nc.filepart", ".staging/a.nc"} {
		f.Put(name, []byte("half"), base())
	}
	f.Put("a.nc", []byte("whole"), base())
	if got := list(t, f); len(got) != 1 {
		t.Errorf("List() = %v, want a.nc alone", slices.Sorted(maps.Keys(got)))
	}
}

func listingRepeats(t *testing.T, f Fixture) {
	f.Put("a.nc", []byte("a"), base())
	f.Put("b/b.nc", []byte("bb"), base())
	first, second := list(t, f), list(t, f)
	if !maps.Equal(first, second) {
		t.Errorf("two listings of the same objects differ:\n%v\n%v", first, second)
	}
}

func openReturnsWhole(t *testing.T, f Fixture) {
	large := bytes.Repeat([]byte("satellite "), 300_000) // more than one buffer anywhere on the way
	for name, content := range map[string][]byte{"empty.nc": nil, "large.nc": large} {
		f.Put(name, content, base())
		if got, err := read(t, f, list(t, f)[name]); err != nil || !bytes.Equal(got, content) {
			t.Errorf("%s reads as %d bytes, %v; want the %d put there", name, len(got), err, len(content))
		}
	}
}

func replacedShows(t *testing.T, f Fixture) {
	f.Put("a.nc", []byte("old"), base())
	before := list(t, f)["a.nc"]
	f.Put("a.nc", []byte("new"), f.later())
	if after := list(t, f)["a.nc"]; after == before {
		t.Errorf("the replaced object is listed as before: %+v", after)
	}
}

func replacedNotPassedOff(t *testing.T, f Fixture) {
	f.Put("a.nc", []byte("the first content"), base())
	listed := list(t, f)["a.nc"]
	f.Put("a.nc", []byte("the second, longer content"), f.later())
	got, err := read(t, f, listed)
	switch {
	case err != nil && !errors.Is(err, fetch.ErrChanged):
		t.Errorf("reading a replaced object: %v, want ErrChanged", err)
	case err == nil && int64(len(got)) == listed.Size:
		t.Errorf("a replaced object reads as %q, whole", got)
	}
}

func vanishedDoesNotExist(t *testing.T, f Fixture) {
	f.Put("a.nc", []byte("a"), base())
	f.Put("b.nc", []byte("b"), base())
	listed := list(t, f)["a.nc"]
	f.Remove("a.nc")
	if _, err := read(t, f, listed); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading a vanished object: %v, want fs.ErrNotExist", err)
	}
	if got := list(t, f); len(got) != 1 {
		t.Errorf("List() = %v, want b.nc alone", slices.Sorted(maps.Keys(got)))
	}
}

func unreachableRoot(t *testing.T, f Fixture) {
	f.Put("a.nc", []byte("a"), base())
	f.Sever()
	if objects, err := f.Archive.List(t.Context(), fetch.Scope{}); err == nil {
		t.Errorf("List() = %v without an error, though the root is gone", objects)
	}
}

func cancellation(t *testing.T, f Fixture) {
	f.Put("a.nc", []byte("a"), base())
	listed := list(t, f)["a.nc"]
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Archive.List(ctx, fetch.Scope{}); !errors.Is(err, context.Canceled) {
		t.Errorf("List() after cancellation: %v", err)
	}
	r, err := f.Archive.Open(ctx, listed, 0)
	if err == nil {
		_, err = io.Copy(io.Discard, r)
		r.Close()
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Open() and Read() after cancellation: %v", err)
	}
}

func concurrentReaders(t *testing.T, f Fixture) {
	const readers = 8
	for i := range readers {
		f.Put(fmt.Sprintf("%d.nc", i), []byte(strings.Repeat(string(rune('a'+i)), 100_000)), base())
	}
	listed := list(t, f)
	var wg sync.WaitGroup
	for i := range readers {
		wg.Go(func() {
			got, err := read(t, f, listed[fmt.Sprintf("%d.nc", i)])
			if want := bytes.Repeat([]byte{byte('a' + i)}, 100_000); err != nil || !bytes.Equal(got, want) {
				t.Errorf("reader %d got %d bytes, %v; want its own object", i, len(got), err)
			}
			if _, err := f.Archive.List(t.Context(), fetch.Scope{}); err != nil {
				t.Errorf("List() beside readers: %v", err)
			}
		})
	}
	wg.Wait()
}

// list returns the objects by name, and fails the test where one is listed
// twice.
func list(t *testing.T, f Fixture) map[string]fetch.Object {
	t.Helper()
	return listScope(t, f, fetch.Scope{})
}

func listScope(t *testing.T, f Fixture, scope fetch.Scope) map[string]fetch.Object {
	t.Helper()
	objects, err := f.Archive.List(t.Context(), scope)
	if err != nil {
		t.Fatalf("List(%v): %v", scope.Prefixes, err)
	}
	byName := map[string]fetch.Object{}
	for _, o := range objects {
		if _, twice := byName[o.Name]; twice {
			t.Errorf("List(%v) has %q twice", scope.Prefixes, o.Name)
		}
		byName[o.Name] = o
	}
	return byName
}

func read(t *testing.T, f Fixture, o fetch.Object) ([]byte, error) {
	t.Helper()
	return readFrom(t, f, o, 0)
}

func readFrom(t *testing.T, f Fixture, o fetch.Object, offset int64) ([]byte, error) {
	t.Helper()
	r, err := f.Archive.Open(t.Context(), o, offset)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}
