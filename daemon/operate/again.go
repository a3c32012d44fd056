package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"lacuna/daemon/state"
	"lacuna/fetch"
	"lacuna/ledger"
	"lacuna/modelstore"
)

// ErrNoChampion says that products cannot be made again by the champion of a
// dataset, because it has none.
var ErrNoChampion = errors.New("it has no champion; 'lacuna models list' shows what the store has, and without --model products are made again by what fills them now")

// ChampionOf returns the version that serves a dataset.
func (s Station) ChampionOf(dataset string) (string, error) {
	version, err := s.champion(dataset)
	if err == nil && version == "" {
		err = fmt.Errorf("dataset %s: %w", dataset, ErrNoChampion)
	}
	return version, err
}

// champion returns the version that serves a dataset; empty: none does.
func (s Station) champion(dataset string) (string, error) {
	if s.Train.Store == "" {
		return "", nil
	}
	e, err := modelstore.New(s.Train.Store, s.Now).Champion(dataset)
	if errors.Is(err, modelstore.ErrNoChampion) {
		return "", nil
	}
	return e.Version, err
}

// why returns the reason that the revisions of a reprocessing carry. No other
// request has the same, so that it tells which products are made already.
func (b Backfill) why() string {
	by, who := "by what fills the dataset now", "asked for"
	if b.Model != "" {
		by = "by the champion " + b.Model
	}
	if b.Rule {
		who = "by the rule train.reprocess_days"
	}
	return fmt.Sprintf("reprocessing of %s to %s %s, %s at %s", b.From.Format(time.DateOnly), b.To.Format(time.DateOnly), by, who, b.Asked.UTC().Format(time.RFC3339))
}

// remade reports whether the newest revision of a granule was asked for by b, or
// has come after it: either is filled by the model that b asks for.
func (b Backfill) remade(newest ledger.Granule) bool {
	return newest.Why == b.why() || !newest.Recorded.Before(b.Asked)
}

// reviseDays asks for the products of some days to be made again in the backfill
// lane. After a crash it may be called once more: a product that was asked for is
// passed over.
func (o *Operations) reviseDays(ctx context.Context, b Backfill, days fetch.Days) error {
	rows, err := o.newestOf(ctx, b.Dataset, days.From, days.To)
	if err != nil {
		return err
	}
	for _, g := range rows {
		due, err := o.toRemake(ctx, b, g)
		if err != nil {
			return err
		}
		if !due {
			continue
		}
		_, err = o.book.Revise(ctx, ledger.Revision{
			Dataset: b.Dataset, Granule: g.Name, Cause: ledger.Redo, Why: b.why(), Lane: ledger.Backfill,
		}, o.now())
		if err != nil {
			return err
		}
	}
	return nil
}

// toRemake reports whether the product of a granule, by its newest revision, is to
// be asked for by b. One that was retracted stays so.
func (o *Operations) toRemake(ctx context.Context, b Backfill, newest ledger.Granule) (bool, error) {
	if waits(newest) || newest.State == ledger.Quarantined || b.remade(newest) {
		return false, nil
	}
	_, holds, err := o.book.Current(ctx, b.Dataset, newest.Name)
	return holds, err
}

// waits reports whether a granule is still to be filled.
func waits(g ledger.Granule) bool {
	return g.State == ledger.Fetched || g.State == ledger.Filled || g.State == ledger.Discovered
}

// newestOf returns the newest revision of every granule with a field of some days.
func (o *Operations) newestOf(ctx context.Context, dataset string, from, to time.Time) ([]ledger.Granule, error) {
	rows, err := o.ofRange(ctx, dataset, from, to)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(rows, func(a, b ledger.Granule) int { return b.Revision - a.Revision })
	seen := map[string]bool{}
	rows = slices.DeleteFunc(rows, func(g ledger.Granule) bool {
		was := seen[g.Name]
		seen[g.Name] = true
		return was
	})
	slices.SortFunc(rows, func(a, b ledger.Granule) int { return a.First.Compare(b.First) })
	return rows, nil
}

// BackfillNews returns the progress of a backfill.
func (o *Operations) BackfillNews(ctx context.Context, b Backfill) (BackfillNews, error) {
	news := BackfillNews{Backfill: b, Paused: o.cfg.BackfillPaused(b.Dataset)}
	rows, err := o.newestOf(ctx, b.Dataset, b.From, b.To)
	if err != nil {
		return news, err
	}
	for _, g := range rows {
		remake := false
		if b.Again {
			if remake, err = o.toRemake(ctx, b, g); err != nil {
				return news, err
			}
		}
		news.Granules++
		switch {
		case waits(g) || remake && !g.First.Before(b.Next):
			news.Waiting++
		case g.State == ledger.Quarantined:
			news.SetAside++
		default:
			news.Products++
		}
	}
	news.Done = b.Next.After(b.To) && (!news.Paused || news.Waiting == 0)
	pace, err := o.pace(ctx, b.Dataset, b.Asked)
	if err != nil {
		return news, err
	}
	left := news.Waiting
	if !b.Again {
		unfetched, err := o.steps(ctx, b.Dataset, b.Next, b.To)
		if err != nil {
			return news, err
		}
		left += unfetched
	}
	news.Most = o.cfg.BackfillRate(b.Dataset)
	news.Left = (time.Duration(left) * slower(pace.Each, news.Most)).Seconds()
	if pace.Each > 0 {
		news.Rate = time.Hour.Seconds() / pace.Each.Seconds()
	}
	if !b.Asked.IsZero() {
		news.Took = o.now().Sub(b.Asked).Seconds()
	}
	return news, nil
}

// championNote is the champion that a dataset had when the rule last looked.
type championNote struct {
	Version string `json:"version"` // empty: none
}

// reprocessAfterPromotion asks for the latest products of a dataset to be made
// again, where another version serves it than at the last look and
// train.reprocess_days says so. The champion of the first look is only noted.
func (s Station) reprocessAfterPromotion(ctx context.Context, set Dataset, book *ledger.Ledger) error {
	if s.Train.ReprocessDays == 0 || !set.ByModel {
		return nil
	}
	version, err := s.champion(set.Name)
	if err != nil {
		return err
	}
	var noted championNote
	path := s.State.Champion(set.Name)
	known, err := state.Load(path, &noted)
	if err != nil || known && noted.Version == version {
		return err
	}
	newest, any, err := book.Newest(ctx, set.Name)
	if err != nil {
		return err
	}
	if known && version != "" && any {
		if err := s.askByRule(ctx, set.Name, version, newest.Last, book); err != nil {
			return err
		}
	}
	return state.Save(path, championNote{Version: version})
}

// askByRule asks for the products of the last days through the newest to be made
// again.
func (s Station) askByRule(ctx context.Context, dataset, version string, newest time.Time, book *ledger.Ledger) error {
	const oneDay = 24 * time.Hour
	to := newest.UTC().Truncate(oneDay)
	b, err := s.AskBackfill(Backfill{
		Dataset: dataset, From: to.AddDate(0, 0, 1-s.Train.ReprocessDays), To: to, Again: true, Model: version, Rule: true,
	})
	if err != nil {
		return fmt.Errorf("make products of %s again by the champion %s: %w", dataset, version, err)
	}
	e, err := s.ops(book).Estimate(ctx, b, s.BackfillRate(dataset))
	if err != nil {
		return err
	}
	s.Log.Info("products are made again by the new champion", "dataset", dataset, "champion", version,
		"from", b.From.Format(time.DateOnly), "to", b.To.Format(time.DateOnly), "products", e.Products, "estimate", e.String())
	return nil
}
