package chaos

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"lacuna/daemon"
	"lacuna/daemon/cli"
	"lacuna/daemon/cli/clitest"
	"lacuna/daemon/cli/models"
	"lacuna/daemon/cli/service"

	"github.com/spf13/cobra"
)

const (
	programEnv = "LACUNA_TEST_PROGRAM" // makes the test binary the program
	clockEnv   = "LACUNA_TEST_CLOCK"   // a file with what the clock of the machine is wrong by
	nameEnv    = "LACUNA_TEST_NAME"    // of a daemon or worker
)

func TestMain(m *testing.M) {
	clitest.Decode()
	if os.Getenv(programEnv) == "" || len(os.Args) < 2 || os.Args[1] == "decode" {
		clitest.Main(m)
	}
	if err := program(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// program is lacuna. The daemon and the worker are those of the package daemon,
// given a clock that can be set; any other command is that of the program.
func program(command string, args []string) error {
	if command == "disk" {
		return serveDisk(args[0], args[1])
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if command != "run" && command != "worker" {
		root := &cobra.Command{Use: "lacuna", SilenceUsage: true, SilenceErrors: true}
		root.AddCommand(slices.Concat(service.Commands(), models.Commands(), cli.Commands())...)
		return root.ExecuteContext(ctx)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	name := os.Getenv(nameEnv)
	parts := daemon.Parts{
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil)).With("name", name, "pid", os.Getpid()),
		Now: wrongClock(os.Getenv(clockEnv)), Child: []string{self, "decode"}, Program: []string{self}, Name: name,
	}
	load := func() (daemon.Config, error) { return daemon.LoadConfig(args[1]) } // --config FILE
	if command == "run" {
		reload := make(chan os.Signal, 1)
		signal.Notify(reload, syscall.SIGHUP)
		return daemon.Serve(ctx, load, parts, reload)
	}
	cfg, err := load()
	if err != nil {
		return err
	}
	d, err := daemon.New(cfg, parts)
	if err != nil {
		return err
	}
	return d.Work(ctx, name, false)
}

// wrongClock returns a clock that is wrong by what a file says, now.
func wrongClock(file string) func() time.Time {
	var wrong atomic.Int64
	look := func() {
		text, err := os.ReadFile(file)
		by, bad := time.ParseDuration(strings.TrimSpace(string(text)))
		if errors.Join(err, bad) != nil {
			by = 0
		}
		wrong.Store(int64(by))
	}
	look()
	go func() {
		for ; ; time.Sleep(100 * time.Millisecond) {
			look()
		}
	}()
	return func() time.Time { return time.Now().Add(time.Duration(wrong.Load())) }
}
