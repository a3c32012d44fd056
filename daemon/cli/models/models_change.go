package models

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"lacuna/daemon/cli"
	"lacuna/modelstore"

	"github.com/spf13/cobra"

	"lacuna/internal/durable"
	"lacuna/internal/figure"
)

func (m *models) promote() *cobra.Command {
	var change modelstore.Change
	var why, over string
	c := &cobra.Command{
		Use:   "promote VERSION",
		Short: "make a version the champion of its dataset",
		Long: `Promote checks every byte of a version and makes it champion. The step is written
to promotions.log with your name and reason; 'lacuna models rollback' undoes it.

With --over the version is promoted only if the champion is still the one that
it was compared with.

Exit status: 0 it is champion, 1 it is not (with the reason), 2 usage.`,
		Example: "  lacuna models promote 3f2a --store var/store --why 'better in the coastal strip'",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) (err error) {
			s := m.store()
			if change.Version, err = s.Resolve(args[0]); err != nil {
				return err
			}
			change.By = cmp.Or(change.By, cli.UserName())
			change.Why = []string{cmp.Or(why, "by hand, no reason given")}
			var e modelstore.Entry
			if c.Flags().Changed("over") {
				if over != "" {
					if over, err = s.Resolve(over); err != nil {
						return err
					}
				}
				e, err = s.PromoteOver(c.Context(), over, change)
			} else {
				e, err = s.Promote(c.Context(), change)
			}
			if err != nil {
				return err
			}
			return m.print(c, e, func(w io.Writer) { fmt.Fprintln(w, tellEntry(e)) })
		},
	}
	f := c.Flags()
	f.StringVar(&change.Dataset, "dataset", "", "`DATASET` it is to serve (default: that of its card)")
	f.StringVar(&why, "why", "", "`REASON`, for the log")
	f.StringVar(&change.By, "by", "", "`NAME` for the log (default: your user name)")
	f.StringVar(&over, "over", "", "only if the champion is still `VERSION` (empty: none)")
	return c
}

func (m *models) rollback() *cobra.Command {
	var dataset, by, why string
	c := &cobra.Command{
		Use:   "rollback",
		Short: "make the champion before the present one champion again",
		Long: `Rollback goes back one step: the version that served before the present champion
serves again. Doing it twice goes back two steps. A version that is damaged is
passed over. Nothing is deleted: 'lacuna models promote' makes the champion that
was rolled back champion again.

Exit status: 0 rolled back, 1 there is nothing to go back to, 2 usage.`,
		Example: "  lacuna models rollback --store var/store --why 'seams in the May products'",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			s := m.store()
			if dataset == "" {
				if dataset, err = onlyDataset(s); err != nil {
					return err
				}
			}
			e, passed, err := s.Rollback(c.Context(), dataset, cmp.Or(by, cli.UserName()), cmp.Or(why, "by hand, no reason given"))
			for _, p := range passed {
				fmt.Fprintf(c.ErrOrStderr(), "passed over: %v\n", p)
			}
			if err != nil {
				return err
			}
			return m.print(c, e, func(w io.Writer) { fmt.Fprintln(w, tellEntry(e)) })
		},
	}
	f := c.Flags()
	f.StringVar(&dataset, "dataset", "", "`DATASET` to roll back (default: the only one)")
	f.StringVar(&why, "why", "", "`REASON`, for the log")
	f.StringVar(&by, "by", "", "`NAME` for the log (default: your user name)")
	return c
}

// onlyDataset returns the dataset that has a champion, if there is only one.
func onlyDataset(s *modelstore.Store) (string, error) {
	champions, err := s.Champions()
	if err != nil {
		return "", err
	}
	var names []string
	for name := range champions {
		names = append(names, name)
	}
	switch len(names) {
	case 0:
		return "", fmt.Errorf("nothing was ever promoted in %s", s.Dir())
	case 1:
		return names[0], nil
	}
	return "", cli.Usage(fmt.Errorf("%d datasets have a champion; say which with --dataset", len(names)))
}

func (m *models) export() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "export VERSION",
		Short: "write a version as one tar file",
		Long: `Export writes a version as a tar file that 'lacuna models import' reads, here or
elsewhere. The files are checked on the way. The same version gives the same
bytes on every machine; their sha256 is printed.

Exit status: 0 done, 1 failed, 2 usage.`,
		Example: "  lacuna models export champion --store var/store -o champion.tar",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := m.store().Resolve(args[0])
			if err != nil {
				return err
			}
			if out == "-" {
				return m.store().Export(c.Context(), id, c.OutOrStdout())
			}
			done := exported{Version: id, File: cmp.Or(out, id+".tar")}
			if err := done.write(c, m.store()); err != nil {
				return err
			}
			return m.print(c, done, func(w io.Writer) {
				fmt.Fprintf(w, "%s  %s  sha256 %s\n", done.File, figure.Bytes(done.Bytes), done.SHA256)
			})
		},
	}
	c.Flags().StringVarP(&out, "output", "o", "", "tar `FILE`, - for standard output (default: VERSION.tar)")
	return c
}

// exported is an export as it is printed.
type exported struct {
	Version string `json:"version"`
	File    string `json:"file"`
	Bytes   int64  `json:"bytes"`
	SHA256  string `json:"sha256"`
}

// write makes the tar file appear whole or not at all.
func (e *exported) write(c *cobra.Command, s *modelstore.Store) (err error) {
	file, err := durable.Pending(e.File, 0o644)
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	defer func() { err = errors.Join(err, file.Cleanup()) }()
	hash := sha256.New()
	err = cli.During(c.ErrOrStderr(), "writing "+e.Version, func() error { return s.Export(c.Context(), e.Version, io.MultiWriter(file, hash)) })
	if err != nil {
		return err
	}
	if e.Bytes, err = file.Seek(0, io.SeekCurrent); err != nil {
		return err
	}
	e.SHA256 = hex.EncodeToString(hash.Sum(nil))
	return file.CloseAtomicallyReplace()
}

func (m *models) importing() *cobra.Command {
	return &cobra.Command{
		Use:   "import FILE",
		Short: "add a version from a tar file that export wrote",
		Long: `Import adds the version in a tar file to the store, under the same name as where
it comes from, or restores it if the copy here is damaged. The tar file is not
trusted: anything but the files of one card, with their sizes and sha256, is
refused, and nothing of it stays. FILE - is standard input.

An imported version serves nobody until it is promoted.

Exit status: 0 done, 1 refused (with the reason), 2 usage.`,
		Example: "  lacuna models import champion.tar --store var/store",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			in := c.InOrStdin()
			if args[0] != "-" {
				file, err := os.Open(args[0])
				if err != nil {
					return err
				}
				defer file.Close()
				info, err := file.Stat()
				if err != nil {
					return err
				}
				reading := cli.NewReading(c.ErrOrStderr(), "reading "+args[0]+", MiB", file, info.Size())
				defer reading.Finish()
				in = reading
			}
			v, err := m.store().Import(c.Context(), in)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			row := modelRow{Version: v.ID, Kind: v.Card.Kind, Dataset: v.Card.Dataset, Created: v.Card.Created, Parent: v.Card.Parent, Bytes: v.Bytes(), State: []string{}}
			return m.print(c, row, func(w io.Writer) { fmt.Fprintln(w, v.ID) })
		},
	}
}

func (m *models) gc() *cobra.Command {
	var keep modelstore.Retention
	var dry bool
	c := &cobra.Command{
		Use:   "gc",
		Short: "remove the versions that nothing needs",
		Long: `Gc removes versions, except champions, former champions that a rollback can
reach, the ancestors of both, what is pinned, the newest of every dataset, and
what came in recently. It says why it keeps what it keeps; with --dry-run it only
says. It also removes what writers that were killed left behind.

Exit status: 0 done, 1 failed, 2 usage.`,
		Example: "  lacuna models gc --store var/store --dry-run",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if keep.Newest < 0 || keep.Young < 0 {
				return cli.Usage(errors.New("--keep and --young must not be negative"))
			}
			sweep, err := m.store().GC(c.Context(), keep, dry)
			if err != nil {
				return err
			}
			return m.print(c, sweep, func(w io.Writer) { printSweep(w, sweep, dry) })
		},
	}
	f := c.Flags()
	f.IntVar(&keep.Newest, "keep", 5, "keep the newest `N` versions of every dataset")
	f.DurationVar(&keep.Young, "young", 24*time.Hour, "keep what came in no longer ago than this `TIME`")
	f.BoolVar(&dry, "dry-run", false, "only say what would be removed")
	return c
}

func printSweep(w io.Writer, sweep modelstore.Sweep, dry bool) {
	removed := "removed"
	if dry {
		removed = "would be removed"
	}
	for _, k := range sweep.Kept {
		fmt.Fprintf(w, "%s\tkept: %s\n", k.Version, k.Why)
	}
	for _, id := range sweep.Removed {
		fmt.Fprintf(w, "%s\t%s\n", id, removed)
	}
	fmt.Fprintf(w, "%d of %d versions %s, %s; %d unfinished leftovers\n", len(sweep.Removed), len(sweep.Removed)+len(sweep.Kept),
		removed, figure.Bytes(sweep.Bytes), sweep.Leftovers)
}

func (m *models) pin() *cobra.Command {
	var by, why string
	c := &cobra.Command{
		Use:     "pin VERSION",
		Short:   "keep a version from gc",
		Example: "  lacuna models pin 3f2a --store var/store --why 'figures of the paper'",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := m.store().Resolve(args[0])
			if err != nil {
				return err
			}
			if err := m.store().Pin(c.Context(), id, cmp.Or(by, cli.UserName()), why); err != nil {
				return err
			}
			return m.print(c, modelRow{Version: id, State: []string{"pinned"}}, func(w io.Writer) { fmt.Fprintf(w, "%s is pinned\n", id) })
		},
	}
	c.Flags().StringVar(&why, "why", "", "`REASON`, kept with the pin")
	c.Flags().StringVar(&by, "by", "", "`NAME`, kept with the pin (default: your user name)")
	return c
}

func (m *models) unpin() *cobra.Command {
	return &cobra.Command{
		Use:   "unpin VERSION",
		Short: "let gc have a version that was pinned",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := m.store().Resolve(args[0])
			if err != nil {
				return err
			}
			if err := m.store().Unpin(c.Context(), id); err != nil {
				return err
			}
			return m.print(c, modelRow{Version: id, State: []string{}}, func(w io.Writer) { fmt.Fprintf(w, "%s is not pinned\n", id) })
		},
	}
}
