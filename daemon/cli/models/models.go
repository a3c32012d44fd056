package models

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"lacuna/daemon"
	"lacuna/daemon/cli"
	"lacuna/modelstore"

	"github.com/spf13/cobra"

	"lacuna/internal/figure"
)

func modelsCommand() *cobra.Command {
	m := &models{}
	c := &cobra.Command{
		Use:   "models",
		Short: "look at, choose and move trained models",
		Long: `Models works on a model store, the folder that --store names, else that of the
configuration (train.store). A version in it is
a folder of ONNX files with a card, and never changes. One version serves each
dataset: its champion. Which one, since when and why is in promotions.log.

A VERSION is given by its name, by the beginning of the name or of the hash at
its end if only one version fits, by the name of a dataset for its champion, or
as 'champion' where there is one dataset.

Other processes that use the store see a promotion or a rollback without a restart.

Exit status: 0 done, 1 failed, 2 usage.`,
		Example: `  lacuna models list --store var/store
  lacuna models show champion --store var/store
  lacuna models rollback --store var/store --why 'seams in the May products'`,
	}
	f := c.PersistentFlags()
	f.StringVar(&m.dir, "store", "", "model store `DIR` (default: train.store of the configuration)")
	cli.AddConfig(f, &m.config)
	f.BoolVar(&m.json, "json", false, "print JSON")
	return cli.Group(c, m.named, m.list(), m.show(), m.diff(), m.promote(), m.rollback(), m.export(), m.importing(), m.gc(), m.pin(), m.unpin())
}

// models holds the flags of the commands below models.
type models struct {
	dir    string
	config string
	json   bool
}

// named finds the store, so that a remedy can be typed as it stands.
func (m *models) named() error {
	if m.dir != "" {
		return nil
	}
	if cli.FindConfig(&m.config) != nil {
		return errors.New("--store DIR is required: there is no configuration that names one")
	}
	cfg, err := daemon.LoadConfig(m.config)
	if err != nil {
		return err
	}
	if m.dir = cfg.Train.Store; m.dir == "" {
		return fmt.Errorf("--store DIR is required: %s has no train.store", m.config)
	}
	return nil
}

func (m *models) store() *modelstore.Store { return modelstore.New(m.dir, time.Now) }

// print writes v as JSON if that is wanted, and else as write does.
func (m *models) print(c *cobra.Command, v any, write func(w io.Writer)) error {
	if m.json {
		e := json.NewEncoder(c.OutOrStdout())
		e.SetEscapeHTML(false)
		return e.Encode(v)
	}
	w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
	write(w)
	return w.Flush()
}

// modelRow is a version in the list.
type modelRow struct {
	Version string    `json:"version"`
	State   []string  `json:"state"` // empty: never judged
	Kind    string    `json:"kind,omitempty"`
	Dataset string    `json:"dataset,omitempty"`
	Created time.Time `json:"created,omitzero"`
	Parent  string    `json:"parent,omitempty"`
	Bytes   int64     `json:"bytes"`
	MSE     *float64  `json:"mse"` // null: not scored
	Damage  string    `json:"damage,omitempty"`
}

func (m *models) list() *cobra.Command {
	var dataset string
	c := &cobra.Command{
		Use:   "list",
		Short: "list the versions, oldest first, and what became of each",
		Long: `List shows every version in the store. The state is champion (it serves), former
champion (a rollback can reach it), rolled back, refused (it was judged and did
not win), not judged (nobody could tell, for want of days), pinned (gc keeps it)
or damaged. Only the cards are checked here; 'show' checks every byte.

Exit status: 0 done, 1 the store cannot be read, or a card or the log is damaged, 2 usage.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			rows, problems, err := listModels(m.store(), dataset)
			if err != nil {
				return err
			}
			if len(rows) == 0 && !m.json {
				fmt.Fprintf(c.ErrOrStderr(), "no versions in %s; the service trains one in its time, 'lacuna models import FILE' adds one\n", m.dir)
				return problems
			}
			return errors.Join(m.print(c, rows, func(w io.Writer) { printModels(w, rows) }), problems)
		},
	}
	c.Flags().StringVar(&dataset, "dataset", "", "only versions of this `DATASET`")
	return c
}

// listModels returns the versions, and damaged cards as problems.
func listModels(s *modelstore.Store, dataset string) (rows []modelRow, problems, err error) {
	versions, bad, err := s.List()
	if err != nil {
		return nil, nil, err
	}
	states, err := s.States()
	if states == nil {
		return nil, nil, err
	}
	problems = errors.Join(append(bad, err)...)
	rows = []modelRow{} // an empty list, not null, in JSON
	for _, v := range versions {
		if dataset != "" && v.Card.Dataset != dataset {
			continue
		}
		row := modelRow{
			Version: v.ID, State: append([]string{}, states[v.ID]...), Kind: v.Card.Kind, Dataset: v.Card.Dataset,
			Created: v.Card.Created, Parent: v.Card.Parent, Bytes: v.Bytes(),
		}
		if mse, ok := v.Card.Scores.Challenger["mse"]; ok {
			row.MSE = &mse
		}
		rows = append(rows, row)
	}
	for _, err := range bad {
		var b *modelstore.BadVersion
		if errors.As(err, &b) && strings.HasPrefix(b.Version, dataset) {
			rows = append(rows, modelRow{Version: b.Version, State: append(states[b.Version], "damaged"), Damage: b.File + ": " + b.Wrong})
		}
	}
	return rows, problems, nil
}

func printModels(w io.Writer, rows []modelRow) {
	fmt.Fprintln(w, "VERSION\tSTATE\tKIND\tCREATED\tMSE\tSIZE\tPARENT")
	for _, r := range rows {
		mse, created := "-", "-"
		if r.MSE != nil {
			mse = fmt.Sprintf("%.5g", *r.MSE)
		}
		if !r.Created.IsZero() {
			created = r.Created.UTC().Format("2006-01-02 15:04")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Version, cmp.Or(strings.Join(r.State, ", "), "-"), cmp.Or(r.Kind, "-"),
			created, mse, figure.Bytes(r.Bytes), cmp.Or(r.Parent, "-"))
	}
}

// modelPage is a version as show prints it.
type modelPage struct {
	Version string             `json:"version"`
	State   []string           `json:"state"`
	Split   modelSplit         `json:"split"`
	Card    json.RawMessage    `json:"card"` // as it is stored
	Log     []modelstore.Entry `json:"log"`
	Damage  string             `json:"damage,omitempty"`
}

// modelSplit is the use of the days of a version, of all its seas and of each. A
// version that is older than such lists has empty ones.
type modelSplit struct {
	modelDays
	Seas map[string]modelDays `json:"seas"`
}

// modelDays are ISO dates.
type modelDays struct {
	Learn  []string `json:"learn"`
	Choose []string `json:"choose"`
	Judge  []string `json:"judge"`
}

func splitOf(s modelstore.Split) modelSplit {
	days := func(learn, choose, judge []string) modelDays { // none is an empty list in JSON, not null
		return modelDays{append([]string{}, learn...), append([]string{}, choose...), append([]string{}, judge...)}
	}
	out := modelSplit{modelDays: days(s.Learn, s.Choose, s.Judge), Seas: map[string]modelDays{}}
	for name, sea := range s.Seas {
		out.Seas[name] = days(sea.Learn, sea.Choose, sea.Judge)
	}
	return out
}

func (m *models) show() *cobra.Command {
	return &cobra.Command{
		Use:   "show VERSION",
		Short: "show the card of a version, check its files, and tell its story",
		Long: `Show prints what a version is: what it was trained on, how it scored, with which
settings, and when it was promoted, refused or rolled back, and why. Every byte
of its files is compared with the sha256 in the card.

With --json, split lists the days that the version learned from, that chose (ended
the training and calibrated) and that judged it, of all seas together and of each.

Exit status: 0 the version is sound, 1 it is not, or is not there, 2 usage.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			s := m.store()
			id, err := s.Resolve(args[0])
			if err != nil {
				return err
			}
			v, err := s.Peek(id)
			if err != nil {
				return err
			}
			page, err := describeModel(s, v)
			if err != nil {
				return err
			}
			_, damage := s.Load(id)
			if damage != nil {
				page.Damage = damage.Error()
			}
			return errors.Join(m.print(c, page, func(w io.Writer) { printModel(w, page, v) }), damage)
		},
	}
}

func describeModel(s *modelstore.Store, v *modelstore.Version) (modelPage, error) {
	states, err := s.States()
	if err != nil {
		return modelPage{}, err
	}
	entries, err := s.Log()
	if err != nil {
		return modelPage{}, err
	}
	page := modelPage{Version: v.ID, State: append([]string{}, states[v.ID]...), Split: splitOf(v.Card.Split), Log: []modelstore.Entry{}}
	for _, e := range entries {
		if e.Version == v.ID || e.Previous == v.ID {
			page.Log = append(page.Log, e)
		}
	}
	page.Card, err = v.Card.Encode()
	return page, err
}

func printModel(w io.Writer, page modelPage, v *modelstore.Version) {
	fmt.Fprintf(w, "version      %s\n", v.ID)
	fmt.Fprintf(w, "state        %s\n", cmp.Or(strings.Join(page.State, ", "), "never judged"))
	if page.Damage == "" {
		fmt.Fprintf(w, "checked      %d files, every byte\n", len(v.Card.Files)+1)
	}
	fmt.Fprint(w, v.Card.Text())
	for _, e := range page.Log {
		fmt.Fprintf(w, "%s  %s\n", e.Time.UTC().Format("2006-01-02 15:04"), tellEntry(e))
	}
}

// tellEntry writes an entry of the log as a sentence.
func tellEntry(e modelstore.Entry) string {
	var b strings.Builder
	switch e.Action {
	case modelstore.Promoted:
		fmt.Fprintf(&b, "%s became champion of %s, after %s", e.Version, e.Dataset, cmp.Or(e.Previous, "none"))
	case modelstore.RolledBack:
		fmt.Fprintf(&b, "%s was rolled back from %s to %s", e.Dataset, e.Previous, e.Version)
	case modelstore.Unjudged:
		fmt.Fprintf(&b, "%s could not be judged as champion of %s, which stayed %s", e.Version, e.Dataset, cmp.Or(e.Previous, "without one"))
	case modelstore.Refused:
		fmt.Fprintf(&b, "%s was refused as champion of %s, which stayed %s", e.Version, e.Dataset, cmp.Or(e.Previous, "without one"))
	default:
		fmt.Fprintf(&b, "%s: %s of %s", e.Action, e.Version, e.Dataset)
	}
	fmt.Fprintf(&b, "; by %s", cmp.Or(e.By, "somebody"))
	if why := strings.Join(e.Why, "; "); why != "" {
		fmt.Fprintf(&b, ": %s", why)
	}
	return modelstore.Printable(b.String())
}

func (m *models) diff() *cobra.Command {
	return &cobra.Command{
		Use:   "diff VERSION VERSION",
		Short: "show in what two versions differ",
		Long: `Diff compares the cards of two versions field by field: data, settings, seeds,
scores, sizes and hashes of the files. Granules are counted, not listed.

Exit status: 0 done, also where they differ, 1 failed, 2 usage.`,
		Example: "  lacuna models diff blk-chl 3f2a --store var/store",
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			var ids [2]string
			var cards [2]modelstore.Card
			for i, ref := range args {
				id, err := m.store().Resolve(ref)
				if err != nil {
					return err
				}
				v, err := m.store().Peek(id)
				if err != nil {
					return err
				}
				ids[i], cards[i] = id, v.Card
			}
			list, err := modelstore.Diff(cards[0], cards[1])
			if err != nil {
				return err
			}
			return m.print(c, list, func(w io.Writer) {
				fmt.Fprintf(w, "FIELD\t%s\t%s\n", ids[0], ids[1])
				for _, d := range list {
					fmt.Fprintf(w, "%s\t%s\t%s\n", d.Field, cell(d.A), cell(d.B))
				}
			})
		},
	}
}

// cell returns a value, cut to fit into a table.
func cell(s string) string {
	const columns = 60
	s = modelstore.Printable(s)
	if runes := []rune(s); len(runes) > columns {
		s = string(runes[:columns-1]) + "…"
	}
	return cmp.Or(s, "-")
}
