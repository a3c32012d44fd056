package files

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"lacuna/daemon/cli"
	"lacuna/fetch"
	"lacuna/internal/durable"
	"lacuna/publish/kafka/consumer"

	"github.com/spf13/cobra"
)

type consumeFlags struct {
	cfg     consumer.Config
	to      string
	command string
}

func consumeCommand() *cobra.Command {
	flags := consumeFlags{cfg: consumer.DefaultConfig()}
	c := &cobra.Command{
		Use:   "consume --brokers HOST:PORT,... --to DIR",
		Short: "receive products from Kafka as files",
		Long: `Consume writes every product that is published to Kafka into a folder, as
DIR/DATASET/NAME with its event beside it as NAME.json, and prints its path. A
file appears whole and verified or not at all, each revision once. A product that
is retracted is removed, with its event. A name that a file system does not take
is cut, with a tilde and its SHA-256 added; the event has all of it.

A product that cannot be had, because its parts are gone, damaged or not where
its event says, is told on standard error and noted with the reason in
DIR/.set-aside.jsonl, and the next one follows; when it is published again, it
is taken.

With --exec a shell command is run after each: LACUNA_EVENT is published or
retracted, LACUNA_FILE the path, LACUNA_DATASET, LACUNA_GRANULE, LACUNA_REVISION,
LACUNA_TIME and LACUNA_WHY say what it is, and the event comes on its standard
input. If the command fails, consume stops, and begins with the same product at
the next start.

Consumers of one --group share the datasets and continue where the group left
off; --from says where a new group begins. Brokers that are away are waited for.

Exit status: 0 done or interrupted, 1 failed, 2 usage.`,
		Example: "  lacuna consume --brokers localhost:9092 --to products\n" +
			"  lacuna consume --brokers localhost:9092 --to products --once --exec 'ncdump -h \"$LACUNA_FILE\"'",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if flags.to == "" {
				return cli.Usage(errors.New("--to DIR is required"))
			}
			flags.cfg.Dir = flags.to
			if err := flags.cfg.Validate(); err != nil {
				return cli.Usage(err)
			}
			return flags.run(c.Context(), c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.StringSliceVar(&flags.cfg.Brokers, "brokers", nil, "`HOST:PORT` of one or more brokers, with commas (required)")
	f.StringVar(&flags.to, "to", "", "`DIR` for the products (required)")
	f.StringVar(&flags.command, "exec", "", "shell `COMMAND` to run for every product")
	f.StringVar(&flags.cfg.Group, "group", flags.cfg.Group, "consumer group")
	f.StringVar(&flags.cfg.From, "from", flags.cfg.From, "where a new group begins: beginning or now")
	f.BoolVar(&flags.cfg.Once, "once", false, "exit when all that is there has been received")
	f.StringVar(&flags.cfg.Prefix, "prefix", flags.cfg.Prefix, "of the topics' names")
	f.BoolVar(&flags.cfg.TLS.Enabled, "tls", false, "encrypt")
	f.StringVar(&flags.cfg.TLS.CAFile, "tls-ca", "", "`FILE` of the authority that signed the broker's certificate; default: those of the system")
	f.StringVar(&flags.cfg.TLS.CertFile, "tls-cert", "", "`FILE` of our certificate")
	f.StringVar(&flags.cfg.TLS.KeyFile, "tls-key", "", "`FILE` of its key")
	f.StringVar(&flags.cfg.SASL.Mechanism, "sasl", "", "log in with plain, scram-sha-256 or scram-sha-512")
	f.StringVar(&flags.cfg.SASL.User, "sasl-user", "", "`USER` to log in as")
	f.StringVar(&flags.cfg.SASL.PasswordFile, "sasl-password-file", "", "`FILE` whose first line is the password")
	return c
}

func (f consumeFlags) run(ctx context.Context, stdout, stderr io.Writer) error {
	if err := fetch.CheckSecretFiles(map[string]string{"--sasl-password-file": f.cfg.SASL.PasswordFile, "--tls-key": f.cfg.TLS.KeyFile}); err != nil {
		return err
	}
	if err := durable.MakeFolders(f.to); err != nil {
		return err
	}
	removeLeftovers(f.to, time.Now())
	inbox := inbox{dir: f.to, command: f.command, stdout: stdout, stderr: stderr}
	f.cfg.Refused = inbox.refused
	c, err := consumer.New(f.cfg, inbox.take, slog.New(cli.NewConsole(stderr, slog.LevelWarn)))
	if err != nil {
		return cli.Usage(err)
	}
	return c.Run(ctx)
}

// removeLeftovers removes unfinished files of a consumer that was killed, once
// they are too old to be those of one that still works.
func removeLeftovers(dir string, now time.Time) {
	const old = 24 * time.Hour
	found, _ := filepath.Glob(filepath.Join(dir, ".incoming-*"))
	for _, path := range found {
		if info, err := os.Stat(path); err == nil && now.Sub(info.ModTime()) > old {
			_ = os.Remove(path)
		}
	}
}

// inbox is a folder that products are received into.
type inbox struct {
	dir, command   string
	stdout, stderr io.Writer
}

// take puts one product into its place, or takes a retracted one away, and
// runs the command. It is idempotent.
func (b inbox) take(ctx context.Context, p consumer.Product) error {
	// Neither name has a folder in it: the consumer refuses such events.
	path := filepath.Join(b.dir, consumer.FileName(p.Dataset), consumer.FileName(p.File.Name))
	there, err := revisionOf(path)
	switch {
	case err != nil:
		return err
	case p.Missing != nil:
		return b.missing(p)
	case there > p.Revision:
		return nil // a newer revision is in place: the group was made to begin again
	case p.Retracted:
		if err := remove(path); err != nil {
			return err
		}
		fmt.Fprintf(b.stderr, "lacuna: retracted %s: %s\n", path, oneLine(p.Why))
	default:
		if err := b.store(path, p); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(b.stdout, path); err != nil {
			return err
		}
	}
	return b.run(ctx, path, p)
}

// revisionOf returns the revision of the product in place; 0: none.
func revisionOf(path string) (int, error) {
	content, err := os.ReadFile(path + ".json")
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	var e struct{ Revision int }
	if err == nil && json.Unmarshal(content, &e) != nil {
		return 0, nil // not written by us
	}
	return e.Revision, err
}

func remove(path string) error {
	for _, p := range []string{path, path + ".json"} {
		if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// store moves the file into place, its event after it, and returns when both
// will survive a power cut.
func (b inbox) store(path string, p consumer.Product) error {
	folder := filepath.Dir(path)
	if err := durable.MakeFolders(folder); err != nil {
		return err
	}
	event, err := json.MarshalIndent(p.Event, "", "  ")
	if err != nil {
		return err
	}
	if err := os.Chmod(p.Path, 0o644); err != nil { // temporary files are private
		return err
	}
	if err := os.Rename(p.Path, path); err != nil {
		return err
	}
	if err := durable.WriteFile(path+".json", append(event, '\n'), 0o644); err != nil {
		return err
	}
	return durable.Sync(folder)
}

func (b inbox) run(ctx context.Context, path string, p consumer.Product) error {
	if b.command == "" {
		return nil
	}
	event, err := json.Marshal(p.Event)
	if err != nil {
		return err
	}
	kind := "published"
	if p.Retracted {
		kind = "retracted"
	}
	c := exec.CommandContext(ctx, "/bin/sh", "-c", b.command)
	c.Env = append(os.Environ(), "LACUNA_EVENT="+kind, "LACUNA_FILE="+path, "LACUNA_DATASET="+variable(p.Dataset), "LACUNA_GRANULE="+variable(p.Granule),
		"LACUNA_REVISION="+strconv.Itoa(p.Revision), "LACUNA_TIME="+p.Time.Format(time.RFC3339), "LACUNA_WHY="+variable(p.Why))
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(event), b.stdout, b.stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("run %q for %s: %w", b.command, path, err)
	}
	return nil
}
