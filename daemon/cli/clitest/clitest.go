// Package clitest runs commands in tests of their packages: with the process
// that decodes granules, with granules, and with a model. It does not know which
// commands there are.
package clitest

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"lacuna/daemon/feed"
	"lacuna/modelstore"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest/ingesttest"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/simulate"

	"github.com/spf13/cobra"
)

// Decode is the first call of a TestMain whose program plays lacuna: granules are decoded
// by the test program, started again with the word decode, or by what make test has built
// for it.
func Decode() { ingesttest.Decode() }

// Main is the TestMain of packages whose commands read granules.
func Main(m *testing.M) {
	Decode()
	os.Exit(m.Run())
}

// Run runs a command as a user would. What went wrong is in err, as it is for
// the program.
func Run(t *testing.T, c *cobra.Command, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	c.SilenceUsage, c.SilenceErrors = true, true
	c.SetArgs(args)
	c.SetIn(&bytes.Buffer{})
	c.SetOut(&out)
	c.SetErr(&errs)
	err = c.ExecuteContext(t.Context())
	return out.String(), errs.String(), err
}

// Simulate writes simulated granules and their truth, without the days of which
// nothing was seen.
func Simulate(t *testing.T, cfg simulate.Config) (archive, truth string) {
	t.Helper()
	archive, truth = t.TempDir(), t.TempDir()
	SimulateInto(t, cfg, archive, truth)
	return archive, truth
}

// SimulateInto is Simulate into folders that may outlast a test.
func SimulateInto(t *testing.T, cfg simulate.Config, archive, truth string) {
	t.Helper()
	world, err := simulate.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range world.Schedule() {
		g := world.Granule(d)
		if g.Seen.ObservedMask().Count() == 0 {
			continue
		}
		err := errors.Join(feed.Write(filepath.Join(archive, g.Name), g), feed.Write(filepath.Join(truth, g.Name), world.TruthGranule(d.Day)))
		if err != nil {
			t.Fatal(err)
		}
	}
}

// ModelFolder returns a folder with the files of a model of random weights.
func ModelFolder(t *testing.T) string {
	t.Helper()
	v, err := infer.Untrained(impute.Design{
		Backbone: nn.BackboneUNet, Size: nn.Tiny, Variance: true, Departure: true, Extras: impute.Extras{Last: true, Analysis: true},
	}, 1)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, data := range map[string][]byte{modelstore.ImputerFile: v.Imputer, modelstore.MembersFile: v.Members} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
