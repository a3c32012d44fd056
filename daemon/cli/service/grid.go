package service

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"lacuna/daemon/cli"
	"lacuna/daemon/operate"

	"github.com/spf13/cobra"
)

func gridCommand() *cobra.Command {
	var o operator
	var bins binFlags
	c := &cobra.Command{
		Use:   "grid [FILE|DIR... -o DIR {--bbox WEST,SOUTH,EAST,NORTH|--like FILE}]",
		Short: "the grid of a dataset: show it, or have it chosen anew; or bin swaths to one",
		Long: `Grid is about the grid that the granules of a dataset must have. It is what
most of its first granules have, settled when five agree, or what grid in the
configuration of the dataset names; a granule on another is set aside. It can
be used while the daemon runs.

With files it bins swaths, Level-2 files in which every pixel has a place of its
own, to a regular grid: a file a day (UTC) with the mean of the pixels in each
cell, their number, and the standard error of the mean, which a fill takes for the
error of the observation. Means are taken as the quantity is filled, those of
chlorophyll of the logarithm. With --like the grid is that of another file, to bring
a source to the grid of the others. The folder that it writes is an archive of kind dir.

Exit status: 0 done, 1 failed, 2 usage, 78 bad configuration.`,
		Example: `  lacuna grid show --config /etc/lacuna/lacuna.yaml
  lacuna grid reset --dataset black-sea-chl --reason 'the producer went to 1 km' --config lacuna.yaml
  lacuna grid l2 -o archive --bbox 27,40,42,47 --step 0.02 --quality 'quality_level >= 4'
  lacuna grid viirs -o viirs-regridded --like modis/20240401_chl.nc`,
	}
	o.add(c)
	bins.add(c.Flags())
	cli.Group(c, nil, o.showGrid(), o.resetGrid())
	group := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 || bins.out == "" && len(bins.box) == 0 && bins.like == "" {
			return group(c, args)
		}
		return bins.run(c, args)
	}
	return c
}

func (o *operator) showGrid() *cobra.Command {
	return &cobra.Command{
		Use:   "show",
		Short: "the grid, since when and why, and how many granules have it and others",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.on(c, func(operations *operate.Operations) error {
				all, err := operations.Grids(c.Context(), o.dataset)
				if err != nil {
					return err
				}
				return o.print(c, emptyList(all), func(w io.Writer) {
					for i, s := range all {
						if i > 0 {
							fmt.Fprintln(w)
						}
						printGrid(w, s)
					}
				})
			})
		},
	}
}

func printGrid(w io.Writer, s operate.GridStatus) {
	fmt.Fprintf(w, "dataset:\t%s\ngrid:\t%s\n", s.Dataset, cmp.Or(s.Grid, "none yet: the first granule that is read gives it"))
	if s.Grid != "" {
		fmt.Fprintf(w, "since:\t%s\nwhy:\t%s\n", s.Since.UTC().Format(time.RFC3339), s.Why)
	}
	switch {
	case s.Pinned != "":
		fmt.Fprintf(w, "configured:\t%s\n", s.Pinned)
	case s.Settled:
		fmt.Fprintf(w, "settled:\tyes, %d granules agree\n", s.Agree)
	default:
		fmt.Fprintf(w, "settled:\tno, %d of the %d granules that settle it agree\n", s.Agree, s.Needed)
	}
	if s.Pinned == "" && s.Pin != "" {
		fmt.Fprintf(w, "to fix it:\tgrid: %s\n", s.Pin)
	}
	for _, other := range s.Others {
		fmt.Fprintf(w, "others:\t%d granules have %s\n", other.Granules, other.Grid)
	}
	for _, change := range s.Changes {
		fmt.Fprintf(w, "change:\t%s  %s: %s\n", change.At.UTC().Format(time.RFC3339), cmp.Or(change.Grid, "reset"), change.Why)
	}
}

func (o *operator) resetGrid() *cobra.Command {
	reason := ""
	c := &cobra.Command{
		Use:   "reset --reason TEXT",
		Short: "forget the grid of a dataset: its next granules choose it, and those set aside for theirs are tried again",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if strings.TrimSpace(reason) == "" {
				return cli.Usage(errors.New("--reason TEXT is required: it is kept in the journal"))
			}
			return o.on(c, func(operations *operate.Operations) error {
				done, err := operations.ResetGrid(c.Context(), o.dataset, reason)
				if err != nil {
					return err
				}
				return o.print(c, done, func(w io.Writer) {
					fmt.Fprintf(w, "%s: the grid %s is forgotten, %d granules are tried again by the daemon, or by the next run or once\n",
						done.Dataset, cmp.Or(done.Grid, "(there was none)"), done.Again)
				})
			})
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "`TEXT` that says why (required)")
	return c
}
