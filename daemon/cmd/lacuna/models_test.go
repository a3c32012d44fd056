package main

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"lacuna/modelstore"

	"github.com/rogpeppe/go-internal/testscript"
)

// The scripts in testdata/models use the model store as an operator would.
func TestModelsScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:  "testdata/models",
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"status": status, "version": newVersion},
	})
}

// version STORE NAME DATASET DAY [PARENT] adds a version, as a training would,
// and puts its name into the variable NAME.
func newVersion(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 {
		ts.Fatalf("usage: version store name dataset day [parent]")
	}
	created, err := time.Parse(time.DateOnly, args[3])
	ts.Check(err)
	card := modelstore.Card{
		Kind: "trained", Dataset: args[2], Variable: "CHL", Created: created, Lacuna: "0.1", Note: "network " + args[1],
		Networks: []modelstore.Network{{File: modelstore.ImputerFile, Backbone: "unet", Size: "tiny", Parameters: 1234}},
		Scores:   modelstore.Comparison{Challenger: map[string]float64{"mse": 0.125}},
	}
	if len(args) > 4 {
		card.Kind, card.Parent = "fine-tuned", args[4]
	}
	v, err := modelstore.New(ts.MkAbs(args[0]), time.Now).Write(context.Background(), card, map[string]io.Reader{
		modelstore.ImputerFile: strings.NewReader("weights of " + args[1]),
	})
	ts.Check(err)
	ts.Setenv(args[1], v.ID)
}
