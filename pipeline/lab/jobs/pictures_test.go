package jobs

import (
	"bytes"
	"context"
	"encoding/json"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lacuna/pipeline/field"
	"lacuna/pipeline/lab/tables"
)

// A plan for a GPU is tried on a processor in seconds, and what it leaves can be
// pooled and drawn: the strengths, sizes and steps that it asks for would take hours.
func TestAPlanIsTriedPooledAndDrawn(t *testing.T) {
	dir := t.TempDir()
	runPlan(t, dir, `[{"name":"main","data":"`+writePack(t)+`","size":"large","side":256,"mode":"single",
		"rows":[{"name":"paper"},{"name":"dindiff"},{"name":"missdiff"},{"name":"oi"}],
		"settings":{"seeds":3,"split":{"held_out":0.4,"gap_days":3,"blocks":1},"train":{"steps":100000,"batch":64},"dindiff_draws":64}}]`, "-try")
	results := filepath.Join(dir, resultsFile)
	err := readRecords(results, func(r tables.Record) {
		if r.Side != trialSide || r.Sample == nil || len(r.Sample.Filled) != trialSide*trialSide {
			t.Fatalf("%s was scored in windows of %d, with sample %v", r.Verdict.Method, r.Side, r.Sample != nil)
		}
		if (r.Masks != nil) != (r.Verdict.Method == "paper") {
			t.Errorf("%s has masks %+v", r.Verdict.Method, r.Masks)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Run(context.Background(), []string{"-pool", "-reference", "paper", results}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| dindiff | ", "against paper", "PSNR", "CBGD", "off 1 by", "context share"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the pooled tables lack %q:\n%s", want, out.String())
		}
	}
	pictures := filepath.Join(dir, "sheets")
	if err := Run(context.Background(), []string{"-pictures", pictures, "-methods", "dindiff,missdiff,paper", results}, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(pictures, "methods-32.png"))
	if err != nil {
		t.Fatal(err)
	}
	if picture, err := png.Decode(bytes.NewReader(data)); err != nil || picture.Bounds().Dx() < picture.Bounds().Dy() {
		t.Errorf("four maps side by side are a picture of %v, %v", picture.Bounds(), err)
	}
	if err := Run(context.Background(), []string{"-pictures", pictures, "-methods", "nobody", results}, io.Discard, io.Discard); err == nil {
		t.Error("a sheet without any method was drawn")
	}
}

func TestASheetShowsOneSampleOfEachDataset(t *testing.T) {
	sample := func(number int) *tables.Sample {
		return &tables.Sample{
			Case: number, Grid: field.Grid{Lat: []float64{1, 2}, Lon: []float64{1, 2}}, Sea: tables.Cells{true, true, true, true},
			Visible: tables.Cells{true, false, false, false}, Scored: tables.Cells{false, true, false, false},
			Truth: tables.Values{1, 2, float32(math.NaN()), float32(math.NaN())}, Filled: tables.Values{9, 5, 6, 7},
		}
	}
	poor := &column{"strategies", "sea", 64, map[string]*tables.Sample{"paper": sample(3)}}
	full := &column{"main", "sea", 64, map[string]*tables.Sample{"paper": sample(4), "guided": sample(4)}}
	other := &column{"main", "sea", 128, map[string]*tables.Sample{"paper": sample(5)}}
	methods := []string{"guided", "paper"}
	if got := fullest([]*column{poor, full, other}, 64, methods); !slices.Equal(got, []*column{full}) {
		t.Errorf("the sheet has %d columns", len(got))
	}
	full.samples["guided"] = sample(8)
	if _, err := full.draw(methods); err == nil {
		t.Error("two samples stand side by side as one")
	}
	// What a method was shown stays as it was, and its error is that of scored cells.
	s := sample(1)
	if got := composed(s); !slices.Equal(got, []float32{1, 5, 6, 7}) || s.Filled[0] != 9 {
		t.Errorf("the map is %v", got)
	}
	if got := errorOf(s); got != 9 {
		t.Errorf("the error is %g, want 9", got)
	}
	// Gaps survive the way through a file.
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var back tables.Sample
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(back.Visible, s.Visible) || back.Truth[1] != 2 || !math.IsNaN(float64(back.Truth[2])) || !slices.Equal(back.Filled, s.Filled) {
		t.Errorf("%s came back as %+v", data, back)
	}
}
