package intake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"lacuna/daemon/sources"
	"lacuna/fetch"
	"lacuna/internal/faults"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/merge"

	"golang.org/x/sync/errgroup"
)

// Source is one of several archives of a dataset: a sensor, a near-real-time or a
// reprocessed archive, or a mirror of another.
type Source struct {
	Name           string        `yaml:"name"`    // in the product, in the log and in metrics
	Sensor         string        `yaml:"sensor"`  // sources of one sensor share its errors, which their differences do not show; empty: a sensor of its own
	Error          float64       `yaml:"error"`   // standard error until it is fitted, in the units of the variable, or of its decimal logarithm; 0: not known
	Silent         time.Duration `yaml:"silent"`  // age of its newest field from which on it is an alarm; 0: alarms.lag
	Archive        Archive       `yaml:"archive"` // as that of a dataset
	ingest.Options `yaml:",inline"`
}

// MostSources is the number of sources that a dataset can have.
const MostSources = sources.Most

// UnmarshalYAML fills in the defaults of a source before its keys are read.
func (s *Source) UnmarshalYAML(unmarshal func(any) error) error {
	type plain Source
	*s = Source{Archive: DefaultArchive()}
	return unmarshal((*plain)(s))
}

// sourceName matches names that can be part of a metric label, of a folder and of
// the meanings of a flag.
var sourceName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

// Validate reports everything wrong with s, but for its archive. Each message begins
// with the key.
func (s Source) Validate() error {
	var errs faults.List
	errs.Check(sourceName.MatchString(s.Name) && s.Name != "none" && s.Name != "adjusted",
		"name is %q, must be lower-case letters, digits, - and _, and neither none nor adjusted", s.Name)
	errs.Check(s.Error >= 0, "error is %v, must be positive, or 0 where it is not known", s.Error)
	errs.Check(s.Silent >= 0, "silent is %v, must be positive, or 0 for alarms.lag", s.Silent)
	errs.Add(s.Options.Validate())
	return errs.Err()
}

// Over returns the options of the source, and where it has none those of its
// dataset.
func (s Source) Over(set ingest.Options) ingest.Options {
	o := s.Options
	o.Product, o.Variable, o.Group, o.Transform = cmp.Or(o.Product, set.Product), cmp.Or(o.Variable, set.Variable), cmp.Or(o.Group, set.Group), cmp.Or(o.Transform, set.Transform)
	if o.Range == nil {
		o.Range = set.Range
	}
	if len(o.Quality) == 0 {
		o.Quality = set.Quality
	}
	if len(o.BBox) == 0 {
		o.BBox = set.BBox
	}
	return o
}

// merged returns the source as the merger knows it.
func (s Source) merged(set ingest.Options, fresh func(string) (ingest.Granule, bool)) sources.Source {
	return sources.Source{Source: merge.Source{Name: s.Name, Sensor: s.Sensor, Error: s.Error}, Options: s.Over(set), Fresh: fresh}
}

// locks has a lock for each dataset.
type locks struct {
	mu  sync.Mutex // guards all
	all map[string]*sync.Mutex
}

func (l *locks) of(dataset string) *sync.Mutex {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[string]*sync.Mutex{}
	}
	if l.all[dataset] == nil {
		l.all[dataset] = &sync.Mutex{}
	}
	return l.all[dataset]
}

// Run brings in granules until ctx is cancelled, and closes out when it returns; see
// fetch.Watcher.Run. A source that fails does not hold up the others.
func (in *Intake) Run(ctx context.Context, out chan<- fetch.Granule) error {
	if in.merger == nil {
		return in.feeds[0].Run(ctx, out)
	}
	defer close(out)
	g, ctx := errgroup.WithContext(ctx)
	news := make(chan struct{}, 1)
	for _, f := range in.feeds {
		arrived := make(chan fetch.Granule)
		g.Go(func() error { return f.Run(ctx, arrived) })
		g.Go(func() error {
			for range arrived {
				select {
				case news <- struct{}{}:
				default: // it is told already
				}
			}
			return nil
		})
	}
	merged := make(chan fetch.Granule, 1)
	g.Go(func() error { return in.merge(ctx, news, merged) })
	g.Go(func() error { return handOn(ctx, merged, out) })
	return g.Wait()
}

const (
	// firstPatience is how long the first merge waits for the first look at every
	// archive: else the days of a backlog would be made from one source, and then
	// again from all.
	firstPatience = 10 * time.Minute
	// retryMerge is how often merges are tried that failed, or that an operator
	// asked for.
	retryMerge = 5 * time.Second
)

// merge merges new granules until ctx is cancelled. merged has room for one granule:
// whoever receives it asks the ledger for all.
func (in *Intake) merge(ctx context.Context, news <-chan struct{}, merged chan fetch.Granule) error {
	tick := time.NewTicker(min(in.poll, retryMerge))
	defer tick.Stop()
	began, failed := in.now(), ""
	for {
		if in.looked() || in.now().Sub(began) > firstPatience {
			err := in.merger.Pending(ctx, func(g fetch.Granule) error {
				select {
				case merged <- g:
				default:
				}
				return nil
			})
			switch {
			case err == nil:
				failed = ""
			case ctx.Err() == nil && err.Error() != failed: // said once, and not at every attempt
				failed = err.Error()
				in.log.Warn("granules of sources left unmerged", "err", err, "retry_in", min(in.poll, retryMerge))
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-news:
		case <-tick.C:
		}
	}
}

// looked reports whether every archive was looked at, or could not be.
func (in *Intake) looked() bool {
	for _, f := range in.feeds {
		if s := f.State(); s.LastPoll.IsZero() && s.Err == "" {
			return false
		}
	}
	return true
}

// handOn sends on what it receives until ctx is cancelled.
func handOn(ctx context.Context, from <-chan fetch.Granule, to chan<- fetch.Granule) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case g := <-from:
			select {
			case <-ctx.Done():
				return nil
			case to <- g:
			}
		}
	}
}

// Sync brings in everything of days that is new, see fetch.Watcher.Sync, and merges
// it.
func (in *Intake) Sync(ctx context.Context, days fetch.Days, progress fetch.Progress) (fetch.Summary, error) {
	var sum fetch.Summary
	var errs []error
	for _, f := range in.feeds {
		s, err := f.Sync(ctx, days, progress)
		sum.Add(s)
		errs = append(errs, in.named(f, err))
	}
	if in.merger != nil && ctx.Err() == nil {
		before := in.merger.Aside()
		errs = append(errs, in.merger.Pending(ctx, func(fetch.Granule) error { return nil }))
		sum.SetAside += in.merger.Aside() - before
	}
	return sum, errors.Join(errs...)
}

// Plan returns the actions of a pass over every archive, see fetch.Watcher.Plan.
func (in *Intake) Plan(ctx context.Context, days fetch.Days) ([]fetch.Action, error) {
	var all []fetch.Action
	var errs []error
	for _, f := range in.feeds {
		actions, err := f.Plan(ctx, days)
		all = append(all, actions...)
		errs = append(errs, in.named(f, err))
	}
	return all, errors.Join(errs...)
}

// named returns an error of a source with its name.
func (in *Intake) named(f feed, err error) error {
	if err == nil || in.merger == nil {
		return err
	}
	return fmt.Errorf("source %s: %w", f.source.Name, err)
}

// State returns the present state of the archive. Of several it is that of the
// service as a whole: a source that fails is no failure while another delivers.
func (in *Intake) State() fetch.State {
	if in.merger == nil {
		return in.feeds[0].State()
	}
	var all, well []fetch.State
	var slow []string
	for _, f := range in.feeds {
		s := f.State()
		all = append(all, s)
		if s.Err == "" {
			well = append(well, s)
		}
		if s.Slow != "" {
			slow = append(slow, f.source.Name+": "+s.Slow)
		}
	}
	if len(well) == 0 {
		return all[0]
	}
	out := well[0]
	out.Slow, out.Whole = strings.Join(slow, "; "), wholeOf(well)
	for _, s := range well[1:] {
		out.LastPoll = earlier(out.LastPoll, s.LastPoll)
		out.NextPoll = earlier(out.NextPoll, s.NextPoll)
		out.DiskFull = out.DiskFull || s.DiskFull
		if s.Working && (!out.Working || s.Progress.Before(out.Progress)) {
			out.Working, out.Progress = true, s.Progress
		}
	}
	return out
}

// wholePatience is how long a source that was not seen whole holds up the news that
// the others were: a day that none of them has is filled from its neighbours then,
// and made anew should the source still bring it.
const wholePatience = time.Hour

// wholeOf returns when the archives were last seen whole, all but those that have not
// been for long. It is zero while the first look at one is under way.
func wholeOf(states []fetch.State) time.Time {
	var newest time.Time
	for _, s := range states {
		if s.Whole.IsZero() && s.Working {
			return time.Time{}
		}
		if s.Whole.After(newest) {
			newest = s.Whole
		}
	}
	whole := newest
	for _, s := range states {
		if newest.Sub(s.Whole) <= wholePatience {
			whole = earlier(whole, s.Whole)
		}
	}
	return whole
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// SourceState is the state of one source of a dataset.
type SourceState struct {
	Source
	Series  string // its name in the ledger
	State   fetch.State
	Quality *sources.Quality // what was fitted of it; nil: nothing yet
}

// Sources returns the state of every source; none where the dataset has one archive.
func (in *Intake) Sources() []SourceState {
	if in.merger == nil {
		return nil
	}
	fitted := in.merger.Qualities()
	var all []SourceState
	for i, f := range in.feeds {
		s := SourceState{Source: f.source, Series: f.series, State: f.State()}
		if i < len(fitted) {
			s.Quality = &fitted[i]
		}
		all = append(all, s)
	}
	return all
}
