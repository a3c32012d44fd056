package series

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"testing"
	"time"

	"lacuna/fetch"
	"lacuna/internal/cdl"
)

// shelf is a source in memory.
type shelf map[time.Time]byte

func (s shelf) head() cdl.File {
	return cdl.File{
		Dims: []cdl.Dim{{Name: "time", Len: 1}, {Name: "lat", Len: 4}},
		Vars: []cdl.Var{{Name: "lat", Type: "byte", Dims: []string{"lat"}, Raw: []byte{1, 2, 3, 4}}, {Name: "x", Type: "byte", Dims: []string{"time", "lat"}}},
	}
}

func (s shelf) Survey(context.Context, time.Time) (Survey, error) {
	out := Survey{Head: s.head()}
	for at := range s {
		out.Times = append(out.Times, at)
	}
	return out, nil
}

func (s shelf) Read(_ context.Context, at time.Time) (cdl.File, error) {
	v, ok := s[at]
	if !ok {
		return cdl.File{}, fmt.Errorf("nothing at %v: %w", at, fs.ErrNotExist)
	}
	f := s.head()
	f.Vars[1].Raw = []byte{v, v, v, v}
	return f, nil
}

func TestRecentMapsAreListedAnewOnceADayAndOldOnesAreNot(t *testing.T) {
	now := time.Date(2024, 5, 10, 9, 0, 0, 0, time.UTC)
	day := func(d int) time.Time { return time.Date(2024, 5, d, 0, 0, 0, 0, time.UTC) }
	a := New(Config{Name: "sea", Reread: 5 * 24 * time.Hour, MaxObjects: 100, Now: func() time.Time { return now }}, shelf{day(1): 1, day(7): 7})
	listed := func() (old, recent string) {
		t.Helper()
		objects, err := a.List(t.Context(), fetch.Scope{})
		if err != nil || len(objects) != 2 {
			t.Fatalf("List() = %v, %v", objects, err)
		}
		return objects[0].ETag, objects[1].ETag
	}
	old, recent := listed()
	now = now.Add(6 * time.Hour)
	if o, r := listed(); o != old || r != recent {
		t.Error("six hours later on the same day the listing is another")
	}
	now = now.AddDate(0, 0, 1)
	o, r := listed()
	if o != old || r == recent {
		t.Errorf("a day later the old map is listed anew: %v, the recent one: %v; want only the recent one", o != old, r != recent)
	}
	now = now.AddDate(0, 0, 9)
	_, settled := listed()
	now = now.AddDate(0, 0, 9)
	if _, r := listed(); r != settled {
		t.Error("a map that is old is listed anew")
	}
	// The tag of yesterday's listing still opens the map of today: the bytes decide.
	src, err := a.Open(t.Context(), fetch.Object{Name: "2024/05/sea_20240507T000000Z.nc", Size: 224, ETag: recent}, 0)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(src)
	if err != nil || content[len(content)-1] != 7 {
		t.Errorf("%d bytes, %v", len(content), err)
	}
}

func TestNamesOfOthersAreNotOpened(t *testing.T) {
	a := New(Config{Name: "sea", MaxObjects: 1, Now: time.Now}, shelf{})
	for _, name := range []string{"a.nc", "2024/06/sea_20240507T000000Z.nc", "2024/05/lake_20240507T000000Z.nc", ""} {
		if _, err := a.Open(t.Context(), fetch.Object{Name: name}, 0); err == nil {
			t.Errorf("%q is opened", name)
		}
	}
}
