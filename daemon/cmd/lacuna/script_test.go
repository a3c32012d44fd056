package main

import (
	"bytes"
	"errors"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"lacuna/pipeline/ingest/ingesttest"

	"github.com/rogpeppe/go-internal/testscript"
)

// The scripts in testdata/script run the real command as a user would.
func TestMain(m *testing.M) {
	ingesttest.Decode()
	testscript.Main(m, map[string]func(){"lacuna": main})
}

// lacuna runs the program in this process.
func lacuna(args ...string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	status = run(args, strings.NewReader(""), &out, &err)
	return status, out.String(), err.String()
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:  "testdata/script",
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"status": status, "readable": readable},
	})
}

// status N COMMAND... asserts the exit status of a command.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N command...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// rawNumber is a duration as Go writes it, or a number with more digits than
// anybody measures.
var rawNumber = regexp.MustCompile(`\b[0-9]+(h[0-9]+)?m[0-9.]+s\b|\b[0-9]+\.[0-9]{7,}`)

// readable COMMAND... asserts that a command writes numbers for people.
func readable(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: readable command...")
	}
	ts.Check(ts.Exec(args[0], args[1:]...))
	if raw := rawNumber.FindString(ts.ReadFile("stdout")); raw != "" {
		ts.Fatalf("nobody reads %q", raw)
	}
}
