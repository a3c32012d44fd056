package trainjob

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"lacuna/daemon/jobs"
	"lacuna/daemon/retrain"
	"lacuna/internal/durable"
	"lacuna/modelstore"
)

// The test binary is a program that trains: a step adds a number to its checkpoint,
// and the weights are the last one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "train" {
		if err := train(os.Args[2:]); err != nil {
			_ = retrain.WriteEvent(os.Stdout, retrain.Event{Event: retrain.EventFailed, Reasons: []string{err.Error()}, State: os.Getenv("LACUNA_TEST_STATE")})
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const (
	steps   = 100
	stepEnv = "LACUNA_TEST_STEPS" // a file that gets a byte for each step that any process makes
	paceEnv = "LACUNA_TEST_PACE"  // time of a step
)

type values []string

func (v *values) String() string     { return strings.Join(*v, ",") }
func (v *values) Set(s string) error { *v = append(*v, s); return nil }

func train(args []string) error {
	var data values
	f := flag.NewFlagSet("train", flag.ExitOnError)
	f.Bool("json-lines", false, "")
	store, dataset, policy := f.String("store", "", ""), f.String("dataset", "", ""), f.String("policy", "", "")
	checkpoints, from := f.String("checkpoints", "", ""), f.String("from", "", "")
	f.String("engine", "", "")
	f.String("mask", "", "")
	f.Var(&data, "data", "")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *policy != retrain.PolicyAsk {
		return fmt.Errorf("policy %s: a worker promotes nothing", *policy)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	text := ""
	for _, file := range data {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		text += filepath.Base(file) + "=" + string(content) + " "
	}
	if strings.Contains(text, "too few") {
		return errors.New("too few days")
	}
	s := modelstore.New(*store, time.Now)
	champion, err := s.Champion(*dataset)
	if err != nil && !errors.Is(err, modelstore.ErrNoChampion) {
		return err
	}
	err = s.ChangeCalendar(ctx, *dataset, func(now []byte) ([]byte, error) {
		if len(now) > 0 {
			return now, nil
		}
		return []byte("days of " + *dataset), nil
	})
	if err != nil {
		return err
	}
	if err := learn(ctx, filepath.Join(*checkpoints, *dataset+"-1", "step")); err != nil {
		return err
	}
	card := modelstore.Card{Schema: modelstore.CardSchema, Dataset: *dataset, Parent: *from, Created: time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)}
	v, err := s.Write(ctx, card, map[string]io.Reader{modelstore.ImputerFile: strings.NewReader(text + strconv.Itoa(steps))})
	if err != nil {
		return err
	}
	return retrain.WriteEvent(os.Stdout, retrain.Event{
		Event: retrain.EventDone, Version: v.ID, Parent: *from, Champion: champion.Version, Won: true, State: retrain.StateWaiting, Reasons: []string{"for: better"},
	})
}

// learn makes the steps that the checkpoint lacks.
func learn(ctx context.Context, checkpoint string) error {
	if err := os.MkdirAll(filepath.Dir(checkpoint), 0o755); err != nil {
		return err
	}
	made, _ := os.ReadFile(checkpoint)
	n, _ := strconv.Atoi(string(made))
	_ = retrain.WriteEvent(os.Stdout, retrain.Event{Event: retrain.EventStart, Engine: "abacus", Resumed: n > 0})
	pace, _ := time.ParseDuration(os.Getenv(paceEnv))
	for ; n < steps; n++ {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		time.Sleep(pace)
		log, err := os.OpenFile(os.Getenv(stepEnv), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = log.WriteString(stepMark(n))
			err = errors.Join(err, log.Close(), durable.WriteFile(checkpoint, []byte(strconv.Itoa(n+1)), 0o644))
		}
		if err != nil {
			return err
		}
		_ = retrain.WriteEvent(os.Stdout, retrain.Event{Event: retrain.EventProgress, Phase: "imputer", Step: n + 1, Steps: steps})
	}
	return nil
}

// stepMark is what a step writes into the log: the first of a training is told apart.
func stepMark(n int) string {
	if n == 0 {
		return firstStep
	}
	return "."
}

const firstStep = "^"

// site is a coordinator with a store, and a queue that a test takes jobs from.
type site struct {
	*testing.T
	folder jobs.Folder
	store  *modelstore.Store
	remote *Remote
	queue  chan jobs.Message
	log    string // of the steps that were made

	mu      sync.Mutex
	answers map[string]func(jobs.Result)
	sends   int
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{
		T: t, folder: jobs.Folder{Storage: jobs.Dir(t.TempDir())}, store: modelstore.New(t.TempDir(), time.Now),
		queue: make(chan jobs.Message, 8), answers: map[string]func(jobs.Result){}, log: filepath.Join(t.TempDir(), "steps"),
	}
	t.Setenv(stepEnv, s.log)
	s.remote = &Remote{Fleet: s, Folder: s.folder, Dataset: "sea", Store: s.store, Sent: filepath.Join(t.TempDir(), "sent.json"), Log: slog.New(slog.DiscardHandler)}
	return s
}

func (s *site) Send(_ context.Context, m jobs.Message, _ bool, answer func(jobs.Result)) error {
	id, _ := m.ID()
	if r, done, err := s.folder.Done(id); done || err != nil {
		answer(r)
		return err
	}
	s.mu.Lock()
	s.answers[id] = answer
	s.sends++
	s.mu.Unlock()
	s.queue <- m
	return nil
}

func (s *site) Progress(string) (string, int, int, bool) { return "", 0, 0, false }

// finish records the result of a job as a worker does.
func (s *site) finish(r jobs.Result) {
	s.Helper()
	if _, err := s.folder.Finish(r); err != nil {
		s.Error(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[r.Job](r)
}

func (s *site) runner(name string, folder jobs.Folder) *Runner {
	self, err := os.Executable()
	if err != nil {
		s.Fatal(err)
	}
	return &Runner{
		Name: name, Folder: folder, Cache: s.TempDir(), Program: []string{self}, Engine: "ort",
		Process: retrain.NewProcess(retrain.Config{}), Session: 400 * time.Millisecond, Now: time.Now, Stderr: os.Stderr, Log: slog.New(slog.DiscardHandler),
	}
}

// args are those of a scheduler, with two granules.
func (s *site) args(more ...string) []string {
	s.Helper()
	args := []string{"train", "--json-lines", "--store", s.store.Dir(), "--dataset", "sea", "--engine", "auto", "--policy", "auto", "--mask", "builtin"}
	args = append(args, more...)
	dir := s.TempDir()
	for _, name := range []string{"a.nc", "b.nc"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("day "+name), 0o600); err != nil {
			s.Fatal(err)
		}
		args = append(args, "--data", path)
	}
	return args
}

func (s *site) made() int {
	text, _ := os.ReadFile(s.log)
	return len(text)
}

// begun returns how often a training began with its first step.
func (s *site) begun() int {
	text, _ := os.ReadFile(s.log)
	return strings.Count(string(text), firstStep)
}

type trained struct {
	event retrain.Event
	err   error
}

// train asks for a training beside the test.
func (s *site) train(ctx context.Context, args []string) <-chan trained {
	got := make(chan trained, 1)
	go func() {
		e, err := s.remote.Train(ctx, args, func(retrain.Event) {})
		got <- trained{e, err}
	}()
	return got
}

func idle(string, int, int) {}

func (s *site) promote(weights string) string {
	s.Helper()
	card := modelstore.Card{Schema: modelstore.CardSchema, Dataset: "sea", Created: time.Date(2023, 1, 1, 0, 0, 0, 0, time.UTC)}
	v, err := s.store.Write(s.Context(), card, map[string]io.Reader{modelstore.ImputerFile: strings.NewReader(weights)})
	if err == nil {
		_, err = s.store.Promote(s.Context(), modelstore.Change{Dataset: "sea", Version: v.ID, By: "a person", Why: []string{"because"}})
	}
	if err != nil {
		s.Fatal(err)
	}
	return v.ID
}

func (s *site) until(what string, is func() bool) {
	s.Helper()
	for range 400 {
		if is() {
			return
		}
		time.Sleep(25 * time.Millisecond)
	}
	s.Fatalf("never: %s", what)
}
