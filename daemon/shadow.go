package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"lacuna/daemon/intake"
	"lacuna/daemon/shadow"
	"lacuna/daemon/state"
	"lacuna/daemon/work"
	"lacuna/daemon/workers"
	"lacuna/fetch"
	"lacuna/internal/durable"
	"lacuna/ledger"
)

// Trial is a new version of a dataset to be compared with the one in use.
type Trial struct {
	Dataset string
	Version string // label of a version of Copernicus Marine
	Archive string // or the address of the archive that has it
	Days    int    // days to compare, back from the newest field; 0: trial_days of the dataset
}

// Shadow fetches the latest days of a new version of a dataset and fills them in a
// state of its own, whose products nobody is told of, compares its granules with
// those in use, and keeps the report. The dataset itself goes on as it is. It may
// be called again: days that are there already are not fetched twice. book is the
// ledger of the service.
func (d *Daemon) Shadow(ctx context.Context, book *ledger.Ledger, trial Trial) (shadow.Report, error) {
	set, err := d.named(trial.Dataset)
	if err != nil {
		return shadow.Report{}, err
	}
	if trial.Days == 0 {
		trial.Days = max(set.TrialDays, 1)
	}
	newest, ok, err := book.Newest(ctx, set.Name)
	if err != nil || !ok {
		return shadow.Report{}, errors.Join(err, fmt.Errorf("dataset %s has no field yet that another version could be compared with", set.Name))
	}
	from := newest.Last.AddDate(0, 0, -trial.Days)
	sub, err := d.shadowOf(set, trial, d.parts.Now().Sub(from))
	if err != nil {
		return shadow.Report{}, err
	}
	done, err := sub.Once(ctx)
	if err != nil {
		return shadow.Report{}, fmt.Errorf("try the new version of %s: %w", set.Name, err)
	}
	report := shadow.Report{
		Dataset: set.Name, Version: trial.label(), InUse: d.versionInUse(set), At: d.parts.Now().UTC(), Wanted: trial.Days,
		Aside: done.SetAside, Folder: sub.cfg.ProductsDir,
	}
	if err := d.compare(ctx, book, sub, set, from, &report); err != nil {
		return report, err
	}
	return report, state.Save(d.cfg.state().ShadowReport(set.Name), report)
}

// Versions is what is known of the versions of a dataset.
type Versions struct {
	shadow.Memory
	Report *shadow.Report `json:"report,omitempty"` // of the version that was tried last; nil: none was
}

// Versions returns what is known of the versions of a dataset.
func (d *Daemon) Versions(dataset string) (out Versions, err error) {
	if _, err := d.named(dataset); err != nil {
		return out, err
	}
	if out.Memory, err = shadow.Load(d.cfg.state(), dataset); err != nil {
		return out, err
	}
	report, ok, err := shadow.Last(d.cfg.state(), dataset)
	if ok {
		out.Report = &report
	}
	return out, err
}

// TryVersion is Shadow beside a daemon that may be running.
func (d *Daemon) TryVersion(ctx context.Context, trial Trial) (Versions, error) {
	book, err := ledger.Join(ctx, d.cfg.state().Ledger())
	if err != nil {
		return Versions{}, err
	}
	defer func() { _ = book.Close() }() // it was only read
	if _, err := d.Shadow(ctx, book, trial); err != nil {
		return Versions{}, err
	}
	return d.Versions(trial.Dataset)
}

func (t Trial) label() string {
	if t.Version != "" {
		return t.Version
	}
	return t.Archive
}

// named returns a dataset of the configuration.
func (d *Daemon) named(dataset string) (Dataset, error) {
	i := slices.IndexFunc(d.cfg.Datasets, func(s Dataset) bool { return s.Name == dataset })
	if i < 0 {
		return Dataset{}, fmt.Errorf("there is no dataset %q in the configuration", dataset)
	}
	return d.cfg.Datasets[i], nil
}

// shadowOf returns the service that tries a version: the same settings with
// another archive, in a folder of its own, and without receivers. What an earlier
// trial of another version left there is removed.
func (d *Daemon) shadowOf(set Dataset, trial Trial, lookback time.Duration) (*Daemon, error) {
	if (trial.Version == "") == (trial.Archive == "") {
		return nil, errors.New("name either the version or the archive of the version that is tried")
	}
	dir := d.cfg.state().Shadow(set.Name)
	if last, ok, err := shadow.Last(d.cfg.state(), set.Name); err == nil && ok && last.Version != trial.label() {
		if err := errors.Join(os.RemoveAll(dir), state.Remove(d.cfg.state().ShadowReport(set.Name))); err != nil {
			return nil, fmt.Errorf("remove the version that was tried before: %w", err)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if trial.Version != "" {
		if set.Archive.Type != "cmems" {
			return nil, fmt.Errorf("the archive of %s is of type %s, which has no versions: name the archive of the new version by its address", set.Name, set.Archive.Type)
		}
		set.Archive.CMEMS.Version = trial.Version
	} else {
		other, err := intake.At(trial.Archive)
		if err != nil {
			return nil, err
		}
		other.Config = set.Archive.Config
		set.Archive = other
	}
	set.Archive.Lookback, set.Archive.Backfill = lookback, fetch.Days{}
	set.Simulate, set.DailySkill, set.EmptyDays = nil, false, work.SkipEmptyDays
	cfg := d.cfg
	cfg.Workers = workers.DefaultConfig() // it fills by itself
	cfg.StateDir, cfg.ProductsDir, cfg.Datasets = dir, filepath.Join(dir, "products"), []Dataset{set}
	cfg.Publish.S3, cfg.Publish.Kafka, cfg.Publish.Zarr, cfg.Publish.ZarrS3, cfg.Publish.QuickLook = nil, nil, nil, nil, false
	parts := d.parts
	parts.Log = d.log.With("shadow", trial.label())
	return New(cfg, parts)
}

// versionInUse returns the version of the dataset in use; empty: it has none, or
// none was chosen yet.
func (d *Daemon) versionInUse(set Dataset) string {
	if set.Archive.Type != "cmems" || set.Archive.CMEMS.Version != "" {
		return set.Archive.CMEMS.Version
	}
	pin, err := os.ReadFile(d.pinFile(set))
	if err != nil {
		return ""
	}
	return string(slices.DeleteFunc(pin, func(b byte) bool { return b <= ' ' }))
}

func (d *Daemon) pinFile(set Dataset) string {
	if set.Archive.CMEMS.PinFile != "" {
		return set.Archive.CMEMS.PinFile
	}
	return d.cfg.state().Version(set.Name)
}

// compare adds the granules that both versions have of days to a report.
func (d *Daemon) compare(ctx context.Context, book *ledger.Ledger, sub *Daemon, set Dataset, from time.Time, report *shadow.Report) error {
	other, err := ledger.Join(ctx, sub.cfg.state().Ledger())
	if err != nil {
		return err
	}
	defer func() { _ = other.Close() }() // it was only read
	const future = 24 * time.Hour        // of clocks that differ
	renewed, err := other.Window(ctx, set.Name, from, d.parts.Now().Add(future))
	if err != nil {
		return err
	}
	for _, row := range renewed {
		olds, err := book.Window(ctx, set.Name, row.First, row.Last)
		if err != nil {
			return err
		}
		for _, old := range olds {
			if old.Absent || row.Absent {
				continue
			}
			a, err := d.reader.Read(ctx, old.SpoolPath, set.reading())
			if errors.Is(err, fs.ErrNotExist) {
				continue // swept
			}
			b, other := d.reader.Read(ctx, row.SpoolPath, set.reading())
			if err := errors.Join(err, other); err != nil {
				return fmt.Errorf("compare %s: %w", row.Name, err)
			}
			report.Compare(a, b)
		}
	}
	return nil
}

// Decide carries out an operator's word on the version that was tried last: an
// accepted version of Copernicus Marine becomes the one in use. What the trial left
// on the disk is removed, its report stays. It returns what the operator has to do
// besides.
func (d *Daemon) Decide(dataset string, accepted bool, why string) (todo string, err error) {
	set, err := d.named(dataset)
	if err != nil {
		return "", err
	}
	dir := d.cfg.state()
	known, err := shadow.Load(dir, dataset)
	if err != nil {
		return "", err
	}
	report, tried, err := shadow.Last(dir, dataset)
	if err != nil {
		return "", err
	}
	if !tried && len(known.Changes) == 0 {
		return "", fmt.Errorf("no version of %s was tried, and its granules have had no other version attributes: 'lacuna trial run --dataset %s --version LABEL' tries one", dataset, dataset)
	}
	if accepted && tried {
		if todo, err = d.take(set, report.Version); err != nil {
			return "", err
		}
	}
	known.Decide(shadow.Decision{Version: report.Version, Accepted: accepted, Why: why, At: d.parts.Now().UTC()})
	if err := known.Save(dir, dataset); err != nil {
		return "", err
	}
	return todo, os.RemoveAll(dir.Shadow(dataset))
}

// take makes a version the one in use as far as the state can, and says what is
// left to do.
func (d *Daemon) take(set Dataset, version string) (string, error) {
	switch {
	case set.Archive.Type != "cmems":
		return "set the archive of dataset " + set.Name + " to " + version + " in the configuration, then: systemctl reload lacuna", nil
	case set.Archive.CMEMS.Version != "":
		return fmt.Sprintf("set cmems.version of dataset %s to %s in the configuration, then: systemctl reload lacuna", set.Name, version), nil
	}
	if err := durable.WriteFile(d.pinFile(set), []byte(version+"\n"), 0o644); err != nil {
		return "", fmt.Errorf("keep the version: %w", err)
	}
	return "systemctl reload lacuna, or the service goes on with the old version for up to cmems.refresh", nil
}

// shadowEvery is how often new days of a version that is tried are compared.
const shadowEvery = 24 * time.Hour

// tryVersions tries a new version of a dataset, a day after the other, from the
// time that its archive announces it until enough days are compared or an operator
// has decided.
func (d *Daemon) tryVersions(ctx context.Context, book *ledger.Ledger, set Dataset, in *intake.Intake, log *slog.Logger) error {
	const look = time.Minute // the archive was asked at the start, and answers within seconds
	pause := time.NewTimer(look)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-pause.C:
		}
		version, err := d.untried(set, in.News())
		if err == nil && version != "" {
			var report shadow.Report
			if report, err = d.Shadow(ctx, book, Trial{Dataset: set.Name, Version: version}); err == nil {
				log.Info("new version compared", "version", version, "result", report.String())
			}
		}
		if err != nil && ctx.Err() == nil {
			log.Warn("new version not compared", "version", version, "err", err, "retry_in", shadowEvery)
		}
		pause.Reset(look)
		if version != "" {
			pause.Reset(shadowEvery)
		}
	}
}

// untried returns the newest version that is announced, not refused, and not yet
// compared on enough days; empty: there is none.
func (d *Daemon) untried(set Dataset, news []intake.News) (string, error) {
	known, err := shadow.Load(d.cfg.state(), set.Name)
	if err != nil {
		return "", err
	}
	newest := ""
	for _, n := range news {
		if !slices.Contains(known.Refused, n.Version) {
			newest = max(newest, n.Version)
		}
	}
	last, tried, err := shadow.Last(d.cfg.state(), set.Name)
	if err != nil || tried && last.Version == newest && len(last.Days) >= set.TrialDays {
		return "", err
	}
	return newest, nil
}
