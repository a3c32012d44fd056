package jobs

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lacuna/publish/s3"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

func newBucket(t *testing.T) Storage {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	backend := s3mem.New()
	if err := backend.CreateBucket("sea"); err != nil {
		t.Fatal(err)
	}
	host := httptest.NewServer(gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server())
	t.Cleanup(host.Close)
	b, err := s3.Open(s3.Config{Endpoint: host.URL, Region: "us-east-1", Bucket: "sea", Prefix: "shared"})
	if err != nil {
		t.Fatal(err)
	}
	return Bucket{b}
}

// Both kinds of storage keep the contract that jobs rely on.
func TestStorageKeepsTheContract(t *testing.T) {
	for name, open := range map[string]func(*testing.T) Storage{
		"folder": func(t *testing.T) Storage { return Dir(t.TempDir()) }, "bucket": newBucket,
	} {
		t.Run(name, func(t *testing.T) {
			f := Folder{Storage: open(t)}
			if _, err := f.get("done/none"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("what is not there is %v, want fs.ErrNotExist", err)
			}
			if there, err := f.Touch("done/none"); there || err != nil {
				t.Errorf("Touch() of what is not there = %v, %v", there, err)
			}
			if err := f.Remove("done/none"); err != nil {
				t.Errorf("Remove() of what is not there = %v", err)
			}
			for _, text := range []string{"first", "second"} {
				if err := f.putBytes("objects/ab/x", []byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			if content, err := f.get("objects/ab/x"); string(content) != "second" || err != nil {
				t.Errorf("Put() twice leaves %q, %v", content, err)
			}
			if there, err := f.Touch("objects/ab/x"); !there || err != nil {
				t.Errorf("Touch() = %v, %v", there, err)
			}
			onlyOneCreates(t, f)
			var keys []string
			err := f.List("objects", func(key string, used time.Time) error {
				keys = append(keys, key)
				if time.Since(used) > time.Minute || time.Until(used) > time.Minute {
					t.Errorf("%s was used at %v", key, used)
				}
				return nil
			})
			if err != nil || strings.Join(keys, " ") != "objects/ab/x" {
				t.Errorf("List() = %v, %v", keys, err)
			}
			if err := f.Remove("objects/ab/x"); err != nil {
				t.Fatal(err)
			}
			if _, err := f.get("objects/ab/x"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("what was removed is %v", err)
			}
			sum, err := f.AddBytes([]byte("a mask"))
			if err != nil {
				t.Fatal(err)
			}
			if n, err := f.Sweep(nil, time.Now(), -time.Hour); n != 2 || err != nil { // the result of onlyOneCreates is the other
				t.Errorf("Sweep() = %d, %v", n, err)
			}
			if _, err := f.Read(sum); err == nil {
				t.Error("what was swept is still there")
			}
		})
	}
}

// onlyOneCreates lets eight workers finish a job at a time: one result stands, and all
// are told the same.
func onlyOneCreates(t *testing.T, f Folder) {
	t.Helper()
	job := strings.Repeat("cd", 32)
	var all sync.WaitGroup
	var won atomic.Int32
	told := make([]string, 8)
	for i := range told {
		all.Go(func() {
			me := fmt.Sprintf("worker %d", i)
			r, err := f.Finish(Result{Job: job, Worker: me})
			if err != nil {
				t.Error(err)
			}
			if told[i] = r.Worker; r.Worker == me {
				won.Add(1)
			}
		})
	}
	all.Wait()
	for _, worker := range told {
		if worker != told[0] {
			t.Errorf("the workers were told that the first is %q", told)
		}
	}
	if won.Load() != 1 {
		t.Errorf("%d workers were first", won.Load())
	}
}
