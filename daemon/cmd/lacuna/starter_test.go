package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lacuna/modelstore/starters"
	"lacuna/pipeline/engine/ort"
	"lacuna/pipeline/ingest"
)

// starterOf returns the name of the version that fills a variable, or skips.
func starterOf(t *testing.T, variable string) string {
	t.Helper()
	if _, err := ort.LibraryPath(""); err != nil {
		t.Skip(err)
	}
	all, err := starters.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		if v.Card.Variable == variable {
			return v.ID
		}
	}
	t.Skipf("the program has no starter for %s: make models", variable)
	return ""
}

// modelOf returns the model that filled a product, the one that had to be trusted
// first, and the source, from its attributes.
func modelOf(t *testing.T, product, variable string) (model, trusted, source string) {
	t.Helper()
	g, err := testReader(t).Read(t.Context(), product, ingest.Options{Variable: variable})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range g.Source.Attrs {
		switch text, _ := a.Value.(string); a.Name {
		case "lacuna_model":
			model = text
		case "lacuna_trust_model":
			trusted = text
		case "source":
			source = text
		}
	}
	return model, trusted, source
}

// A starter is at hand from the tenth day on. As no day was scored before, it is
// not followed, and the product is one of optimal interpolation that says so.
func TestADatasetHasItsStarterAtHandOnceItHasTenDays(t *testing.T) {
	want := starterOf(t, "CHL")
	dir := t.TempDir()
	if status, _, stderr := lacuna("simulate", "-o", filepath.Join(dir, "archive"), "--days", "14", "--grid", "24x32", "--seed", "5"); status != 0 {
		t.Fatal(stderr)
	}
	config := filepath.Join(dir, "lacuna.yaml")
	text := "state_dir: " + dir + "/state\nproducts_dir: " + dir + "/products\npublish: {quick_look: false}\n" +
		"datasets:\n  - name: black-sea\n    archive: {dir: " + dir + "/archive, settle: 0s}\n" +
		"    fill: {network: {members: 2}}\n"
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	status, _, stderr := lacuna("once", "--config", config)
	if status != 0 {
		t.Fatal(stderr)
	}
	products, err := filepath.Glob(filepath.Join(dir, "products/black-sea/2024/04/*_l4.nc"))
	if err != nil || len(products) < 11 {
		t.Fatalf("products %v, %v", products, err)
	}
	if model, trusted, _ := modelOf(t, products[0], "CHL"); model != "oi" || trusted != "" {
		t.Errorf("the first product was filled by %s, with %q to be trusted and no day to scale it by", model, trusted)
	}
	last := products[len(products)-1]
	if model, trusted, source := modelOf(t, last, "CHL"); model != "oi" || trusted != want || strings.Contains(source, "neural network") {
		t.Errorf("the last product was filled by %s, source %q, with %q to be trusted; want oi with %s", model, source, trusted, want)
	}
	for _, said := range []string{"too few days", "starter model (" + want, "not followed yet"} {
		if !strings.Contains(stderr, said) {
			t.Errorf("the log does not say %q:\n%s", said, stderr)
		}
	}
	for _, kept := range []string{"scaling", "calibration"} {
		if _, err := os.Stat(filepath.Join(dir, "state", kept, "black-sea.json")); err != nil {
			t.Errorf("the %s was not kept: %v", kept, err)
		}
	}
	_, story, stderr := lacuna("why", "--config", config, strings.TrimSuffix(filepath.Base(last), "_l4.nc")+".nc")
	if !strings.Contains(story, "filled by oi, with model "+want+" not followed, from 0 scored days") {
		t.Errorf("why does not say that the starter is not followed:\n%s%s", story, stderr)
	}
}

func TestFillTakesTheStarterWhereThereAreDaysToScaleItBy(t *testing.T) {
	want := starterOf(t, "CHL")
	dir := t.TempDir()
	archive := filepath.Join(dir, "archive")
	if status, _, stderr := lacuna("simulate", "-o", archive, "--days", "14", "--grid", "24x32", "--seed", "5"); status != 0 {
		t.Fatal(stderr)
	}
	days, err := filepath.Glob(filepath.Join(archive, "20240405_*.nc"))
	if err != nil || len(days) != 1 {
		t.Fatalf("%v, %v", days, err)
	}
	for _, tt := range []struct{ history, flag, model, trusted, said string }{
		{archive, "--engine=auto", "", want, "starter model (" + want},
		{archive, "--model=starter", want, "", "starter model (" + want},
		{days[0], "--engine=auto", "oi", "", "too few days"},
	} {
		status, stdout, stderr := lacuna("fill", days[0], "-o", t.TempDir(), "--history", tt.history, tt.flag)
		if status != 0 || !strings.Contains(stderr, tt.said) {
			t.Fatalf("status %d, want the word %q:\n%s", status, tt.said, stderr)
		}
		model, trusted, _ := modelOf(t, strings.TrimSpace(stdout), "CHL")
		if trusted != tt.trusted || tt.model != "" && model != tt.model {
			t.Errorf("%s with the history %s: filled by %s, want %s; %q had to be trusted, want %q", tt.flag, tt.history, model, tt.model, trusted, tt.trusted)
		}
	}
	if status, _, stderr := lacuna("fill", days[0], "-o", t.TempDir(), "--model", "starter"); status != 1 || !strings.Contains(stderr, "too few days") {
		t.Errorf("a starter that was named and cannot fill: status %d\n%s", status, stderr)
	}
}

func TestTemperatureHasAStarterOfItsOwn(t *testing.T) {
	want := starterOf(t, "SST")
	archive := filepath.Join(t.TempDir(), "archive")
	if status, _, stderr := lacuna("simulate", "-o", archive, "--product", "med-sst", "--days", "14", "--grid", "24x32", "--seed", "5"); status != 0 {
		t.Fatal(stderr)
	}
	days, err := filepath.Glob(filepath.Join(archive, "*.nc"))
	if err != nil || len(days) < 14 {
		t.Fatalf("%v, %v", days, err)
	}
	status, stdout, stderr := lacuna("fill", days[len(days)-1], "-o", t.TempDir(), "--history", archive, "--model", "starter", "--tier", "standard", "--members", "2", "--members-file")
	if status != 0 || !strings.Contains(stderr, "starter model ("+want) {
		t.Fatalf("status %d:\n%s", status, stderr)
	}
	product := strings.Fields(stdout)[0]
	if _, err := os.Stat(strings.TrimSuffix(product, ".nc") + "_members.nc"); err != nil {
		t.Errorf("it drew no members: %v", err)
	}
	if model, _, _ := modelOf(t, product, "sea_surface_temperature"); model != want {
		t.Errorf("it was filled by %s, want %s", model, want)
	}
}

// A packed dataset does not say what its variable is: the command says so.
func TestTrainingSaysWhyNoStarterFits(t *testing.T) {
	dir := t.TempDir()
	archive, packed := filepath.Join(dir, "archive"), filepath.Join(dir, "sea.pack")
	for _, args := range [][]string{
		{"simulate", "-o", archive, "--days", "20", "--grid", "32x48", "--seed", "5"},
		{"pack", "--data", archive, "-o", packed},
	} {
		if status, _, stderr := lacuna(args...); status != 0 {
			t.Fatal(stderr)
		}
	}
	status, _, stderr := lacuna("train", "--data", packed, "--var", "CHL", "--store", filepath.Join(dir, "store"), "--engine", "ort", "--from", "starter")
	if status != 1 || !strings.Contains(stderr, "do not say what they are of") || !strings.Contains(stderr, "train without --from") {
		t.Errorf("status %d:\n%s", status, stderr)
	}
}
