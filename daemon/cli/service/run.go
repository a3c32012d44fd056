package service

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"lacuna/daemon"
	"lacuna/daemon/cli"

	"github.com/spf13/cobra"
)

// daemonFlags are the flags of commands that make a daemon.
type daemonFlags struct {
	config string
	log    string
	debug  bool
}

func (f *daemonFlags) add(c *cobra.Command) {
	cli.AddConfig(c.Flags(), &f.config)
	c.Flags().StringVar(&f.log, "log", "text", "log format: text, json, or console for people")
	c.Flags().BoolVar(&f.debug, "debug", false, "log what is done in detail")
}

// daemon reads the configuration and returns the service it describes.
func (f *daemonFlags) daemon(stderr io.Writer) (*daemon.Daemon, error) {
	parts, err := f.parts(stderr)
	if err != nil {
		return nil, err
	}
	cfg, err := daemon.LoadConfig(f.config)
	if err != nil {
		return nil, err
	}
	return daemon.New(cfg, parts)
}

// parts are the logger and the programs that the service is given.
func (f *daemonFlags) parts(stderr io.Writer) (daemon.Parts, error) {
	if err := cli.FindConfig(&f.config); err != nil {
		return daemon.Parts{}, err
	}
	log, err := newLogger(stderr, f.log, f.debug)
	if err != nil {
		return daemon.Parts{}, err
	}
	child, err := cli.DecodeChild()
	if err != nil {
		return daemon.Parts{}, err
	}
	return daemon.Parts{Log: log, Child: child, Program: child[:1]}, nil
}

func newLogger(w io.Writer, format string, debug bool) (*slog.Logger, error) {
	options := &slog.HandlerOptions{Level: slog.LevelInfo}
	if debug {
		options.Level = slog.LevelDebug
	}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, options)), nil
	case "console":
		return slog.New(cli.NewConsole(w, options.Level)), nil
	}
	return nil, cli.Usage(fmt.Errorf("--log is %q, must be text, json or console", format))
}

func runCommand() *cobra.Command {
	var flags daemonFlags
	c := &cobra.Command{
		Use:   "run",
		Short: "the daemon: fill granules as they arrive, until stopped",
		Long: `Run watches the archives of all datasets in the configuration, fills every new
granule and stores the products. It stops on SIGTERM or Ctrl-C after it has
finished the granule in hand; a second signal ends it at once, and the granule
is taken up again at the next start.

On SIGHUP (systemctl reload) it reads the configuration again. If that is good,
it finishes the granule in hand and goes on with the new one; else it says in
the log what is wrong and goes on with the old one. A new state_dir needs a
restart. An embedded broker begins empty.

Exit status: 0 stopped, 1 failed, 2 usage, 78 bad configuration.`,
		Example: "  lacuna run --config /etc/lacuna/lacuna.yaml\n  lacuna run --config ops/demo/lacuna.yaml --log console",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			parts, err := flags.parts(c.ErrOrStderr())
			if err != nil {
				return err
			}
			if cfg, err := daemon.LoadConfig(flags.config); err != nil {
				return err
			} else if err := cfg.Readable(); err != nil {
				return err
			}
			reload := make(chan os.Signal, 1)
			signal.Notify(reload, syscall.SIGHUP)
			defer signal.Stop(reload)
			return daemon.Serve(c.Context(), func() (daemon.Config, error) { return daemon.LoadConfig(flags.config) }, parts, reload)
		},
	}
	flags.add(c)
	return c
}

func onceCommand() *cobra.Command {
	var flags daemonFlags
	c := &cobra.Command{
		Use:   "once",
		Short: "one pass of the daemon, then exit; for cron",
		Long: `Once does what run does, for what is in the archives now, and exits.

Exit status: 0 done (also where granules were set aside, each with its reason),
1 something was left unfinished, 2 usage, 78 bad configuration.`,
		Example: "  lacuna once --config /etc/lacuna/lacuna.yaml",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			d, err := flags.daemon(c.ErrOrStderr())
			if err != nil {
				return err
			}
			done, err := d.Once(c.Context())
			fmt.Fprintf(c.OutOrStdout(), "%d products, %d granules set aside, %d unfinished\n",
				done.Products, done.SetAside, done.Unfinished)
			if done.TooFresh > 0 {
				fmt.Fprintf(c.OutOrStdout(), "%d files are too fresh: they changed less than archive.settle ago and may still be being written; the next pass takes them\n", done.TooFresh)
			}
			return err
		},
	}
	flags.add(c)
	return c
}
