package archivetest

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"testing"

	"lacuna/fetch"
)

func checksumIsOfTheBytes(t *testing.T, f Fixture) {
	content := []byte("bytes to sum up")
	f.Put("a.nc", content, base())
	sum := md5.Sum(content)
	if got := list(t, f)["a.nc"].MD5; got != "" && got != hex.EncodeToString(sum[:]) {
		t.Errorf("MD5 = %q, want %x or nothing", got, sum)
	}
}

func scopeNarrows(t *testing.T, f Fixture) {
	for _, name := range []string{"2024/05/a.nc", "2024/05/b.nc", "2024/06/a.nc", "2025/05/a.nc", "a.nc"} {
		f.Put(name, []byte(name), base())
	}
	for _, tt := range []struct {
		prefixes, want []string
	}{
		{prefixes: []string{"2024/05/"}, want: []string{"2024/05/a.nc", "2024/05/b.nc"}},
		{prefixes: []string{"2024/05/a", "2025/"}, want: []string{"2024/05/a.nc", "2025/05/a.nc"}},
		{prefixes: []string{"2024/0"}, want: []string{"2024/05/a.nc", "2024/05/b.nc", "2024/06/a.nc"}},
		{prefixes: []string{"1999/01/"}, want: nil},
		{prefixes: []string{"2024/05"}, want: []string{"2024/05/a.nc", "2024/05/b.nc"}},
	} {
		got := slices.Sorted(maps.Keys(listScope(t, f, fetch.Scope{Prefixes: tt.prefixes})))
		if !slices.Equal(got, tt.want) {
			t.Errorf("List(%q) = %q, want %q", tt.prefixes, got, tt.want)
		}
	}
}

func prefixesOverlap(t *testing.T, f Fixture) {
	f.Put("2024/05/a.nc", []byte("a"), base())
	f.Put("2024/06/b.nc", []byte("b"), base())
	got := listScope(t, f, fetch.Scope{Prefixes: []string{"2024/05/", "2024/", "2024/05/", "2024/05/a"}})
	if len(got) != 2 {
		t.Errorf("List() = %v, want both objects", slices.Sorted(maps.Keys(got)))
	}
}

func beginsAtOffset(t *testing.T, f Fixture) {
	content := bytes.Repeat([]byte("0123456789abcdef!"), 20_000) // a length that no buffer divides
	f.Put("a.nc", content, base())
	listed := list(t, f)["a.nc"]
	size := int64(len(content))
	for _, offset := range []int64{0, 1, 4096, size / 2, size - 1, size} {
		got, err := readFrom(t, f, listed, offset)
		if err != nil || !bytes.Equal(got, content[offset:]) {
			t.Errorf("from %d: %d bytes, %v; want the last %d", offset, len(got), err, size-offset)
		}
	}
}

func replacedNotResumed(t *testing.T, f Fixture) {
	f.Put("a.nc", []byte("the first content"), base())
	listed := list(t, f)["a.nc"]
	f.Put("a.nc", []byte("the second, longer content"), f.later())
	for _, offset := range []int64{4, listed.Size} {
		got, err := readFrom(t, f, listed, offset)
		switch {
		case err != nil && !errors.Is(err, fetch.ErrChanged):
			t.Errorf("resuming a replaced object at %d: %v, want ErrChanged", offset, err)
		case err == nil && int64(len(got)) == listed.Size-offset:
			t.Errorf("a replaced object resumed at %d reads as %q, whole", offset, got)
		}
	}
}

func vanishedNotResumed(t *testing.T, f Fixture) {
	f.Put("a.nc", []byte("soon gone"), base())
	listed := list(t, f)["a.nc"]
	f.Remove("a.nc")
	for _, offset := range []int64{4, listed.Size} {
		if _, err := readFrom(t, f, listed, offset); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("resuming a vanished object at %d: %v, want fs.ErrNotExist", offset, err)
		}
	}
}

// versionsNotMixed replaces an object under a reader. The reader may deliver
// the old bytes or fail; a mixture of the right length would be believed.
func versionsNotMixed(t *testing.T, f Fixture) {
	const size = 8 << 20 // more than the sockets on the way hold
	old := bytes.Repeat([]byte("o"), size)
	f.Put("a.nc", old, base())
	r, err := f.Archive.Open(t.Context(), list(t, f)["a.nc"], 0)
	if err != nil {
		t.Fatalf("Open(): %v", err)
	}
	defer r.Close()
	head := make([]byte, 1000)
	if _, err := io.ReadFull(r, head); err != nil {
		t.Fatalf("Read(): %v", err)
	}
	f.Put("a.nc", bytes.Repeat([]byte("n"), size), f.later())
	rest, err := io.ReadAll(r)
	if got := append(head, rest...); err == nil && !bytes.Equal(got, old) {
		t.Errorf("a reader delivered %d bytes, %d of them new, as if they were one object",
			len(got), bytes.Count(got, []byte("n")))
	}
}

func refusedIsPermanent(t *testing.T, f Fixture) {
	if f.Refuse == nil {
		t.Skip("this archive has no credentials")
	}
	f.Put("a.nc", []byte("a"), base())
	list(t, f) // it worked for months
	f.Refuse()
	if _, err := f.Archive.List(t.Context(), fetch.Scope{}); !errors.Is(err, fetch.ErrPermanent) {
		t.Errorf("List() with refused credentials: %v, want ErrPermanent", err)
	}
}
