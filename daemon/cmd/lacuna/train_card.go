package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"lacuna/daemon"
	"lacuna/modelstore"
	"lacuna/pipeline/field"
	"lacuna/pipeline/finetune"
	"lacuna/pipeline/prior"
	"lacuna/publish/netcdf"
)

// card says what the version is and how it came about.
func (j *trainJob) card(out finetune.Outcome) (modelstore.Card, error) {
	settings, err := json.Marshal(j.request.Settings)
	if err != nil {
		return modelstore.Card{}, fmt.Errorf("write the card: %w", err)
	}
	card := modelstore.Card{Kind: "trained", Dataset: j.flags.dataset, Variable: j.sets[0].variable}
	if j.parentID != "" {
		card = j.parentCard.Child(j.parentID)
		card.Dataset, card.Variable = j.flags.dataset, j.sets[0].variable // the parent may be of another quantity
	}
	s := j.request.Settings
	card.Schema, card.Created, card.Lacuna = modelstore.CardSchema, time.Now().UTC(), daemon.Version()
	card.Data = dataOf(j.sets)
	card.Data.Beside = granulesOf(j.beside)
	card.Split = modelstore.Split{
		Rule:      fmt.Sprintf("by time: the last %g of each of up to %d blocks held out, %d days between", s.Split.HeldOut, s.Split.Blocks, s.Split.GapDays),
		TrainDays: out.TrainDays, TestDays: out.HeldDays,
	}
	card.Transform = "identity"
	if out.Transform.Log10 {
		card.Transform = "log10"
	}
	values := out.Evaluation.Values
	card.Normalisation = modelstore.Normalisation{Mean: values.Mean, Std: values.Std}
	if out.Scaling != nil {
		card.Normalisation.Std = out.Scaling.Std
	}
	card.Networks = nil
	for _, n := range out.Networks {
		card.Networks = append(card.Networks, modelstore.Network{File: n.File, Backbone: n.Backbone, Size: n.Size, Parameters: int64(n.Weights)})
	}
	card.Settings = map[string]json.RawMessage{"finetune": settings}
	card.Seeds = map[string]uint64{"prior": s.Prior.Seed, "imputer": s.Imputer.Seed}
	card.Scores = scoresOf(out)
	if out.Files[finetune.CalibrationFile] != nil {
		card.Calibration = modelstore.Calibration{File: finetune.CalibrationFile, Note: "factors on sigma by distance to the nearest observation and season"}
	}
	if st := out.Evaluation.Strength; st != nil {
		card.Guidance = st.Weight
	}
	card.Engine = modelstore.Engine{Name: j.engine.Kind, Device: withoutFolders(j.engine.Description()), Libraries: libraries()}
	card.Training = modelstore.Training{
		Started: j.started.UTC(), Seconds: time.Since(j.started).Seconds(), Steps: stepsOf(out.Evaluation.Reports),
		Hardware: hardware(), PeakMemoryBytes: peakMemory(), PeakDeviceBytes: j.memory.peak(), Phases: j.phases,
	}
	if j.resumed {
		card.Note = "the training was interrupted; its time is that of the last part"
	}
	return card, nil
}

// dataOf returns the days and the granules of all series together.
func dataOf(sets []dataset) modelstore.Data {
	d := modelstore.Data{From: sets[0].series.Days[0].Time}
	for _, set := range sets {
		days := set.series.Days
		if days[0].Time.Before(d.From) {
			d.From = days[0].Time
		}
		if last := days[len(days)-1].Time; last.After(d.To) {
			d.To = last
		}
	}
	d.Granules = granulesOf(sets)
	return d
}

// granulesOf returns the granules of sets in order of their names.
func granulesOf(sets []dataset) []modelstore.Granule {
	var all []modelstore.Granule
	for _, set := range sets {
		for name, sum := range set.granules {
			all = append(all, modelstore.Granule{Name: name, SHA256: sum})
		}
	}
	slices.SortFunc(all, func(a, b modelstore.Granule) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// scoresOf returns the scores of all sides by name.
func scoresOf(out finetune.Outcome) modelstore.Comparison {
	r := out.Evaluation.Ruling
	if r == nil {
		return modelstore.Comparison{}
	}
	table := func(side finetune.Side) map[string]float64 {
		s := side.Verdict.Summary
		scores := map[string]float64{}
		if side.LatencySeconds > 0 {
			scores["latency_seconds"] = side.LatencySeconds
		}
		for name, v := range map[string]*float64{"mse": s.MSE, "cbgd": s.CBGD, "rmse_physical": s.RMSEPhysical, "bias_physical": s.BiasPhysical} {
			if v != nil {
				scores[name] = *v
			}
		}
		if share, known := s.Gaussian.Covers(0.9); known {
			scores["coverage90"], scores["crps"] = share, s.Gaussian.CRPS
		}
		return scores
	}
	c := modelstore.Comparison{
		On:         fmt.Sprintf("%d overlays of held-out days, %s mode", out.Evaluation.Cases, out.Evaluation.Mode),
		Challenger: table(r.Challenger),
	}
	if r.Champion != nil {
		c.Champion = table(*r.Champion)
	}
	if r.Interpolation != nil {
		c.Interpolation = table(*r.Interpolation)
	}
	return c
}

func stepsOf(r finetune.Reports) int64 {
	steps := int64(0)
	if r.Imputer != nil {
		steps += int64(r.Imputer.Steps)
	}
	if r.Members != nil {
		steps += int64(r.Members.Steps)
	}
	return steps
}

// libraries returns the versions of what computes.
func libraries() map[string]string {
	out := map[string]string{"go": runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return out
	}
	for _, d := range info.Deps {
		switch d.Path {
		case "github.com/gomlx/gomlx", "github.com/gomlx/go-xla", "github.com/yalue/onnxruntime_go":
			out[d.Path] = d.Version
		}
	}
	return out
}

// folders matches the folders of a path in a text.
var folders = regexp.MustCompile(`(/[^/\s()]+)+/`)

// withoutFolders leaves file names of paths only: a card travels to machines
// where the folders mean nothing.
func withoutFolders(text string) string { return folders.ReplaceAllString(text, "") }

// hardware names the processor; the engine names its device itself.
func hardware() string {
	name := runtime.GOARCH
	data, err := os.ReadFile("/proc/cpuinfo")
	if err == nil {
		for line := range strings.Lines(string(data)) {
			if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
				name = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%d x %s", runtime.NumCPU(), name)
}

// peakMemory returns the most memory that this process had, 0 where the
// system does not say.
func peakMemory() int64 {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kB, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
			if err != nil {
				return 0
			}
			return kB * 1024
		}
	}
	return 0
}

// addQueries adds the maps of P(query) as NetCDF files on the native grids.
func (j *trainJob) addQueries(out finetune.Outcome) error {
	for i, q := range out.Queries {
		name := modelstore.QueryFile
		if len(out.Queries) > 1 {
			name = fmt.Sprintf("query-%d.nc", i+1)
		}
		data, err := queryMap(filepath.Join(j.request.Folder, name), j.sets[i].series.Grid, q)
		if err != nil {
			return err
		}
		out.Files[name] = data
	}
	return nil
}

// queryMap writes a map of P(query) to path and returns the file.
func queryMap(path string, grid field.Grid, q *prior.QueryMap) ([]byte, error) {
	share, draws := make([]float32, len(q.Drawn)), make([]float32, len(q.Drawn))
	for i, p := range q.Probability() {
		share[i], draws[i] = float32(p), float32(q.Drawn[i])
	}
	plane := []string{"lat", "lon"}
	err := netcdf.Write(path, netcdf.File{
		Dims: []netcdf.Dim{{Name: "lat", Len: len(grid.Lat)}, {Name: "lon", Len: len(grid.Lon)}},
		Vars: []netcdf.Var{
			axisVar("lat", "degrees_north", grid.Lat), axisVar("lon", "degrees_east", grid.Lon),
			{
				Name: "query_probability", Type: "float", Dims: plane, Raw: floatBytes(share),
				Attrs: []netcdf.Attr{{Name: "units", Value: "1"}, {Name: "_FillValue", Value: []float32{float32(math.NaN())}}, {
					Name: "long_name", Value: "share of the training draws in which an observed cell was to be reconstructed",
				}},
			},
			{
				Name: "draws", Type: "float", Dims: plane, Raw: floatBytes(draws),
				Attrs: []netcdf.Attr{{Name: "units", Value: "1"}, {Name: "long_name", Value: "training draws in which the cell was observed"}},
			},
		},
		Attrs: []netcdf.Attr{{Name: "Conventions", Value: "CF-1.8"}, {Name: "title", Value: "P(query) of the partitions that a Lacuna model learned from"}},
	})
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

func axisVar(name, units string, axis []float64) netcdf.Var {
	var raw []byte
	for _, v := range axis {
		raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(v))
	}
	return netcdf.Var{Name: name, Type: "double", Dims: []string{name}, Raw: raw, Attrs: []netcdf.Attr{{Name: "units", Value: units}}}
}

func floatBytes(values []float32) []byte {
	raw := make([]byte, 0, 4*len(values))
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	return raw
}
