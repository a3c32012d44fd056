package operate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"lacuna/daemon/books"
	"lacuna/daemon/fill"
	"lacuna/daemon/intake"
	"lacuna/daemon/outbox"
	"lacuna/fetch"
	"lacuna/internal/figure"
	"lacuna/ledger"
	"lacuna/modelstore"
	"lacuna/pipeline/engine"
	"lacuna/pipeline/infer"
	"lacuna/publish"
)

// Finding is the result of one check.
type Finding struct {
	What string `json:"what"` // name of the check, such as "archive of black-sea-chl"
	OK   bool   `json:"ok"`
	Text string `json:"text"`            // the result in words
	ToDo string `json:"to_do,omitempty"` // the remedy where the check failed
}

// tryLimit bounds one check: the listing of a large archive takes most of it.
const tryLimit = time.Minute

// Online checks everything that the configuration names: the folders, the ledger,
// the sandbox of the decoding child, the archives and their credentials, the
// sinks, the engine and the models, and the hook for alarms. Nothing is fetched,
// filled or published; a daemon may be running. tell is called after each check;
// ok is false where one of them failed.
func (s Station) Online(ctx context.Context, tell func(Finding)) (ok bool, err error) {
	scratch, err := os.MkdirTemp("", "lacuna-check-")
	if err != nil {
		return false, fmt.Errorf("check: %w", err)
	}
	defer os.RemoveAll(scratch)
	look, err := s.onlooker(scratch)
	if err != nil {
		return false, err
	}
	ok = true
	report := func(what, good, toDo string, err error) {
		f := Finding{What: what, OK: err == nil, Text: good}
		if err != nil {
			f.Text, f.ToDo, ok = err.Error(), toDo, false
		}
		tell(f)
	}
	s.tryFolders(report)
	s.tryLedger(ctx, report)
	// How tight the sandbox is depends on the kernel, so the check fails only where
	// the child does not start.
	walls, err := s.Isolation(ctx)
	report("decoding child", walls, "start the program by its full path, and look at its memory limits", err)
	for _, set := range look.Datasets {
		s.tryArchive(ctx, set, report)
	}
	s.trySinks(ctx, report)
	s.tryModels(ctx, report)
	s.tryWorkers(ctx, report)
	s.tryAlarms(report)
	return ok, ctx.Err()
}

// reporter takes the name of a check, the words for success, the remedy for
// failure, and the error, if any.
type reporter func(what, good, toDo string, err error)

// tryFolders checks that the folders can be written to and have room.
func (s Station) tryFolders(report reporter) {
	const mib = 1 << 20
	for _, folder := range []struct {
		key, path string
		floor     int64 // bytes that must be free for anything to be done
	}{
		{"state_dir", string(s.State), mib},
		{"products_dir", s.Products, s.Publish.Disk.FloorMiB * mib},
	} {
		free, err := tryFolder(folder.path)
		if err == nil && free < folder.floor {
			err = fmt.Errorf("%s has %s free, and %s are to stay", folder.path, figure.Bytes(free), figure.Bytes(folder.floor))
		}
		report(folder.key, fmt.Sprintf("%s can be written to, %s free", folder.path, figure.Bytes(free)),
			"make the folder, give it to the user that lacuna runs as, or make room", err)
	}
}

// tryWorkers checks the brokers and the folder that workers share.
func (s Station) tryWorkers(ctx context.Context, report reporter) {
	if s.Workers == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, tryLimit)
	defer cancel()
	found, err := s.Workers(ctx)
	report("workers", found, "look at workers.brokers, tls and sasl, and at the rights in docs/scaling.md", err)
	if s.Bucket != nil {
		found, err := s.Bucket()
		report("workers.s3", found, "make the bucket, or mend endpoint, bucket and credentials under workers.s3", err)
		return
	}
	free, err := tryFolder(s.Shared)
	report("workers.shared_dir", fmt.Sprintf("%s can be written to, %s free", s.Shared, figure.Bytes(free)),
		"mount the folder on this machine, or give it to the user that lacuna runs as", err)
}

// tryFolder writes into a folder, or into the nearest one above that is there,
// and returns the free bytes.
func tryFolder(path string) (int64, error) {
	for {
		_, err := os.Stat(path)
		if err == nil || !errors.Is(err, fs.ErrNotExist) || path == filepath.Dir(path) {
			break
		}
		path = filepath.Dir(path)
	}
	f, err := os.CreateTemp(path, ".lacuna-check-")
	if err != nil {
		return 0, err
	}
	if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
		return 0, err
	}
	var room syscall.Statfs_t
	if err := syscall.Statfs(path, &room); err != nil {
		return 0, fmt.Errorf("find the free space of %s: %w", path, err)
	}
	return int64(room.Bavail) * room.Bsize, nil
}

// tryLedger checks the whole ledger.
func (s Station) tryLedger(ctx context.Context, report reporter) {
	path := s.State.Ledger()
	book, err := ledger.Join(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		report("ledger", "none yet: the first run makes it", "", nil)
		return
	}
	if err == nil {
		err = errors.Join(book.Check(ctx), book.Close())
	}
	text := "whole, and nobody works on it"
	if holder, running := ledger.Holder(path); running {
		text = "whole, " + holder + " works on it"
	}
	report("ledger", text, "restart the daemon: it makes a damaged ledger anew from what is on the disk", err)
}

// tryArchive tries every archive of a dataset.
func (s Station) tryArchive(ctx context.Context, set Dataset, report reporter) {
	for _, series := range set.Series() {
		s.trySeries(ctx, series, report)
	}
}

// trySeries lists the objects of the last days in one archive.
func (s Station) trySeries(ctx context.Context, set intake.Dataset, report reporter) {
	what := "archive of " + set.Name
	ctx, cancel := context.WithTimeout(ctx, tryLimit)
	defer cancel()
	archive, err := s.Archives.Open(set)
	if err != nil {
		report(what, "", "mend the configuration of the archive", err)
		return
	}
	// The bare archive, without retries: a check wants the first answer, not the
	// one after the fifth attempt.
	objects, err := archive.Bare.List(ctx, recentScope(set, s.Now()))
	err = errors.Join(err, archive.Close())
	toDo := "look at the address and the network; it may be down for a while"
	switch {
	case errors.Is(err, fetch.ErrPermanent):
		toDo = "renew the credentials, or look at the address: the archive refuses us"
	case errors.Is(err, context.DeadlineExceeded):
		toDo = "the listing took more than a minute: name prefixes with {year} and {month}, or look at the network"
	case errors.Is(err, fs.ErrNotExist):
		toDo = "make the folder or mount it, or name another"
	}
	report(what, fmt.Sprintf("%s answers, %d objects listed", set.Archive.Place(), len(objects)), toDo, err)
}

// recentScope returns the scope of the last days.
func recentScope(set intake.Dataset, now time.Time) fetch.Scope {
	const recent = 3 * 24 * time.Hour
	return fetch.RecentScope(set.Archive.Prefixes, now.Add(-recent), now)
}

// tryOwner checks that the place of a sink belongs to this state, or to nobody. A
// state that has not run yet has no identity.
func (s Station) tryOwner(ctx context.Context, sink outbox.Placed, report reporter) {
	ctx, cancel := context.WithTimeout(ctx, tryLimit)
	defer cancel()
	me, err := ledger.ReadIdentity(s.State.Ledger())
	var owner publish.Owner
	if folder, ok := sink.(publish.Foldered); ok && err == nil {
		err = books.RecallMark(s.State, folder)
	}
	if err == nil {
		owner, err = sink.Owner(ctx)
	}
	if err == nil {
		err = owner.Admits(books.OwnerOf(me))
	}
	text := "nobody's yet: the first run marks it as this state's"
	if owner.State != "" {
		text = fmt.Sprintf("this state's, epoch %d", owner.Epoch)
	}
	toDo := "stop the other service and take over on purpose, or name another place"
	if errors.Is(err, publish.ErrAway) {
		toDo = "mount its disk, or take it over where it was emptied on purpose"
	}
	report("owner of "+sink.Name(), text, toDo, err)
}

// trySinks checks that the sinks can be reached and belong to this state.
func (s Station) trySinks(ctx context.Context, report reporter) {
	try := func(check func(context.Context) error) error {
		ctx, cancel := context.WithTimeout(ctx, tryLimit)
		defer cancel()
		return check(ctx)
	}
	if err := s.Publish.CheckSecretFiles(); err != nil {
		report("secrets of the sinks", "", "chmod 600 the file, and change the secret where others may have read it", err)
	}
	s.Publish.Try(s.Keeper.Store, s.Log, try, func(sink outbox.Placed, trial outbox.Trial, err error) {
		if err == nil {
			s.tryOwner(ctx, sink, report)
		}
		if trial != (outbox.Trial{}) {
			report(trial.What, trial.Good, trial.ToDo, err)
		}
	})
}

// tryModels opens the engine and loads the champions.
func (s Station) tryModels(ctx context.Context, report reporter) {
	byModel := false
	for _, set := range s.Datasets {
		byModel = byModel || set.ByModel
	}
	if !byModel && s.Train.Store == "" {
		return
	}
	e, err := engine.Open(s.Train.Engine, s.Train.Libraries(), s.Log)
	runs := ""
	if err == nil {
		runs = e.Kind + " runs with " + e.Library
		for _, refused := range e.Refused {
			runs += "; " + refused.Error()
		}
		defer e.Finalize()
	}
	report("engine", runs, "'lacuna engines' lists what is there and what each needs; without one, optimal interpolation fills", err)
	if err != nil || s.Train.Store == "" {
		return
	}
	store := modelstore.New(s.Train.Store, s.Now)
	for _, set := range s.Datasets {
		if ctx.Err() != nil {
			return
		}
		version := "none yet: optimal interpolation or a starter model fills until one is trained"
		serving, err := store.LoadChampion(set.Name)
		if errors.Is(err, modelstore.ErrNoChampion) {
			err = nil
		} else if err == nil {
			var model *infer.Model
			if model, err = fill.LoadModel(serving.Version, infer.Device{Backend: e, GPU: e.Kind != engine.ORT}); err == nil {
				version = serving.Version.ID + " loads"
				model.Close()
			}
		}
		report("champion of "+set.Name, version, "'lacuna models rollback' goes back to the version before", err)
	}
}

// tryAlarms checks that the hook for alarms is there, without calling it.
func (s Station) tryAlarms(report reporter) {
	if cfg := s.Alarms; len(cfg.Command) > 0 {
		path, err := s.Machine.Program(cfg.Command[0])
		report("alarm command", path+" is there", "install it where nobody but root can change it, or name another under alarms.command", err)
	}
	if file := s.Alarms.WebhookFile; file != "" {
		_, err := s.Machine.Secret(file)
		report("alarm webhook", file+" can be read", "write the URL into the file, readable by the user that lacuna runs as and by nobody else", err)
	}
}
