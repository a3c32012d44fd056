package jobs

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"lacuna/pipeline/engine/ort"
	"lacuna/pipeline/field"
	"lacuna/pipeline/lab/tables"
	"lacuna/pipeline/noise"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/samples/pack"
)

// writePack writes waves that travel through clouds: 110 days of 16 x 16 cells.
func writePack(t *testing.T) string {
	t.Helper()
	const side, days = 16, 110
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

// settings are the settings of all jobs of a test.
const settings = `{"seeds":2,"split":{"held_out":0.4,"gap_days":3,"blocks":1},"overlays":{"count":12},"train":{"steps":4,"batch":2,"warmup_steps":1},
	"members":{"steps":3},"drawing":{"members":3,"ode":{"steps":2,"jumps":1}}}`

func runPlan(t *testing.T, dir, plan string, more ...string) string {
	t.Helper()
	if _, err := ort.LibraryPath(""); err != nil {
		t.Skip(err)
	}
	path := filepath.Join(t.TempDir(), "plan.json")
	if err := os.WriteFile(path, []byte(plan), 0o644); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-engine", "ort", "-threads", "1", "-plan", path, "-o", dir, "-predict-batch", "3", "-workers", "2"}, more...)
	var errs bytes.Buffer
	if err := Run(context.Background(), args, io.Discard, &errs); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	return errs.String()
}

// plan lists the product in two modes, its members, and a timed training.
func plan(data string) string {
	job := func(rest string) string {
		return `{"data":"` + data + `","size":"tiny","side":16,"settings":` + settings + `,` + rest + `}`
	}
	network := `"network":{"preset":"lacuna","strategy":"empirical"}`
	return "[" + strings.Join([]string{
		job(`"name":"past","mode":"past","rows":[{"name":"oi"},{"name":"imputer","by":"calibrated",` + network + `},{"name":"climatology"}]`),
		job(`"name":"members","mode":"delayed","rows":[{"name":"oi"},{"name":"ensemble","by":"ensemble",` + network + `},
			{"name":"half","by":"textured","texture":0.5,` + network + `}]`),
		job(`"name":"speed","mode":"past","speed_steps":5,"rows":[{"name":"oi"}]`),
		job(`"name":"brier","mode":"single","classify":true,"rows":[{"name":"oi"}]`),
	}, ",") + "]"
}

func TestJobsOfAPlanShareNetworksAndCanBePooled(t *testing.T) {
	dir := t.TempDir()
	runPlan(t, dir, plan(writePack(t)))
	networks, err := filepath.Glob(filepath.Join(dir, "networks", "*.onnx"))
	if err != nil || len(networks) != 4 {
		t.Errorf("networks are %v, want two seeds of one imputer and of its members; %v", networks, err)
	}
	lines := map[string]int{}
	results := filepath.Join(dir, resultsFile)
	err = readRecords(results, func(r tables.Record) {
		lines[r.Table+" "+r.Verdict.Method]++
		if len(r.Losses.Squared) != r.Verdict.Summary.Samples {
			t.Errorf("%s of %s has %d losses for %d cases", r.Verdict.Method, r.Table, len(r.Losses.Squared), r.Verdict.Summary.Samples)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"past oi": 1, "past imputer": 2, "past climatology": 1, "members oi": 1, "members ensemble": 2, "members half": 2} {
		if lines[name] != want {
			t.Errorf("%d lines of %s, want %d", lines[name], name, want)
		}
	}
	var speed speedLine
	var brier brierLine
	data, err := os.ReadFile(results)
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Split(strings.TrimSpace(string(data)), "\n")
	if err := json.Unmarshal([]byte(all[len(all)-2]), &speed); err != nil || !(speed.BarePerSecond > 0 && speed.TrainPerSecond > 0 && speed.PrepareSeconds > 0) {
		t.Errorf("speed is %+v, %v", speed, err)
	}
	if err := json.Unmarshal([]byte(all[len(all)-1]), &brier); err != nil || brier.Cells == 0 || len(brier.Curve) == 0 || len(brier.Deciles) < 2 || !(brier.Map > 0 && brier.Classifier > 0 && brier.Constant <= 0.25) {
		t.Errorf("the classifier's scores are %+v, %v", brier, err)
	}

	var out bytes.Buffer
	// The second file repeats the first, as a resumed run would.
	if err := Run(context.Background(), []string{"-pool", "-reference", "oi", results, results}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"### past: waves.pack, past, 16×16, 12 overlays", "### members: waves.pack, delayed", "| imputer | ", "(2 seeds)", "against oi"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the pooled tables lack %q:\n%s", want, out.String())
		}
	}
}

func TestARunGoesOnAfterItsDeadline(t *testing.T) {
	dir, data := t.TempDir(), writePack(t)
	if log := runPlan(t, dir, plan(data), "-deadline", "1ms"); !strings.Contains(log, "goes on") {
		t.Errorf("the deadline passed in silence:\n%s", log)
	}
	if _, err := os.Stat(filepath.Join(dir, "past", tables.ResultsFile)); err == nil {
		t.Error("a table was made within a millisecond")
	}
}

func TestOnlyTheJobsThatAreNamedAreMade(t *testing.T) {
	all := []job{{Name: "past"}, {Name: "members"}, {Name: "speed"}}
	names := func(plan []job) (out []string) {
		for _, j := range plan {
			out = append(out, j.Name)
		}
		return out
	}
	for list, want := range map[string][]string{"": {"past", "members", "speed"}, "speed,past": {"past", "speed"}, "members": {"members"}} {
		if got, err := only(all, list); err != nil || !slices.Equal(names(got), want) {
			t.Errorf("-only %q makes %v, %v; want %v", list, names(got), err, want)
		}
	}
	if _, err := only(all, "past,sped"); err == nil || !strings.Contains(err.Error(), `"sped"`) {
		t.Errorf("a job that is not in the plan: %v", err)
	}
}

func TestPlansOfTheResultsAreGood(t *testing.T) {
	files, err := filepath.Glob("plans/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("plans: %v, %v", files, err)
	}
	// A plan that names what no script makes ends on the machine with the GPU.
	script, err := os.ReadFile("../../../ops/setup/seas.sh")
	if err != nil {
		t.Fatal(err)
	}
	made := []string{"nano.pack", "sss.pack", "simulated-1.pack", "simulated-2.pack", "simulated-3.pack"} // by measure-gpu.sh
	for _, m := range regexp.MustCompile(`(?m)^pack (\w+)`).FindAllStringSubmatch(string(script), -1) {
		made = append(made, m[1]+".pack")
	}
	for _, path := range files {
		plan, err := readPlan(path, true)
		if err != nil {
			t.Error(err)
		}
		for _, j := range plan {
			for _, name := range append([]string{j.Data}, j.Beside...) {
				if !slices.Contains(made, name) {
					t.Errorf("%s: job %s is of %s, which neither seas.sh nor measure-gpu.sh makes", path, j.Name, name)
				}
			}
			if j.Prior != "" || !strings.HasSuffix(j.Data, ".pack") {
				t.Errorf("%s: job %s needs %s and %s, where there are packs only", path, j.Name, j.Data, j.Prior)
			}
			// Guided masks of larger windows must not take more memory.
			if cells := j.settings.Pool.Batch * j.settings.Train.Side * j.settings.Train.Side; cells > 256*64*64 {
				t.Errorf("%s: job %s draws %d cells at a time", path, j.Name, cells)
			}
		}
	}
}

func TestPlansAreReadStrictly(t *testing.T) {
	for _, text := range []string{
		`{}`,
		`[{"data":"x.pack","rows":[{"name":"oi"}]}]`,
		`[{"name":"a","mode":"past","rows":[{"name":"oi"}]}]`,
		`[{"name":"a","data":"x.pack","mode":"past","rows":[{"name":"nonsense"}]}]`,
		`[{"name":"a","data":"x.pack","mode":"never","rows":[{"name":"oi"}]}]`,
		`[{"name":"a","data":"x.pack","mode":"past","table":"nonsense"}]`,
		`[{"name":"a","data":"x.pack","mode":"past","rows":[{"name":"oi"}],"settings":{"trian":{}}}]`,
		`[{"name":"a","data":"x.pack","mode":"past","rows":[{"name":"oi"}]},{"name":"a","data":"x.pack","mode":"past","rows":[{"name":"oi"}]}]`,
	} {
		path := filepath.Join(t.TempDir(), "plan.json")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := readPlan(path, false); err == nil {
			t.Errorf("%s was accepted", text)
		}
	}
	if err := Run(context.Background(), []string{}, io.Discard, io.Discard); err == nil {
		t.Error("a run without a plan was accepted")
	}
}
