package jobs

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/fill"
	"lacuna/pipeline/field"
	"lacuna/pipeline/skill"
)

func TestWhatIsDamagedIsRefused(t *testing.T) {
	f := Folder{Storage: Dir(t.TempDir())}
	sum, err := f.AddBytes([]byte("a mask"))
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "copy")
	if err := f.Fetch(sum, to); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(string(f.Storage.(Dir))+"/"+object(sum), []byte("a mosk"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Read(sum); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("Read() = %v", err)
	}
	if err := f.Fetch(sum, to); err == nil {
		t.Error("Fetch() took other bytes for those of the hash")
	}
	if content, _ := os.ReadFile(to); string(content) != "a mask" {
		t.Errorf("the copy is now %q", content)
	}
	other := filepath.Join(t.TempDir(), "granule.nc")
	if err := os.WriteFile(other, []byte("changed meanwhile"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.Add(other, strings.Repeat("0", 64)); err == nil {
		t.Error("Add() took a file for another")
	}
	for _, bad := range []string{"", "../../etc/passwd", strings.Repeat("z", 64)} {
		if _, err := f.Read(bad); err == nil {
			t.Errorf("Read(%q) = nil", bad)
		}
	}
}

func TestMasksComeBackBitForBit(t *testing.T) {
	f := Folder{Storage: Dir(t.TempDir())}
	for _, n := range []int{0, 1, 7, 8, 9, 1000} {
		mask := make(field.Mask, n)
		for i := range mask {
			mask[i] = i%3 == 0 || i%7 == 2
		}
		sum, err := f.packMask(mask)
		if err != nil {
			t.Fatal(err)
		}
		back, err := f.unpackMask(sum)
		if err != nil || !reflect.DeepEqual(mask, back) {
			t.Errorf("%d cells: %v, %v", n, back, err)
		}
	}
	if sum, err := f.packMask(nil); sum != "" || err != nil {
		t.Errorf("no mask is %q, %v", sum, err)
	}
}

// Every field of a message reaches the worker: all are set, and compared.
func TestAMessageArrivesWhole(t *testing.T) {
	var m Message
	set(reflect.ValueOf(&m).Elem(), new(int))
	days := make([]skill.ScoredDay, 30)
	for i := range days {
		days[i].Day = time.Date(2024, 1, 1+i, 0, 0, 0, 0, time.UTC)
		set(reflect.ValueOf(&days[i]).Elem(), new(int))
		days[i].Day = time.Date(2024, 1, 1+i, 0, 0, 0, 0, time.UTC)
	}
	m.Widening = skill.Widen(days, time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC))
	if reflect.DeepEqual(m.Widening, skill.Widening{}) {
		t.Fatal("the widening is empty")
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var back Message
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(m, back) {
		t.Errorf("sent %+v\n got %+v", m, back)
	}
	id, _ := m.ID()
	if again, _ := back.ID(); again != id {
		t.Error("the message that arrives is another job")
	}
	back.Fill.Network.Seed++
	if again, _ := back.ID(); again == id {
		t.Error("another seed is the same job")
	}
}

// set gives every field below v a value of its own.
func set(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(int64(*n)*1000, 5e8).UTC()))
			return
		}
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				set(v.Field(i), n)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		set(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		set(v.Index(0), n)
		set(v.Index(1), n)
	case reflect.Array:
		for i := range v.Len() {
			set(v.Index(i), n)
		}
	case reflect.String:
		v.SetString(strings.Repeat("x", *n%50+1))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint64, reflect.Uint8:
		v.SetUint(uint64(*n % 200))
	case reflect.Float64, reflect.Float32:
		v.SetFloat(1 / float64(*n))
	}
}

func TestTheFirstResultCounts(t *testing.T) {
	f := Folder{Storage: Dir(t.TempDir())}
	job := strings.Repeat("ab", 32)
	if _, done, err := f.Done(job); done || err != nil {
		t.Fatalf("Done() = %v, %v before the job", done, err)
	}
	for i, worker := range []string{"first", "second"} {
		if before, err := f.Try(job, worker, time.Now()); err != nil || len(before) != i {
			t.Fatalf("attempts before: %v, %v", before, err)
		}
	}
	if err := f.Failed(job, "second", "no room\nleft", time.Now()); err != nil {
		t.Fatal(err)
	}
	before, err := f.Try(job, "third", time.Now())
	if err != nil || len(before) != 2 || !strings.HasSuffix(before[1], "second: no room left") {
		t.Fatalf("attempts before: %q, %v", before, err)
	}
	if err := f.Withdraw(job); err != nil {
		t.Fatal(err)
	}
	if before, _ := f.Try(job, "third", time.Now()); len(before) != 2 {
		t.Errorf("an attempt that was withdrawn counts: %q", before)
	}
	for _, worker := range []string{"first", "second"} {
		if r, err := f.Finish(Result{Job: job, Worker: worker}); err != nil || r.Worker != "first" {
			t.Errorf("the result of %s is that of %s, %v", worker, r.Worker, err)
		}
	}
	if before, _ := f.Try(job, "x", time.Now()); len(before) != 0 {
		t.Errorf("attempts at a finished job are kept: %q", before)
	}
	if err := f.Forget(job); err != nil {
		t.Fatal(err)
	}
	if _, done, _ := f.Done(job); done {
		t.Error("a forgotten result is still there")
	}
}

func TestSweepingLeavesWhatOpenJobsNeed(t *testing.T) {
	f := Folder{Storage: Dir(t.TempDir())}
	needed, _ := f.AddBytes([]byte("needed"))
	old, _ := f.AddBytes([]byte("old"))
	m := Message{Dataset: "sea", Granule: "a/day.nc", Revision: 2, Sea: needed}
	if err := f.Open(m); err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-100 * time.Hour)
	for _, sum := range []string{needed, old} {
		if err := os.Chtimes(string(f.Storage.(Dir))+"/"+object(sum), long, long); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := f.Sweep([]string{"sea"}, time.Now(), time.Hour); n != 1 || err != nil {
		t.Errorf("Sweep() = %d, %v, want one file removed", n, err)
	}
	if _, err := f.Read(needed); err != nil {
		t.Error(err)
	}
	if _, err := f.Read(old); err == nil {
		t.Error("an old object is still there")
	}
	if open, err := f.Opened("sea"); len(open) != 1 || err != nil || open[0].Granule != m.Granule {
		t.Errorf("Opened() = %+v, %v", open, err)
	}
	if err := f.Close("sea", m.Granule, 2); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := f.Message("sea", m.Granule, 2); ok || err != nil {
		t.Errorf("a closed message is open: %v, %v", ok, err)
	}
}

// A field of fill.Job that messages do not carry would be lost on the way to a
// worker, and its product would be another than the daemon's. Add it to Message, Pack
// and unpack before you add it here.
//
// Spend alone stays behind: it says whether its caller still needs the history that it
// holds, a worker reads one of its own, and the product is the same to the last bit
// (TestASpentHistoryMakesTheSameProduct).
func TestMessagesCarryEveryFieldOfAJob(t *testing.T) {
	carried := "Dataset Granule History Sea Seen SeaMask Fill Model Scaling Widening Trust Interpolated Revision Created Published Fetched Filled Credits Layout Constants Centre Backlog Scored Screened Explained"
	of := reflect.TypeFor[fill.Job]()
	for i := range of.NumField() {
		if name := of.Field(i).Name; name != "Spend" && !slices.Contains(strings.Fields(carried), name) {
			t.Errorf("fill.Job has the field %s, which messages do not carry", name)
		}
	}
}

// A worker that is killed leaves the file that it was writing. It goes after an hour, and
// not while somebody may be writing it, nor what was put in its place.
func TestSweepRemovesWhatWasLeftUnfinished(t *testing.T) {
	dir := t.TempDir()
	f := Folder{Dir(dir)}
	for _, kind := range []string{"open/sea", "objects/ab", "done/ab", "tries/ab", "training"} {
		for name, age := range map[string]time.Duration{".abcd123456789": 61 * time.Minute, ".abcd987654321": 59 * time.Minute, "abcd": 61 * time.Minute} {
			file := filepath.Join(dir, kind, name)
			err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, nil, 0o644), os.Chtimes(file, time.Time{}, time.Now().Add(-age)))
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	const kinds = 5
	if n, err := f.Sweep(nil, time.Now(), 72*time.Hour); n != kinds || err != nil {
		t.Fatalf("Sweep() = %d, %v, want %d", n, err, kinds)
	}
	old, err := filepath.Glob(filepath.Join(dir, "*/*/.abcd1*"))
	rest, bad := filepath.Glob(filepath.Join(dir, "*/*/*abcd*"))
	if len(old) > 0 || len(rest) != 2*(kinds-1) || err != nil || bad != nil {
		t.Errorf("left are %v and %v", old, rest)
	}
}
