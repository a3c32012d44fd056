package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"lacuna/daemon"
	"lacuna/modelstore"
	"lacuna/pipeline/engine"
	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
	"lacuna/publish/netcdf"

	"github.com/spf13/pflag"
)

// modelFlags say what fills, and on which engine.
type modelFlags struct {
	name   string // a method, a version, champion or a file; empty: found out
	store  string
	engine string
}

func (m *modelFlags) add(f *pflag.FlagSet, cfg *infer.Config) {
	f.StringVar(&m.name, "model", "", "what fills: oi, persistence, climatology, a `VERSION` of the store, champion, or FILE.onnx")
	f.StringVar(&m.store, "store", "", "model store in `DIR`")
	f.StringVar(&m.engine, "engine", engine.Auto, "what networks run on; 'lacuna engines' lists them")
	f.StringVar((*string)(&cfg.Network.Tier), "tier", "", "of a model: fast, standard or full (default: by the deadline, else fast)")
	f.IntVar(&cfg.Network.Members, "members", 0, "how many members to draw (default: 4 for standard, 16 for full)")
	f.Uint64Var(&cfg.Network.Seed, "seed", 0, "of the members' noise")
	f.DurationVar(&cfg.Network.Deadline, "deadline", 0, "take the best tier that is done with a field in this time")
	f.IntVar(&cfg.Network.WindowCells, "window", 0, "side of the largest window in cells (default: 512, on a GPU 1024)")
	f.BoolVar(&cfg.Details, "details", false, "write members, distances and reliability into a second file")
}

// classicalMethods are the names of --model that are not of a model.
func classicalMethods() []string { return []string{"oi", "persistence", "climatology"} }

// method returns the method that the flags come down to.
func (m modelFlags) method() string {
	switch {
	case slices.Contains(classicalMethods(), m.name):
		return m.name
	case m.name == "" && m.store == "":
		return "oi"
	}
	return infer.MethodModel
}

func (m modelFlags) validate(cfg infer.Config) error {
	if m.method() != infer.MethodModel && (cfg.Details || cfg.Network != infer.Network{}) {
		return errors.New("--tier, --members, --seed, --deadline, --window and --details are for models: give --store DIR or --model FILE.onnx, or leave them out")
	}
	if m.method() == infer.MethodModel && m.store == "" && !m.isFile() {
		return fmt.Errorf("--model %s: it is none of %s and no .onnx file, and there is no --store DIR to look it up in",
			m.name, strings.Join(classicalMethods(), ", "))
	}
	return nil
}

func (m modelFlags) isFile() bool { return strings.HasSuffix(m.name, ".onnx") }

// open opens the engine and loads the model, for the method that needs one.
// The function that is returned closes both.
func (m modelFlags) open(method string, stderr io.Writer) (*infer.Model, func(), error) {
	nothing := func() {}
	if method != infer.MethodModel {
		return nil, nothing, nil
	}
	version, err := m.version()
	if err != nil {
		return nil, nothing, err
	}
	e, err := engine.Open(m.engine, engine.Config{}, slog.New(newConsole(stderr, slog.LevelWarn)))
	if err != nil {
		return nil, nothing, err
	}
	device := infer.Device{Backend: e, GPU: e.Kind != engine.ORT}
	var model *infer.Model
	if version != nil {
		model, err = daemon.LoadModel(version, device)
	} else {
		model, err = daemon.LoadModelFile(m.name, device)
	}
	if err != nil {
		e.Finalize()
		return nil, nothing, err
	}
	return model, func() {
		model.Close()
		e.Finalize()
	}, nil
}

// version finds the version in the store; nil for a file.
func (m modelFlags) version() (*modelstore.Version, error) {
	if m.isFile() {
		return nil, nil
	}
	store := modelstore.New(m.store, time.Now)
	if _, err := os.Stat(m.store); err != nil {
		return nil, fmt.Errorf("open model store: %w", err)
	}
	id, err := store.Resolve(orElse(m.name, "champion"))
	if err != nil {
		return nil, fmt.Errorf("find model: %w", err)
	}
	return store.Load(id)
}

// writeDetails writes what else is known of the fields of a granule. A field
// of which nothing at all is known has none.
func writeDetails(path string, g ingest.Granule, analyses []infer.Analysis) error {
	grid := g.Fields[0].Grid
	members, reliable := 0, false
	for _, a := range analyses {
		if a.Details != nil {
			members, reliable = max(members, len(a.Details.Members)), reliable || a.Details.Reliability != nil
		}
	}
	f := netcdf.File{
		Dims: []netcdf.Dim{{Name: "time", Len: len(analyses)}, {Name: "lat", Len: len(grid.Lat)}, {Name: "lon", Len: len(grid.Lon)}},
		Vars: []netcdf.Var{
			axisVar("time", "seconds since 1970-01-01 00:00:00", secondsOf(g)),
			axisVar("lat", "degrees_north", grid.Lat), axisVar("lon", "degrees_east", grid.Lon),
		},
		Attrs: []netcdf.Attr{{Name: "Conventions", Value: "CF-1.8"}, {Name: "title", Value: "Details of the analysis of " + g.Name}},
	}
	add := func(name, longName string, maps int, of func(d *infer.Details) [][]float32) {
		v := netcdf.Var{Name: name, Type: "float", Dims: []string{"time", "lat", "lon"}, Attrs: []netcdf.Attr{{Name: "long_name", Value: longName}}}
		if name == "members" {
			v.Dims = []string{"time", "member", "lat", "lon"}
		}
		for _, a := range analyses {
			v.Raw = append(v.Raw, detailMaps(a, maps, of)...)
		}
		f.Vars = append(f.Vars, v)
	}
	if members > 0 {
		f.Dims = append(f.Dims, netcdf.Dim{Name: "member", Len: members})
		add("members", "complete fields that could be the truth, in the units of the variable", members,
			func(d *infer.Details) [][]float32 { return d.Members })
	}
	add("distance_km", "distance to the nearest observation of the same field in km", 1,
		func(d *infer.Details) [][]float32 { return [][]float32{d.DistanceKM} })
	add("distance_days", "time to the nearest observation of the same pixel in days", 1,
		func(d *infer.Details) [][]float32 { return [][]float32{d.DistanceDays} })
	if reliable {
		add("reliability", "heuristic: how likely the pixel would have been one to learn from; no uncertainty", 1,
			func(d *infer.Details) [][]float32 { return [][]float32{d.Reliability} })
	}
	return netcdf.Write(path, f)
}

// detailMaps returns so many maps of an analysis, NaN where it has fewer.
func detailMaps(a infer.Analysis, maps int, of func(d *infer.Details) [][]float32) []byte {
	var raw []byte
	if a.Details != nil {
		for _, m := range of(a.Details) {
			raw = append(raw, floatBytes(m)...)
		}
	}
	for size := maps * len(a.Flags) * 4; len(raw) < size; {
		raw = append(raw, floatBytes([]float32{float32(math.NaN())})...)
	}
	return raw
}

func secondsOf(g ingest.Granule) []float64 {
	out := make([]float64, len(g.Fields))
	for i, f := range g.Fields {
		out[i] = float64(f.Time.UnixNano()) / 1e9
	}
	return out
}
