package files

import (
	"math"

	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
	"lacuna/publish/netcdf"
)

// writeMembers writes the members of a granule's fields, if any were drawn. A
// field that was filled without members has missing values.
func writeMembers(path string, g ingest.Granule, analyses []infer.Analysis) error {
	members := 0
	for _, a := range analyses {
		members = max(members, len(a.Details.Members))
	}
	if members == 0 {
		return nil
	}
	grid := g.Fields[0].Grid
	v := netcdf.Var{
		Name: g.Source.Variable, Type: "float", Dims: []string{"time", "member", "lat", "lon"},
		Attrs: []netcdf.Attr{
			{Name: "_FillValue", Value: []float32{float32(math.NaN())}},
			{Name: "long_name", Value: "complete fields that could be the truth, in the units of the product"},
		},
	}
	for _, a := range analyses {
		v.Raw = append(v.Raw, memberBytes(a, members)...)
	}
	return netcdf.Write(path, netcdf.File{
		Dims: []netcdf.Dim{
			{Name: "time", Len: len(analyses)}, {Name: "member", Len: members}, {Name: "lat", Len: len(grid.Lat)}, {Name: "lon", Len: len(grid.Lon)},
		},
		Vars: []netcdf.Var{
			netcdf.Axis("time", "seconds since 1970-01-01 00:00:00", secondsOf(g)),
			netcdf.Axis("lat", "degrees_north", grid.Lat), netcdf.Axis("lon", "degrees_east", grid.Lon), v,
		},
		Attrs: []netcdf.Attr{{Name: "Conventions", Value: "CF-1.8"}, {Name: "title", Value: "Members of the analysis of " + g.Name}},
	})
}

// memberBytes returns the given number of members of an analysis, NaN where it
// has fewer.
func memberBytes(a infer.Analysis, members int) []byte {
	var raw []byte
	for _, m := range a.Details.Members {
		raw = append(raw, netcdf.Floats(m)...)
	}
	for size := members * len(a.Flags) * 4; len(raw) < size; {
		raw = append(raw, netcdf.Floats([]float32{float32(math.NaN())})...)
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
