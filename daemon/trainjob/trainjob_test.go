package trainjob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"lacuna/daemon/jobs"
	"lacuna/daemon/retrain"
	"lacuna/modelstore"
)

// A version that a worker has made is in the store under its hash, champion because it
// won, with the days of the dataset assigned; and a coordinator that asks again after a
// crash gets the same without another training.
func TestAWorkersVersionIsPromotedByTheCoordinator(t *testing.T) {
	s := newSite(t)
	args := s.args()
	got := s.train(t.Context(), args)
	m := <-s.queue
	for _, f := range m.Training.Files { // the paths of one machine mean nothing on another
		if strings.ContainsRune(f.Name, os.PathSeparator) || slices.Contains(m.Training.Args, f.Name) {
			t.Errorf("the message names %q in %v", f.Name, m.Training.Args)
		}
	}
	phases := map[string]bool{}
	r, err := s.runner("gpu", s.folder).Run(t.Context(), m, func(phase string, done, total int) { phases[fmt.Sprint(phase, total)] = done > 0 })
	if err != nil {
		t.Fatal(err)
	}
	if !phases[fmt.Sprint("imputer", steps)] {
		t.Errorf("progress told: %v", phases)
	}
	s.finish(r)
	done := <-got
	champion, err := s.store.Champion("sea")
	if err != nil || done.err != nil || done.event.State != retrain.StatePromoted || champion.Version != done.event.Version || done.event.Engine != "abacus" {
		t.Fatalf("%+v, champion %+v, %v", done, champion, err)
	}
	v, err := s.store.Load(champion.Version)
	if err != nil {
		t.Fatal(err)
	}
	weights, _ := v.ReadFile(modelstore.ImputerFile)
	if want := "a.nc=day a.nc b.nc=day b.nc " + strconv.Itoa(steps); string(weights) != want {
		t.Errorf("the weights are %q, want %q", weights, want)
	}
	if calendar, _ := s.store.Calendar("sea"); string(calendar) != "days of sea" {
		t.Errorf("the calendar is %q", calendar)
	}
	again := <-s.train(t.Context(), args)
	if again.err != nil || again.event.Version != champion.Version || s.sends != 1 || s.made() != steps {
		t.Errorf("asked again: %+v after %d sends and %d steps", again, s.sends, s.made())
	}
	if log, _ := s.store.Log(); len(log) != 1 {
		t.Errorf("%d entries in the log", len(log))
	}
}

// Whoever is promoted by hand while a worker trains is the one to beat: the version is
// judged again, and nothing is learned twice.
func TestAVersionIsJudgedAgainstThePresentChampion(t *testing.T) {
	s := newSite(t)
	parent := s.promote("parent")
	got := s.train(t.Context(), s.args("--from", parent))
	first := <-s.queue
	if names := versionsOf(first); !slices.Equal(names, []string{parent}) || first.Training.Champion != parent {
		t.Fatalf("versions %v, champion %s", names, first.Training.Champion)
	}
	gpu := s.runner("gpu", s.folder)
	r, err := gpu.Run(t.Context(), first, idle)
	if err != nil {
		t.Fatal(err)
	}
	other := s.promote("by hand")
	s.finish(r)
	second := <-s.queue
	if names := versionsOf(second); second.Training.Champion != other || len(names) != 2 {
		t.Fatalf("sent again with the versions %v, champion %s", names, second.Training.Champion)
	}
	before, _ := first.TrainingKey()
	if after, _ := second.TrainingKey(); after != before {
		t.Error("it does not find its checkpoints")
	}
	if r, err = gpu.Run(t.Context(), second, idle); err != nil {
		t.Fatal(err)
	}
	s.finish(r)
	if done := <-got; done.err != nil || done.event.Champion != other || done.event.State != retrain.StatePromoted {
		t.Errorf("%+v", done)
	}
}

func versionsOf(m jobs.Message) (names []string) {
	for _, f := range m.Training.Versions {
		names = append(names, f.Name)
	}
	return names
}

// lost is storage that a worker can be cut off from.
type lost struct {
	jobs.Storage
	cut atomic.Bool
}

var errCut = errors.New("the storage is away")

func (l *lost) Open(key string) (io.ReadCloser, error) {
	if l.cut.Load() {
		return nil, errCut
	}
	return l.Storage.Open(key)
}

func (l *lost) Put(key string, content io.Reader, size int64) error {
	if l.cut.Load() {
		return errCut
	}
	return l.Storage.Put(key, content, size)
}

// A second worker that is handed a training leaves it alone while the first is at it.
// When the first is silent for a session, the second goes on from its last checkpoint;
// the first ends when it sees that, and its checkpoints replace nothing.
func TestATrainingHasOneWorkerAndIsTakenOverFromItsCheckpoint(t *testing.T) {
	s := newSite(t)
	t.Setenv(paceEnv, "50ms")
	s.train(t.Context(), s.args())
	m := <-s.queue
	away := &lost{Storage: s.folder.Storage}
	first, second := s.runner("first", jobs.Folder{Storage: away}), s.runner("second", s.folder)
	ended := make(chan error, 1)
	go func() {
		_, err := first.Run(t.Context(), m, idle)
		ended <- err
	}()
	key, _ := m.TrainingKey()
	s.until("a checkpoint is shared", func() bool { files, _ := s.folder.Checkpoint(key); return len(files) > 0 })
	for range 5 {
		if _, err := second.Run(t.Context(), m, idle); !errors.Is(err, jobs.ErrLeased) {
			t.Fatalf("the second worker begins beside the first: %v", err)
		}
		time.Sleep(first.Session / 2)
	}
	away.cut.Store(true)
	var r jobs.Result
	go func() { // the first is back when the second has begun
		for held := ""; !strings.HasPrefix(held, "second "); time.Sleep(10 * time.Millisecond) {
			held, _ = s.folder.Lease(key)
		}
		away.cut.Store(false)
	}()
	s.until("the second takes over", func() bool {
		var err error
		r, err = second.Run(t.Context(), m, idle)
		if err != nil && !errors.Is(err, jobs.ErrLeased) {
			t.Fatal(err)
		}
		return err == nil
	})
	if r.Trained == nil || !r.Trained.Won {
		t.Errorf("%+v", r)
	}
	select {
	case err := <-ended:
		if !errors.Is(err, jobs.ErrLeased) {
			t.Errorf("the first ended with %v", err)
		}
	case <-time.After(2 * time.Minute):
		t.Error("the first worker goes on")
	}
	// Both make steps beside one another for a moment; only the first begins with the first one.
	if s.begun() != 1 {
		t.Errorf("a training began %d times with its first step: nothing was taken over", s.begun())
	}
}

// A training whose session is over rests on the worker, and goes on from there.
func TestAnInterruptedTrainingRestsAndGoesOn(t *testing.T) {
	s := newSite(t)
	t.Setenv(paceEnv, "20ms")
	gpu := s.runner("gpu", s.folder)
	args := s.args()
	paused, pause := context.WithCancelCause(t.Context())
	got := s.train(paused, args)
	m := <-s.queue
	ended := make(chan error, 1)
	go func() {
		_, err := gpu.Run(t.Context(), m, idle)
		ended <- err
	}()
	s.until("it has begun", func() bool { return s.made() > 3 })
	pause(retrain.ErrPaused)
	if done := <-got; !errors.Is(done.err, context.Canceled) {
		t.Errorf("%+v", done)
	}
	if err := <-ended; !errors.Is(err, jobs.ErrHalted) {
		t.Errorf("the worker ended with %v", err)
	}
	rested := s.made()
	if _, err := gpu.Run(t.Context(), m, idle); !errors.Is(err, jobs.ErrHalted) || s.made() != rested {
		t.Errorf("it goes on by itself: %v", err)
	}
	got = s.train(t.Context(), args)
	r, err := gpu.Run(t.Context(), <-s.queue, idle)
	if err != nil {
		t.Fatal(err)
	}
	s.finish(r)
	if done := <-got; done.err != nil || s.made() != steps {
		t.Errorf("%+v after %d steps, want %d", done, s.made(), steps)
	}
}

// A training that has rested for so long that its files were swept is packed anew.
func TestATrainingOutlastsTheSweepOfItsFiles(t *testing.T) {
	s := newSite(t)
	args := s.args("--from", s.promote("parent"))
	ctx, stop := context.WithCancel(t.Context())
	got := s.train(ctx, args)
	before := <-s.queue
	stop()
	<-got
	if n, err := s.folder.Sweep(nil, time.Now(), -time.Hour); n == 0 || err != nil {
		t.Fatalf("Sweep() = %d, %v", n, err)
	}
	if _, err := s.runner("gpu", s.folder).Run(t.Context(), before, idle); err == nil {
		t.Fatal("the files are still there")
	}
	got = s.train(t.Context(), args)
	r, err := s.runner("gpu", s.folder).Run(t.Context(), <-s.queue, idle)
	if err != nil {
		t.Fatal(err)
	}
	s.finish(r)
	if done := <-got; done.err != nil || done.event.State != retrain.StatePromoted {
		t.Errorf("%+v", done)
	}
}

// The coordinator does not adopt days that were assigned otherwise than its own, and
// what cannot be trained on is told as such.
func TestWhatAWorkerAnswersIsChecked(t *testing.T) {
	s := newSite(t)
	got := s.train(t.Context(), s.args())
	m := <-s.queue
	r, err := s.runner("gpu", s.folder).Run(t.Context(), m, idle)
	if err != nil {
		t.Fatal(err)
	}
	err = s.store.ChangeCalendar(t.Context(), "sea", func([]byte) ([]byte, error) { return []byte("other days"), nil })
	if err != nil {
		t.Fatal(err)
	}
	s.finish(r)
	if done := <-got; !errors.Is(done.err, errOtherCalendar) {
		t.Errorf("%+v", done)
	}
	if _, err := s.store.Champion("sea"); !errors.Is(err, modelstore.ErrNoChampion) {
		t.Errorf("promoted all the same: %v", err)
	}
	t.Setenv("LACUNA_TEST_STATE", retrain.StateUnjudged)
	few := filepath.Join(t.TempDir(), "few.nc")
	if err := os.WriteFile(few, []byte("too few"), 0o600); err != nil {
		t.Fatal(err)
	}
	got = s.train(t.Context(), s.args("--data", few))
	m = <-s.queue
	var unfillable *jobs.Unfillable
	if _, err = s.runner("gpu", s.folder).Run(t.Context(), m, idle); !errors.As(err, &unfillable) {
		t.Fatalf("Run() = %v", err)
	}
	id, _ := m.ID()
	s.finish(jobs.Result{Job: id, Failed: err.Error()})
	if done := <-got; done.err == nil || done.event.State != retrain.StateUnjudged || !strings.Contains(done.event.Reasons[0], "too few days") {
		t.Errorf("%+v", done)
	}
	other := m
	other.Program = "another"
	if _, err := s.runner("gpu", s.folder).Run(t.Context(), other, idle); !errors.Is(err, jobs.ErrProgram) {
		t.Errorf("a training of another program: %v", err)
	}
}

func TestOrdersOfASchedulerAreTakenApart(t *testing.T) {
	o, err := orderOf([]string{"train", "--json-lines", "--store", "s", "--dataset", "sea", "--engine", "auto", "--policy", "ask", "--from", "v1", "--steps", "9", "--data", "a.nc"})
	if err != nil || o.policy != "ask" || o.from != "v1" || !slices.Equal(o.args, []string{"--from", "v1", "--steps", "9", "--data", "a.nc"}) {
		t.Errorf("%+v, %v", o, err)
	}
	for _, args := range [][]string{nil, {"drift"}, {"train", "--from"}, {"train", "stray", "x"}} {
		if o, err := orderOf(args); err == nil {
			t.Errorf("orderOf(%q) = %+v", args, o)
		}
	}
}

// The files of covariates travel with a training, each with the name of its covariate.
func TestFilesOfCovariatesTravelWithATraining(t *testing.T) {
	folder := jobs.Folder{Storage: jobs.Dir(t.TempDir())}
	map1 := filepath.Join(t.TempDir(), "20240504.nc")
	if err := os.WriteFile(map1, []byte("a map"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := Remote{Folder: folder}
	args := []string{"--covariate", "sst={day}.nc:sst", "--covariate-file", "sst=" + map1}
	placed, files, err := r.share(args)
	if err != nil || len(files) != 1 || files[0].Name != "20240504.nc" || !slices.Equal(placed, []string{args[0], args[1], args[2], "sst=" + jobs.FilePlace + "0"}) {
		t.Fatalf("share() = %q, %+v, %v", placed, files, err)
	}
	b := bench{dir: t.TempDir(), folder: folder}
	got := b.place(&jobs.Training{Args: placed, Files: files})
	if want := "sst=" + b.file(0, "20240504.nc"); got[3] != want || got[1] != args[1] {
		t.Errorf("on the worker they are %q, want %q", got, want)
	}
}
