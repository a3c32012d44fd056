package fetch

import (
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
)

// told is a reader that knows the hash of the whole object.
type told struct {
	io.ReadCloser
	digest string
}

func (r told) Digest() string { return r.digest }

func TestPartThatIsWholeIsCheckedByTheHashThatTheHostGives(t *testing.T) {
	dir, a := t.TempDir(), newMemArchive()
	content := strings.Repeat("sea", 1000)
	a.put("a.nc", content, longAgo())
	bring := func(open func(Object) (io.ReadCloser, error)) (Granule, error) {
		a.onOpening(open)
		return NewSpool(dir).Bring(t.Context(), Download{Archive: a, Object: a.objects["a.nc"]})
	}
	whole := func() { // all bytes come, and then the process dies
		t.Helper()
		_, err := bring(func(Object) (io.ReadCloser, error) { return cutReader(content, syscall.ECONNRESET), nil })
		if !errors.Is(err, syscall.ECONNRESET) {
			t.Fatalf("Bring() over a broken connection = %v", err)
		}
	}
	rest := func(digest string) func(Object) (io.ReadCloser, error) {
		return func(Object) (io.ReadCloser, error) {
			return told{io.NopCloser(strings.NewReader("")), digest}, nil
		}
	}
	whole()
	if g, err := bring(rest(strings.Repeat("0", 64))); !errors.Is(err, ErrCorrupt) {
		t.Errorf("Bring() = %+v, %v; want ErrCorrupt", g, err)
	}
	if files := filesIn(t, dir); len(files) != 0 {
		t.Errorf("the spool holds %v, want nothing", files)
	}
	whole()
	g, err := bring(rest(""))
	if err != nil {
		t.Fatal(err)
	}
	wantWhole(t, g, content)
}
