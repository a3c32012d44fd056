package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"lacuna/daemon/retrain"
	"lacuna/fetch"
	"lacuna/internal/figure"
	"lacuna/ledger"
)

// Plan lists the work that is due now, with the reasons.
type Plan struct {
	Now   time.Time   `json:"now"`
	Fetch []FetchStep `json:"fetch"`
	Fill  []FillStep  `json:"fill"`
	// Reanalyse are the reopened products, in the order in which they are due.
	Reanalyse []ReanalyseStep `json:"reanalyse"`
	Train     []TrainStep     `json:"train"`
	Publish   []PublishStep   `json:"publish"`
	Notices   []Notice        `json:"notices"` // announcements of the archives
}

// FetchStep is the action on one object of an archive.
type FetchStep struct {
	Dataset string `json:"dataset"`
	Action  string `json:"action"` // see fetch.Kind
	Name    string `json:"name"`
	Size    int64  `json:"size_bytes"`
	Lane    string `json:"lane"`
	Why     string `json:"why"`
}

// FillStep is a granule in the spool to be filled.
type FillStep struct {
	Dataset  string `json:"dataset"`
	Granule  string `json:"granule"`
	Revision int    `json:"revision"`
	Why      string `json:"why"`
}

// ReanalyseStep is a reopened product, which is published anew if a new analysis
// changes it beyond noise.
type ReanalyseStep struct {
	Dataset string    `json:"dataset"`
	Granule string    `json:"granule"`
	Lane    string    `json:"lane"`
	Due     time.Time `json:"due"` // time of the re-analysis, unless another neighbour comes
	Why     string    `json:"why"`
}

// TrainStep says whether the model of a dataset is due to be trained, and why.
type TrainStep struct {
	Dataset string `json:"dataset"`
	Due     bool   `json:"due"`
	Why     string `json:"why"`
}

// PublishStep is the queue of one sink.
type PublishStep struct {
	Sink    string `json:"sink"`
	Waiting int    `json:"waiting"`
	Bytes   int64  `json:"bytes"`
	Why     string `json:"why"`
}

// Notice is an announcement of an archive.
type Notice struct {
	Dataset string `json:"dataset"`
	Text    string `json:"text"`
}

// Plan returns the work that is due now, for one dataset or, where the name is
// empty, for all. It lists the archives and changes nothing, neither there nor on
// this machine; a daemon may be running. Where an archive cannot be listed, the
// error names it and the rest of the plan holds.
func (s Station) Plan(ctx context.Context, dataset string) (Plan, error) {
	plan := Plan{Now: s.Now(), Fetch: []FetchStep{}, Fill: []FillStep{}, Reanalyse: []ReanalyseStep{}, Train: []TrainStep{}, Publish: []PublishStep{}, Notices: []Notice{}}
	scratch, err := os.MkdirTemp("", "lacuna-plan-")
	if err != nil {
		return plan, fmt.Errorf("plan: %w", err)
	}
	defer os.RemoveAll(scratch)
	book, err := s.Join(ctx, scratch)
	if err != nil {
		return plan, err
	}
	defer book.Close()
	look, err := s.onlooker(scratch)
	if err != nil {
		return plan, err
	}
	sets, err := look.named(dataset)
	if err != nil {
		return plan, err
	}
	var errs []error
	for _, set := range sets {
		if err := errors.Join(s.planFetch(ctx, &plan, set, book), planFill(ctx, &plan, set.Name, book),
			planReanalyse(ctx, &plan, set.Name, book), s.planTrain(ctx, &plan, set.Name, book)); err != nil {
			errs = append(errs, fmt.Errorf("dataset %s: %w", set.Name, err))
		}
	}
	return plan, errors.Join(append(errs, s.planPublish(ctx, &plan, book))...)
}

// Join opens the ledger beside a daemon that may be running. Before the first run
// there is none: then it opens an empty one in the folder scratch.
func (s Station) Join(ctx context.Context, scratch string) (*ledger.Ledger, error) {
	book, err := ledger.Join(ctx, s.State.Ledger())
	if errors.Is(err, fs.ErrNotExist) {
		return ledger.Open(ctx, filepath.Join(scratch, "ledger.db"))
	}
	return book, err
}

// onlooker returns settings that leave no trace: the files that an archive would
// write, such as the chosen version of a dataset, go to scratch.
func (s Station) onlooker(scratch string) (Settings, error) {
	settings := s.Settings
	settings.Datasets = nil
	for _, set := range s.Datasets {
		series := set.Series()
		for i, one := range series {
			copied := filepath.Join(scratch, "version-of-"+one.Name)
			text, err := os.ReadFile(cmp.Or(one.Archive.CMEMS.PinFile, s.State.Version(one.Name)))
			if err == nil {
				err = os.WriteFile(copied, text, 0o600)
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return settings, fmt.Errorf("copy the chosen version of dataset %s: %w", one.Name, err)
			}
			series[i].Archive.CMEMS.PinFile = copied
		}
		set.Archive, set.Sources = series[0].Archive, slices.Clone(set.Sources)
		for i := range set.Sources {
			set.Sources[i].Archive = series[i].Archive
		}
		settings.Datasets = append(settings.Datasets, set)
	}
	return settings, nil
}

// planFetch adds the objects of a dataset that would be fetched.
func (s Station) planFetch(ctx context.Context, plan *Plan, set Dataset, book *ledger.Ledger) error {
	in, err := s.Archives.Intake(set.Dataset, book, false)
	if err != nil {
		return err
	}
	actions, err := in.Plan(ctx, fetch.Days{})
	notices, noticeErr := in.Notices(ctx)
	for _, a := range actions {
		plan.Fetch = append(plan.Fetch, FetchStep{
			Dataset: set.Name, Action: string(a.Kind), Name: a.Object.Name, Size: a.Object.Size, Lane: a.Lane.String(), Why: a.Why,
		})
	}
	for _, text := range texts(notices) {
		plan.Notices = append(plan.Notices, Notice{Dataset: set.Name, Text: text})
	}
	return errors.Join(err, noticeErr, in.Close())
}

// planFill adds the granules in the spool that have no product.
func planFill(ctx context.Context, plan *Plan, dataset string, book *ledger.Ledger) error {
	pending, err := book.Pending(ctx, dataset)
	for _, g := range pending {
		plan.Fill = append(plan.Fill, FillStep{Dataset: dataset, Granule: g.Name, Revision: g.Revision, Why: whyFill(g)})
	}
	return err
}

// planReanalyse adds the products that wait for their neighbours to settle.
func planReanalyse(ctx context.Context, plan *Plan, dataset string, book *ledger.Ledger) error {
	open, err := book.Reopenings(ctx, ledger.ReopeningQuery{Dataset: dataset, OpenOnly: true})
	for _, r := range open {
		plan.Reanalyse = append(plan.Reanalyse, ReanalyseStep{
			Dataset: dataset, Granule: r.Granule, Lane: string(r.Lane), Due: r.Due, Why: whyReopened(r, plan.Now),
		})
	}
	return err
}

// whyReopened returns the reasons for a re-analysis and for its wait.
func whyReopened(r ledger.Reopening, now time.Time) string {
	if !r.Due.After(now) {
		return r.Reason()
	}
	return fmt.Sprintf("%s; in %s, unless another comes", r.Reason(), figure.Duration(r.Due.Sub(now)))
}

// whyFill returns the reason why a granule is still to be filled.
func whyFill(g ledger.Granule) string {
	switch {
	case g.State == ledger.Filled:
		return "its product was not stored: the work on it broke off"
	case g.Why != "":
		return g.Why
	case g.Absent:
		return "the archive has no granule of this time: it is filled from the days around it"
	case g.Revision > 1:
		return fmt.Sprintf("the archive replaced it, which makes revision %d", g.Revision)
	}
	return "it is in the spool and has no product yet"
}

// planTrain adds whether the model of a dataset is due to be trained.
func (s Station) planTrain(ctx context.Context, plan *Plan, dataset string, book *ledger.Ledger) error {
	step := TrainStep{Dataset: dataset}
	scheduler := s.Scheduler(dataset, book)
	if scheduler == nil {
		_, step.Why = s.Train.Due(retrain.Facts{})
		plan.Train = append(plan.Train, step)
		return nil
	}
	var err error
	if step.Due, step.Why, err = scheduler.Plan(ctx); err != nil {
		return err
	}
	plan.Train = append(plan.Train, step)
	return nil
}

// planPublish adds the queues of the sinks, also of sinks that are not configured
// any more.
func (s Station) planPublish(ctx context.Context, plan *Plan, book *ledger.Ledger) error {
	queue := &Publications{cfg: s.Settings, book: book, now: s.Now}
	status, err := queue.Status(ctx)
	for _, sink := range status.Sinks {
		if sink.Waiting > 0 {
			plan.Publish = append(plan.Publish, PublishStep{Sink: sink.Sink, Waiting: sink.Waiting, Bytes: sink.Bytes, Why: whyPublish(sink, plan.Now)})
		}
	}
	return err
}

// whyPublish returns the reason why deliveries to a sink wait.
func whyPublish(sink SinkStatus, now time.Time) string {
	since := "for " + figure.Duration(now.Sub(sink.Oldest))
	switch {
	case !sink.Configured:
		return "nobody delivers it: the sink is not configured any more; 'lacuna publish forget " + sink.Sink + "' drops it"
	case sink.Attempts > 0:
		return fmt.Sprintf("%s, after %d attempts: %s", since, sink.Attempts, sink.Problem)
	}
	return since
}
