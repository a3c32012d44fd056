package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"testing"
	"testing/synctest"
	"time"
)

var errPassing = errors.New("connection reset")

// scripted is an archive whose calls fail as the test says, one by one.
type scripted struct {
	lists   []error // results of the first calls of List; later ones succeed
	listed  int
	opens   []error
	opened  []int64 // offsets
	content []byte
	cut     func(offset int64) (end int64, err error) // where a reader from offset breaks; nil: nowhere
	onList  func()
}

func (s *scripted) List(ctx context.Context, _ Scope) ([]Object, error) {
	if s.onList != nil {
		s.onList()
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	s.listed++
	if s.listed <= len(s.lists) && s.lists[s.listed-1] != nil {
		return []Object{{Name: "part.nc"}}, s.lists[s.listed-1]
	}
	return []Object{{Name: "a.nc"}, {Name: "b.nc"}}, nil
}

func (s *scripted) Open(_ context.Context, _ Object, offset int64) (io.ReadCloser, error) {
	s.opened = append(s.opened, offset)
	if n := len(s.opened); n <= len(s.opens) && s.opens[n-1] != nil {
		return nil, s.opens[n-1]
	}
	if s.cut == nil {
		return io.NopCloser(bytes.NewReader(s.content[offset:])), nil
	}
	end, err := s.cut(offset)
	return cutReader(string(s.content[offset:end]), err), nil
}

func retried(t *testing.T, archive Archive) *Retried {
	t.Helper()
	r, err := NewRetried(archive, RetryConfig{Attempts: 4, Base: time.Second, Max: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	r.random = func() float64 { return 0.5 }
	return r
}

func TestListIsRepeatedWithGrowingPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		archive := &scripted{lists: []error{errPassing, errPassing, errPassing}}
		start := time.Now()
		objects, err := retried(t, archive).List(t.Context(), Scope{})
		if err != nil || len(objects) != 2 {
			t.Errorf("List() = %v, %v; want both objects", objects, err)
		}
		if got, want := time.Since(start), (500+1000+2000)*time.Millisecond; got != want {
			t.Errorf("waited %v in all, want half of 1, 2 and 4 s, which is %v", got, want)
		}
	})
}

func TestLastFailureComesWithItsObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		archive := &scripted{lists: []error{errPassing, errPassing, errPassing, errPassing, errPassing}}
		objects, err := retried(t, archive).List(t.Context(), Scope{})
		if !errors.Is(err, errPassing) || len(objects) != 1 || archive.listed != 4 {
			t.Errorf("List() = %v, %v after %d attempts; want the partial list and the error after 4", objects, err, archive.listed)
		}
	})
}

func TestLastingFailuresAreNotRepeated(t *testing.T) {
	for _, lasting := range []error{ErrPermanent, ErrChanged, fs.ErrNotExist, context.Canceled} {
		archive := &scripted{lists: []error{fmt.Errorf("say: %w", lasting)}, opens: []error{fmt.Errorf("say: %w", lasting)}}
		_, listErr := retried(t, archive).List(t.Context(), Scope{})
		_, openErr := retried(t, archive).Open(t.Context(), Object{}, 0)
		if !errors.Is(listErr, lasting) || !errors.Is(openErr, lasting) || archive.listed != 1 || len(archive.opened) != 1 {
			t.Errorf("%v: List %v after %d, Open %v after %d; want one attempt each", lasting, listErr, archive.listed, openErr, len(archive.opened))
		}
	}
}

func TestRetryAfterIsHonoured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		archive := &scripted{lists: []error{&RetryAfterError{After: 7 * time.Second, Err: errPassing}}}
		start := time.Now()
		if _, err := retried(t, archive).List(t.Context(), Scope{}); err != nil {
			t.Fatal(err)
		}
		if got := time.Since(start); got < 7*time.Second || got > 8*time.Second {
			t.Errorf("came back after %v, was asked to wait 7 s", got)
		}
		patient := &scripted{lists: []error{&RetryAfterError{After: time.Hour, Err: errPassing}}}
		start = time.Now()
		if _, err := retried(t, patient).List(t.Context(), Scope{}); err == nil || time.Since(start) != 0 {
			t.Errorf("List() = %v after %v; a wait beyond max is not worth it", err, time.Since(start))
		}
	})
}

func TestCancellationEndsAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		archive := &scripted{lists: []error{errPassing}}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		start := time.Now()
		if _, err := retried(t, archive).List(ctx, Scope{}); err == nil || time.Since(start) != 100*time.Millisecond {
			t.Errorf("List() = %v after %v, want an error after 100 ms", err, time.Since(start))
		}
	})
}

func TestDownloadCutAtEveryTenthPercentIsWholeAndReadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		content := bytes.Repeat([]byte("0123456789"), 1000)
		step := int64(len(content) / 10)
		var served int64
		archive := &scripted{content: content, cut: func(offset int64) (int64, error) {
			end := min((offset/step+1)*step, int64(len(content)))
			served += end - offset
			if end == int64(len(content)) {
				return end, io.EOF
			}
			return end, errPassing
		}}
		src, err := retried(t, archive).Open(t.Context(), Object{Name: "a.nc", Size: int64(len(content))}, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		got, err := io.ReadAll(src)
		if err != nil || !bytes.Equal(got, content) {
			t.Errorf("read %d bytes, %v; want %d", len(got), err, len(content))
		}
		if served != int64(len(content)) || len(archive.opened) != 10 {
			t.Errorf("%d bytes were served in %d readers, want %d in 10", served, len(archive.opened), len(content))
		}
	})
}

func TestReaderThatMakesNoProgressIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		archive := &scripted{content: make([]byte, 100), cut: func(offset int64) (int64, error) {
			return max(offset, 40), errPassing // never beyond byte 40
		}}
		src, err := retried(t, archive).Open(t.Context(), Object{Name: "a.nc", Size: 100}, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		got, err := io.ReadAll(src)
		if len(got) != 40 || !errors.Is(err, errPassing) || len(archive.opened) != 4 {
			t.Errorf("read %d bytes, %v in %d readers; want 40 and the error after 4", len(got), err, len(archive.opened))
		}
		if _, err := src.Read(make([]byte, 1)); !errors.Is(err, errPassing) {
			t.Errorf("Read() after the end = %v", err)
		}
	})
}

func TestObjectThatChangedIsNotResumed(t *testing.T) {
	archive := &scripted{content: make([]byte, 100), opens: []error{nil, ErrChanged}, cut: func(int64) (int64, error) { return 40, errPassing }}
	synctest.Test(t, func(t *testing.T) {
		src, err := retried(t, archive).Open(t.Context(), Object{Name: "a.nc", Size: 100}, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		if _, err := io.ReadAll(src); !errors.Is(err, ErrChanged) {
			t.Errorf("Read() = %v, want ErrChanged", err)
		}
	})
}
