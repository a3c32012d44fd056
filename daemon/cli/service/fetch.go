package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"text/tabwriter"
	"time"

	"lacuna/daemon/cli"
	"lacuna/daemon/operate"
	"lacuna/fetch"

	"github.com/spf13/cobra"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

type fetchFlags struct {
	daemonFlags
	dataset  string
	from, to string
	dryRun   bool
	json     bool
}

func fetchCommand() *cobra.Command {
	var flags fetchFlags
	c := &cobra.Command{
		Use:   "fetch",
		Short: "bring new granules into the spool, without filling them",
		Long: `Fetch lists the archives of the configuration, downloads what is new into the
spool, looks whether it can be read, and exits. The daemon fills it when it is
next started; it must not be running meanwhile. A download that broke off goes
on where it stopped.

With --from and --to it fetches these days instead of those that the look-back
of the dataset says. With --dry-run it says what it would do, and why.

Exit status: 0 all that is there was fetched (also where files were set aside,
each with its reason), 1 something could not be fetched (the rest is there),
2 usage, 78 bad configuration.`,
		Example: `  lacuna fetch --config /etc/lacuna/lacuna.yaml
  lacuna fetch --config lacuna.yaml --dataset black-sea-chl --from 2024-01-01 --to 2024-12-31
  lacuna fetch --config lacuna.yaml --dry-run --json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return flags.run(c) },
	}
	flags.add(c)
	f := c.Flags()
	f.StringVar(&flags.dataset, "dataset", "", "`NAME` of the dataset; all of them where it is not given")
	f.StringVar(&flags.from, "from", "", "first `DAY`, such as 2024-01-31")
	f.StringVar(&flags.to, "to", "", "last `DAY`")
	f.BoolVar(&flags.dryRun, "dry-run", false, "say what would be fetched, and why")
	f.BoolVar(&flags.json, "json", false, "print JSON")
	return c
}

func (f *fetchFlags) run(c *cobra.Command) error {
	ask := operate.Fetch{Dataset: f.dataset}
	if f.from != "" || f.to != "" {
		if err := ask.Days.UnmarshalText([]byte(f.from + ".." + f.to)); err != nil {
			return cli.Usage(fmt.Errorf("--from and --to: %w", err))
		}
		if !ask.Days.To.IsZero() && ask.Days.To.Before(ask.Days.From) {
			return cli.Usage(fmt.Errorf("--to %s is before --from %s", f.to, f.from))
		}
	}
	d, err := f.daemon(c.ErrOrStderr())
	if err != nil {
		return err
	}
	if f.dryRun {
		plans, err := d.Station().PlanFetch(c.Context(), ask)
		return errors.Join(f.printPlans(c.OutOrStdout(), plans), err)
	}
	bars := newFetchBars(c.ErrOrStderr())
	ask.Progress = bars.dataset
	fetched, err := d.Station().Fetch(c.Context(), ask)
	bars.finish()
	return errors.Join(f.printFetched(c.OutOrStdout(), fetched), err)
}

func (f *fetchFlags) printFetched(w io.Writer, all []operate.Fetched) error {
	if f.json {
		return json.NewEncoder(w).Encode(all)
	}
	for _, s := range all {
		_, err := fmt.Fprintf(w, "%s: %d listed, %d new (%.1f MB), %d known, %d set aside, %d refused, %d still being written, %d failed\n",
			s.Dataset, s.Listed, s.Arrived, float64(s.Bytes)/1e6, s.Known, s.SetAside, s.Refused, s.Waiting, s.Failed)
		if err != nil {
			return err
		}
	}
	return nil
}

// plannedAction is an action as --json shows it.
type plannedAction struct {
	Dataset  string    `json:"dataset"`
	Action   string    `json:"action"`
	Name     string    `json:"name"`
	Size     int64     `json:"size_bytes"`
	Modified time.Time `json:"modified"`
	Lane     string    `json:"lane"`
	From     string    `json:"from,omitempty"`
	Why      string    `json:"why"`
}

func (f *fetchFlags) printPlans(w io.Writer, plans []operate.FetchPlan) error {
	lines := []plannedAction{}
	for _, p := range plans {
		for _, a := range p.Actions {
			lines = append(lines, plannedAction{
				Dataset: p.Dataset, Action: string(a.Kind), Name: a.Object.Name, Size: a.Object.Size,
				Modified: a.Object.ModTime, Lane: a.Lane.String(), From: a.From, Why: a.Why,
			})
		}
	}
	if f.json {
		return json.NewEncoder(w).Encode(lines)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, l := range lines {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d bytes\t%s\t%s\n", l.Dataset, l.Action, l.Name, l.Size, l.Lane, l.Why)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, p := range plans {
		for _, notice := range p.Notices {
			fmt.Fprintf(w, "%s: %s\n", p.Dataset, notice)
		}
		fetches := 0
		for _, a := range p.Actions {
			if a.Kind == fetch.New || a.Kind == fetch.Changed {
				fetches++
			}
		}
		if _, err := fmt.Fprintf(w, "%s: %d to fetch\n", p.Dataset, fetches); err != nil {
			return err
		}
	}
	return nil
}

// fetchBars are bars of bytes on a terminal, one for each dataset, and nothing
// elsewhere.
type fetchBars struct {
	pool *mpb.Progress // nil: there is no terminal
	all  []*fetchBar
}

func newFetchBars(w io.Writer) *fetchBars {
	if !cli.IsTerminal(w) {
		return &fetchBars{}
	}
	return &fetchBars{pool: mpb.New(mpb.WithOutput(w), mpb.WithWidth(40))}
}

// dataset begins the bar of a dataset.
func (b *fetchBars) dataset(name string) fetch.Progress {
	if b.pool == nil {
		return nil
	}
	bar := &fetchBar{pool: b.pool, name: name, left: map[string]int64{}}
	b.all = append(b.all, bar)
	return bar
}

// finish removes the bars, also those that did not reach their end.
func (b *fetchBars) finish() {
	for _, bar := range b.all {
		if bar.bar != nil {
			bar.bar.Abort(true)
		}
	}
	if b.pool != nil {
		b.pool.Wait()
	}
}

// fetchBar is the bar of a dataset. It begins when the listing is in.
type fetchBar struct {
	pool *mpb.Progress
	name string

	mu    sync.Mutex // guards the rest
	bar   *mpb.Bar
	total int64            // bytes
	left  map[string]int64 // bytes of each object that have yet to come
}

// Begin shows how much there is to fetch.
func (b *fetchBar) Begin(downloads []fetch.Action) {
	b.mu.Lock()
	defer b.mu.Unlock()
	total := int64(0)
	for _, a := range downloads {
		total += a.Object.Size
		b.left[a.Object.Name] = a.Object.Size
	}
	if b.bar == nil {
		b.bar = b.pool.AddBar(0,
			mpb.PrependDecorators(decor.Name(b.name+" "), decor.CountersKiloByte("% .1f / % .1f")),
			mpb.AppendDecorators(decor.AverageSpeed(decor.SizeB1000(0), "% .1f"), decor.Name(" "), decor.AverageETA(decor.ET_STYLE_GO)),
			mpb.BarRemoveOnComplete())
	}
	// A second listing may find more; finish ends the bar.
	b.total += total
	b.bar.SetTotal(b.total, false)
}

// Bytes moves the bar.
func (b *fetchBar) Bytes(o fetch.Object, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left[o.Name] -= int64(n)
	b.bar.IncrBy(n)
}

// Done counts bytes that did not come as done, so that the bar reaches its end.
func (b *fetchBar) Done(o fetch.Object, _ error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bar.IncrInt64(max(b.left[o.Name], 0))
	delete(b.left, o.Name)
}
