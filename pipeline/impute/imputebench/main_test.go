package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lacuna/pipeline/engine/ort"
	"lacuna/pipeline/field"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/samples/pack"
)

// writePack writes waves that travel through clouds: 80 days of 16 x 16 cells.
func writePack(t *testing.T) string {
	t.Helper()
	const side, days = 16, 80
	s := samples.Series{Grid: field.Grid{Lat: make([]float64, side), Lon: make([]float64, side)}, Sea: make(field.Mask, side*side)}
	for i := range side {
		s.Grid.Lat[i], s.Grid.Lon[i] = 40+0.04*float64(i), 10+0.05*float64(i)
	}
	for i := range s.Sea {
		s.Sea[i] = i%side > 0
	}
	for day := range days {
		r := noise.New(1, "clouds").Rand(uint64(day))
		y, x := r.Float64()*side, r.Float64()*side
		values := make([]float32, side*side)
		for i := range values {
			row, col := float64(i/side), float64(i%side)
			values[i] = float32(math.Sin(row/4+float64(day)/6) + math.Cos(col/5))
			if !s.Sea[i] || math.Hypot(row-y, col-x) < 5 {
				values[i] = field.NaN()
			}
		}
		s.Days = append(s.Days, samples.Day{Time: time.Date(2021, 1, 1+day, 12, 0, 0, 0, time.UTC), Values: values})
	}
	var data bytes.Buffer
	if err := pack.Write(&data, s); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "waves.pack")
	if err := os.WriteFile(path, data.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// tinyTraining is what all experiments of a test say.
const tinyTraining = `"side":16,"steps":4,"batch":2,"warmup_steps":1,"design":{"size":"tiny"}`

func runList(t *testing.T, dir, data, list string, more ...string) []result {
	t.Helper()
	path := filepath.Join(dir, "list.json")
	if err := os.WriteFile(path, []byte(list), 0o644); err != nil {
		t.Fatal(err)
	}
	args := append([]string{
		"-engine", "ort", "-threads", "1", "-data", data, "-experiments", path, "-o", dir,
		"-side", "16", "-overlays", "6", "-predict-batch", "3", "-workers", "2",
	}, more...)
	if err := run(context.Background(), args, io.Discard); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(dir, "results.jsonl"))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []result
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var r result
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

func TestEveryMethodLeavesItsLine(t *testing.T) {
	if _, err := ort.LibraryPath(""); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	results := runList(t, dir, writePack(t), `[
		{"name":"ours","train":{`+tinyTraining+`},"classify":true,
		 "members":{"train":{"steps":3},"count":2,"odes":[{"steps":2,"jumps":1}]}},
		{"name":"paper","preset":"paper","train":{`+tinyTraining+`},
		 "samplers":[{"sampler":"recursive","overlays":2,"config":{"steps":3,"jumps":2,"members":2}}]},
		{"name":"ambient","preset":"paper","partition":"pixel:0.3","train":{`+tinyTraining+`}},
		{"name":"miss","preset":"paper","method":"missdiff","ensemble":2,"ensemble_steps":2,"ensemble_overlays":2,"train":{`+tinyTraining+`}},
		{"name":"din","preset":"paper","method":"dindiff","ensemble":2,"ensemble_steps":2,"train":{`+tinyTraining+`}},
		{"name":"oi","method":"oi","modes":["past"]}
	]`)
	lines := map[string]int{}
	for _, r := range results {
		lines[r.Name]++
		if r.Summary.MSE == nil || !(*r.Summary.MSE > 0) {
			t.Errorf("%s in mode %s, %s: no error", r.Name, r.Mode, r.Variant)
		}
		if r.Name == "oi" && *r.Summary.MSE > 0.3 {
			t.Errorf("optimal interpolation of smooth waves leaves %v", *r.Summary.MSE)
		}
	}
	// Three modes, plain and calibrated, and three readings of the members in each.
	for name, want := range map[string]int{"ours": 6 + 9, "paper": 1 + 1, "ambient": 1, "miss": 1, "din": 1, "oi": 1} {
		if lines[name] != want {
			t.Errorf("%s left %d lines, want %d", name, lines[name], want)
		}
	}
	for _, file := range []string{"ours-s1.onnx", "ours-s1-members.onnx", "ours-s1-reliability.onnx"} {
		if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
			t.Error(err)
		}
	}
}

func TestKrigingIsTheBarOnAGaussianSea(t *testing.T) {
	if _, err := ort.LibraryPath(""); err != nil {
		t.Skip(err)
	}
	results := runList(t, t.TempDir(), "", `[
		{"name":"exact","method":"kriging"},
		{"name":"untrained","preset":"paper","train":{`+tinyTraining+`}}
	]`, "-gaussian", "90")
	if len(results) != 2 {
		t.Fatalf("%d results, want two", len(results))
	}
	exact, untrained := *results[0].Summary.MSE, *results[1].Summary.MSE
	if exact > 0.3 || untrained < 2*exact {
		t.Errorf("kriging leaves %.3f and a network after 4 steps %.3f, want little and more", exact, untrained)
	}
}

func TestARunThatMeetsItsDeadlineGoesOn(t *testing.T) {
	if _, err := ort.LibraryPath(""); err != nil {
		t.Skip(err)
	}
	dir, data := t.TempDir(), writePack(t)
	list := `[{"name":"long","preset":"paper","train":{` + strings.Replace(tinyTraining, `"steps":4`, `"steps":60`, 1) + `}}]`
	if early := runList(t, dir, data, list, "-deadline", "1500ms"); len(early) != 0 {
		t.Skip("the machine is too fast for this test")
	}
	results := runList(t, dir, data, list)
	if len(results) != 1 || results[0].Training.Report.Steps != 60 {
		t.Errorf("results are %+v, want one of 60 steps", results)
	}
}

func TestTheListsBesideTheProgramCanBeRun(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("lists", "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("lists %v, %v", paths, err)
	}
	for _, path := range paths {
		list, err := readExperiments(path)
		if err != nil {
			t.Error(err)
		}
		for _, e := range list {
			e.Train.Workers = 1
			if err := e.Train.Validate(); err != nil {
				t.Errorf("%s: %s: %v", path, e.Name, err)
			}
			if e.Members == nil {
				continue
			}
			for _, ode := range e.Members.ODEs {
				if err := ode.Validate(); err != nil {
					t.Errorf("%s: %s: %v", path, e.Name, err)
				}
			}
		}
	}
}

func TestMistakesAreErrors(t *testing.T) {
	write := func(list string) string {
		path := filepath.Join(t.TempDir(), "list.json")
		if err := os.WriteFile(path, []byte(list), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, list := range []string{
		`{}`,
		`[{}]`,
		`[{"name":"a"},{"name":"a"}]`,
		`[{"name":"a","preset":"nonsense"}]`,
		`[{"name":"a","trian":{}}]`,
	} {
		if _, err := readExperiments(write(list)); err == nil {
			t.Errorf("%s was accepted", list)
		}
	}
	for _, args := range [][]string{{}, {"-data", "nowhere"}, {"-data", "nowhere", "-experiments", write(`[{"name":"a"}]`), "-o", t.TempDir()}} {
		if err := run(context.Background(), args, io.Discard); err == nil {
			t.Errorf("%v was accepted", args)
		}
	}
}
