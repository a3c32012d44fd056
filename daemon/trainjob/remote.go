package trainjob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lacuna/daemon/jobs"
	"lacuna/daemon/retrain"
	"lacuna/daemon/state"
	"lacuna/daemon/version"
	"lacuna/modelstore"
	"lacuna/pipeline/skill"
)

// Fleet has jobs done on other machines.
type Fleet interface {
	Send(ctx context.Context, m jobs.Message, live bool, answer func(jobs.Result)) error
	// Progress returns where the worker is that has a job in hand; false: none has.
	Progress(job string) (phase string, step, steps int, ok bool)
}

// Remote has the trainings of a dataset done by workers. It is a retrain.Remote.
type Remote struct {
	Fleet   Fleet
	Folder  jobs.Folder
	Dataset string
	Store   *modelstore.Store
	Sent    string // file that keeps the training under way
	Log     *slog.Logger
}

// sent is a training under way. It is kept, so that a coordinator that comes back asks
// for the same, whatever has changed since.
type sent struct {
	Args    []string     `json:"args"`
	Message jobs.Message `json:"message"`
}

// look is the time between two looks at what the worker is at, and renewal between two
// marks on the files that it needs.
const look, renewal = 5 * time.Second, time.Hour

// Train implements retrain.Remote.
func (r *Remote) Train(ctx context.Context, args []string, hear func(retrain.Event)) (retrain.Event, error) {
	o, err := orderOf(args)
	if err != nil {
		return retrain.Event{}, err
	}
	for {
		m, err := r.message(ctx, args, o)
		if err != nil {
			return retrain.Event{}, err
		}
		result, err := r.await(ctx, m, hear)
		if err != nil {
			return retrain.Event{}, err
		}
		done, err := r.adopt(ctx, m, result, o.policy)
		if !errors.Is(err, modelstore.ErrChampionChanged) {
			hear(retrain.Event{Event: retrain.EventStart, Engine: done.Engine})
			return done, err
		}
		r.Log.Info("the trained version is judged again, because another one is champion by now", "version", result.Trained.Version)
		if err := state.Remove(r.Sent); err != nil {
			return retrain.Event{}, err
		}
	}
}

// message returns the training as a message: the one that was sent before, where it is
// the same training.
func (r *Remote) message(ctx context.Context, args []string, o order) (jobs.Message, error) {
	var before sent
	known, err := state.Load(r.Sent, &before)
	if err == nil && known && slices.Equal(before.Args, args) && before.Message.Current() {
		whole, err := r.Folder.Renew(before.Message)
		if err != nil || whole {
			return before.Message, err
		}
		// It has rested for so long that its files were swept: it is packed anew.
	}
	m := jobs.Message{Program: version.String(), Dataset: r.Dataset, Granule: "training", Training: &jobs.Training{}}
	if m.Training.Args, m.Training.Files, err = r.share(o.args); err != nil {
		return m, err
	}
	champion, err := r.Store.Champion(r.Dataset)
	if err != nil && !errors.Is(err, modelstore.ErrNoChampion) {
		return m, err
	}
	m.Training.Champion = champion.Version
	scratch, err := os.MkdirTemp("", "lacuna-training-")
	if err != nil {
		return m, err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	for _, id := range []string{champion.Version, o.from} {
		if id == "" || slices.ContainsFunc(m.Training.Versions, func(f jobs.File) bool { return f.Name == id }) {
			continue
		}
		sum, err := packVersion(ctx, r.Folder, r.Store, id, scratch)
		if err != nil {
			return m, err
		}
		m.Training.Versions = append(m.Training.Versions, jobs.File{Name: id, SHA256: sum})
	}
	if m.Training.Calendar, err = packCalendar(r.Folder, r.Store, r.Dataset); err != nil {
		return m, err
	}
	return m, state.Save(r.Sent, sent{Args: args, Message: m})
}

// share puts the files that arguments name into the folder, and their places into the
// arguments.
func (r *Remote) share(args []string) (placed []string, files []jobs.File, err error) {
	for i, arg := range args {
		if i == 0 || !slices.Contains(fileFlags, args[i-1]) {
			placed = append(placed, arg)
			continue
		}
		name := "" // of a covariate, before its file
		if args[i-1] == covariateFlag {
			if of, file, ok := strings.Cut(arg, "="); ok {
				name, arg = of+"=", file
			}
		}
		info, err := os.Stat(arg)
		if err != nil || !info.Mode().IsRegular() {
			placed = append(placed, name+arg) // a word, such as builtin
			continue
		}
		sum, err := r.Folder.AddFile(arg)
		if err != nil {
			return nil, nil, err
		}
		placed = append(placed, fmt.Sprint(name, jobs.FilePlace, len(files)))
		files = append(files, jobs.File{Name: filepath.Base(arg), SHA256: sum})
	}
	return placed, files, nil
}

// await sends a training and waits for its result.
func (r *Remote) await(ctx context.Context, m jobs.Message, hear func(retrain.Event)) (jobs.Result, error) {
	id, err := m.ID()
	if err != nil {
		return jobs.Result{}, err
	}
	key, err := m.TrainingKey()
	if err != nil {
		return jobs.Result{}, err
	}
	if err := r.Folder.Halt(key, false); err != nil {
		return jobs.Result{}, err
	}
	answers := make(chan jobs.Result, 1)
	if err := r.Fleet.Send(ctx, m, false, func(result jobs.Result) { answers <- result }); err != nil {
		return jobs.Result{}, fmt.Errorf("send the training of %s to the workers: %w", r.Dataset, err)
	}
	tick := time.NewTicker(look)
	defer tick.Stop()
	renewed := time.Now()
	for {
		select {
		case result := <-answers:
			return result, nil
		case <-ctx.Done():
			if retrain.Interrupted(ctx) {
				return jobs.Result{}, errors.Join(ctx.Err(), r.Folder.Halt(key, true))
			}
			return jobs.Result{}, ctx.Err()
		case <-tick.C:
		}
		if phase, step, steps, ok := r.Fleet.Progress(id); ok {
			hear(retrain.Event{Event: retrain.EventProgress, Phase: phase, Step: step, Steps: steps})
		}
		if time.Since(renewed) >= renewal {
			renewed = time.Now()
			if _, err := r.Folder.Renew(m); err != nil {
				r.Log.Warn("the files of a training are not marked as in use", "err", err)
			}
		}
	}
}

// adopt takes the version of a result into the store, and promotes or refuses it. The
// error is modelstore.ErrChampionChanged where it was judged against another champion.
func (r *Remote) adopt(ctx context.Context, m jobs.Message, result jobs.Result, policy string) (retrain.Event, error) {
	made := result.Trained
	if result.Failed != "" || made == nil {
		failed := retrain.Event{Event: retrain.EventFailed, Reasons: []string{fmt.Sprintf("worker %s: %s", result.Worker, result.Failed)}}
		if result.Failed != "" && result.Dead == 0 {
			failed.State = retrain.StateUnjudged // another attempt would end the same way
		}
		return failed, errors.Join(errors.New(failed.Reasons[0]), r.Folder.Forget(result.Job))
	}
	if made.Champion != m.Training.Champion {
		return retrain.Event{}, fmt.Errorf("worker %s judged version %s against %q, and was asked to against %q", result.Worker, made.Version, made.Champion, m.Training.Champion)
	}
	if err := r.keepCalendar(ctx, m.Training.Calendar, made.Calendar); err != nil {
		return retrain.Event{}, err
	}
	dir, err := os.MkdirTemp("", "lacuna-training-")
	if err != nil {
		return retrain.Event{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	packed := filepath.Join(dir, "version.tar")
	if err := r.Folder.Fetch(made.Packed, packed); err != nil {
		return retrain.Event{}, errors.Join(err, r.Folder.Forget(result.Job)) // swept since: it is made again
	}
	if err := importFrom(ctx, r.Store, packed, made.Version); err != nil {
		return retrain.Event{}, err
	}
	done := retrain.Event{Event: retrain.EventDone, Version: made.Version, Parent: made.Parent, Champion: made.Champion, Won: made.Won, Reasons: made.Reasons, Engine: made.Engine}
	done.State, err = retrain.Verdict{
		Dataset: r.Dataset, Version: made.Version, Champion: made.Champion, Policy: policy,
		Decision: skill.Decision{Promote: made.Won, Unjudged: made.Unjudged, Reasons: made.Reasons},
	}.Decide(ctx, r.Store)
	return done, err
}

// errOtherCalendar says that the days of a dataset were assigned otherwise while a
// worker trained.
var errOtherCalendar = errors.New("another training has assigned the days of this dataset in the meantime")

// keepCalendar makes the calendar that a version was made by that of the dataset: from
// then on every training uses it.
func (r *Remote) keepCalendar(ctx context.Context, before, after string) error {
	calendar, err := r.Folder.Read(after)
	if err != nil {
		return err
	}
	var sent []byte
	if before != "" {
		if sent, err = r.Folder.Read(before); err != nil {
			return err
		}
	}
	return r.Store.ChangeCalendar(ctx, r.Dataset, func(now []byte) ([]byte, error) {
		if !bytes.Equal(now, sent) && !bytes.Equal(now, calendar) {
			return nil, errors.Join(errOtherCalendar, state.Remove(r.Sent)) // it begins again with that one
		}
		return calendar, nil
	})
}

// order is a command line of lacuna train, taken apart.
type order struct {
	args   []string // without store, dataset, engine and policy
	from   string   // version to begin with; empty: none
	policy string
}

// fileFlags are the flags of lacuna train that name files, or a word.
var fileFlags = []string{"--data", "--mask", "--sea-ice", covariateFlag}

// covariateFlag names a file of a covariate, as NAME=FILE.
const covariateFlag = "--covariate-file"

// orderOf takes the arguments apart that a retrain.Scheduler makes: the command, flags
// that stand alone, and flags with a value behind each.
func orderOf(args []string) (order, error) {
	o := order{policy: retrain.PolicyAuto}
	if len(args) == 0 || args[0] != "train" {
		return o, fmt.Errorf("%q is no training", strings.Join(args, " "))
	}
	for i := 1; i < len(args); i++ {
		flag := args[i]
		if flag == "--json-lines" {
			continue
		}
		if i+1 == len(args) || !strings.HasPrefix(flag, "--") {
			return o, fmt.Errorf("the training has the argument %q, whose value is not known", flag)
		}
		value := args[i+1]
		i++
		switch flag {
		case "--store", "--dataset", "--engine":
			continue
		case "--policy":
			o.policy = value
			continue
		case "--from":
			o.from = value
		}
		o.args = append(o.args, flag, value)
	}
	return o, nil
}
