package service

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"lacuna/daemon"
	"lacuna/daemon/cli"
	"lacuna/daemon/operate"

	"github.com/spf13/cobra"

	"lacuna/internal/figure"
)

func publishCommand() *cobra.Command {
	p := &publications{}
	c := &cobra.Command{
		Use:   "publish",
		Short: "see what waits for Kafka and the other sinks, send it again, take it back",
		Long: `Publish works on the queue between stored products and their sinks: the folder
of products, and Kafka or a bucket where the configuration names them. It can be
used while the daemon runs; what it queues is delivered by that daemon, or by
the next run or once.

Exit status: 0 done, 1 failed, 2 usage, 78 bad configuration.`,
		Example: `  lacuna publish status --config /etc/lacuna/lacuna.yaml
  lacuna publish replay --config lacuna.yaml --from 2024-04-01 --to 2024-04-30 --topic lacuna
  lacuna publish retract 20240409_chl.nc --config lacuna.yaml --why 'sensor fault'`,
	}
	f := c.PersistentFlags()
	cli.AddConfig(f, &p.config)
	f.BoolVar(&p.json, "json", false, "print JSON")
	return cli.Group(c, p.configured, p.status(), p.replay(), p.retract(), p.retry(), p.forget(), p.expired(), p.takeover())
}

// publications holds the flags of the commands below publish.
type publications struct {
	config string
	json   bool
}

// configured finds the configuration.
func (p *publications) configured() error { return cli.FindConfig(&p.config) }

// on runs do with the queue of the configured service.
func (p *publications) on(c *cobra.Command, do func(*operate.Publications) error) error {
	cfg, err := daemon.LoadConfig(p.config)
	if err != nil {
		return err
	}
	queue, err := operate.JoinPublications(c.Context(), cfg.Operate())
	if err != nil {
		return err
	}
	return errors.Join(do(queue), queue.Close())
}

// print writes v as JSON if that is wanted, and else as write does.
func (p *publications) print(c *cobra.Command, v any, write func(w io.Writer)) error {
	return printAs(c, p.json, v, write)
}

// count prints n in a sentence, or under a key.
func (p *publications) count(c *cobra.Command, key string, n int, format string) error {
	return p.print(c, map[string]int{key: n}, func(w io.Writer) { fmt.Fprintf(w, format+"\n", n) })
}

func (p *publications) status() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "what waits for every sink, since when and why",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.on(c, func(queue *operate.Publications) error {
				s, err := queue.Status(c.Context())
				if err != nil {
					return err
				}
				return p.print(c, s, func(w io.Writer) { printPublishStatus(w, s) })
			})
		},
	}
}

func printPublishStatus(w io.Writer, s operate.PublishStatus) {
	fmt.Fprintln(w, "SINK\tWAITING\tSIZE\tOLDEST\tDELIVERED\tSET ASIDE\tPROBLEM")
	for _, row := range s.Sinks {
		oldest, problem := "-", row.Problem
		if !row.Oldest.IsZero() {
			oldest = figure.Duration(s.Now.Sub(row.Oldest))
		}
		if !row.Configured {
			problem = "not configured any more; 'lacuna publish forget " + row.Sink + "' drops what waits"
		}
		if row.Configured && row.Attempts > 0 {
			problem = fmt.Sprintf("%s (%d attempts)", problem, row.Attempts)
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%d\t%d\t%s\n", row.Sink, row.Waiting, figure.Bytes(row.Bytes), oldest, row.Delivered, row.Aside,
			cmp.Or(problem, "-"))
	}
	for _, a := range s.Aside {
		fmt.Fprintf(w, "\nset aside by %s: %s %s, dataset %s, revision %d\n  %s\n", a.Sink, a.Kind, a.Granule, a.Dataset, a.Revision, a.Problem)
	}
}

func (p *publications) replay() *cobra.Command {
	var request operate.Replay
	var chosen selection
	var topic string
	c := &cobra.Command{
		Use:   "replay [GRANULE|DAY|FROM..TO...] [--dataset NAME] [--topic PREFIX | --sink NAME]",
		Short: "publish the current products of granules, days or all again",
		Long: `Replay queues the newest revision of every product that is named again, of all
where none is, retracted ones left out. Readers tell by dataset, granule and
revision that they have it; on Kafka the event has an id of its own, for the
parts lie elsewhere. Without --topic or --sink every sink gets them; for the folder of products
that mends what was damaged by hand.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) (err error) {
			if request.Selection, err = chosen.of(request.Dataset, args); err != nil {
				return err
			}
			if topic != "" {
				for _, ending := range []string{".events", ".data"} {
					topic = strings.TrimSuffix(topic, ending)
				}
				request.Sink = "kafka:" + topic
			}
			return p.on(c, func(queue *operate.Publications) error {
				n, err := queue.Replay(c.Context(), request)
				if err != nil {
					return err
				}
				return p.count(c, "queued", n, "%d deliveries queued")
			})
		},
	}
	f := c.Flags()
	chosen.add(c)
	f.StringVar(&request.Dataset, "dataset", "", "dataset `NAME` (default: all)")
	f.StringVar(&topic, "topic", "", "`PREFIX` of the Kafka topics to publish to")
	f.StringVar(&request.Sink, "sink", "", "sink `NAME` as status prints it")
	c.MarkFlagsMutuallyExclusive("topic", "sink")
	return c
}

// parseDay reads the day that a flag gives and adds within, the time of day.
func parseDay(flag, text string, within time.Duration) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return time.Time{}, cli.Usage(fmt.Errorf("%s is %q, must be a day like 2024-04-30", flag, text))
	}
	return t.Add(within), nil
}

func (p *publications) retract() *cobra.Command {
	var chosen selection
	var dataset, why string
	c := &cobra.Command{
		Use:   "retract GRANULE|DAY|FROM..TO... --why TEXT",
		Short: "tell everybody that the products of granules, a day or a range must not be used",
		Long: `Retract takes all revisions of the products of granules, days or ranges of days
out of use: sinks remove them where they can, and tell receivers why. A later
revision of a granule is published as usual.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if why == "" {
				return cli.Usage(errors.New("--why TEXT is required: receivers are told"))
			}
			selected, err := chosen.of(dataset, args)
			if err != nil {
				return err
			}
			if selected.IsZero() {
				return cli.Usage(errors.New("name granules, a day or a range like 2024-04-01..2024-04-30"))
			}
			return p.on(c, func(queue *operate.Publications) error {
				gone, err := queue.Retract(c.Context(), selected, why)
				if err != nil {
					return err
				}
				return p.print(c, gone, func(w io.Writer) {
					for _, g := range gone {
						fmt.Fprintf(w, "%s\t%s\trevision %d\tretracted\n", g.Dataset, g.Granule, g.Revision)
					}
					if len(gone) == 0 {
						fmt.Fprintf(w, "%s was retracted before\n", selected)
					}
				})
			})
		},
	}
	chosen.add(c)
	c.Flags().StringVar(&dataset, "dataset", "", "dataset `NAME` (default: every one that has the granule)")
	c.Flags().StringVar(&why, "why", "", "reason that receivers are told (required)")
	return c
}

func (p *publications) retry() *cobra.Command {
	var sink string
	c := &cobra.Command{
		Use:   "retry [--sink NAME]",
		Short: "try again what was set aside",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.on(c, func(queue *operate.Publications) error {
				n, err := queue.Retry(c.Context(), sink)
				if err != nil {
					return err
				}
				return p.count(c, "queued", n, "%d deliveries queued")
			})
		},
	}
	c.Flags().StringVar(&sink, "sink", "", "sink `NAME` (default: all)")
	return c
}

func (p *publications) forget() *cobra.Command {
	return &cobra.Command{
		Use:   "forget SINK",
		Short: "drop what waits for a sink that is no longer configured",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return p.on(c, func(queue *operate.Publications) error {
				n, err := queue.Forget(c.Context(), args[0])
				if err != nil {
					return err
				}
				return p.count(c, "dropped", n, "%d deliveries dropped")
			})
		},
	}
}

func (p *publications) expired() *cobra.Command {
	return &cobra.Command{
		Use:   "expired",
		Short: "what the rules of retention would remove now; removes nothing",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.on(c, func(queue *operate.Publications) error {
				due, err := queue.Expired(c.Context())
				if err != nil {
					return err
				}
				return p.print(c, due, func(w io.Writer) {
					fmt.Fprintln(w, "CLASS\tDATASET\tGRANULE\tREVISION\tSINCE\tSIZE")
					for _, r := range due {
						fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\n", r.Class, r.Dataset, r.Granule, r.Revision,
							r.Since.Format(time.DateOnly), figure.Bytes(r.Bytes))
					}
				})
			})
		},
	}
}
