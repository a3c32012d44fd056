package retrain

import (
	"fmt"
	"math"
	"os"
	"path/filepath"

	"lacuna/modelstore"
	"lacuna/pipeline/field"
	"lacuna/pipeline/partition"
	"lacuna/publish/netcdf"
)

// addQueries adds the maps of P(query) as NetCDF files on the native grids.
func (t *Training) addQueries(files map[string][]byte, queries []*partition.QueryMap) error {
	for i, q := range queries {
		name := modelstore.QueryFile
		if len(queries) > 1 {
			name = fmt.Sprintf("query-%d.nc", i+1)
		}
		data, err := queryMap(filepath.Join(t.job.Folder, name), t.req.Data[i].Series.Grid, q)
		if err != nil {
			return err
		}
		files[name] = data
	}
	return nil
}

// queryMap writes a map of P(query) to path and returns the file.
func queryMap(path string, grid field.Grid, q *partition.QueryMap) ([]byte, error) {
	share, draws := make([]float32, len(q.Drawn)), make([]float32, len(q.Drawn))
	for i, p := range q.Probability() {
		share[i], draws[i] = float32(p), float32(q.Drawn[i])
	}
	plane := []string{"lat", "lon"}
	axes := []netcdf.Var{netcdf.Axis("lat", "degrees_north", grid.Lat), netcdf.Axis("lon", "degrees_east", grid.Lon)}
	if p := grid.Plane; p != nil {
		plane = []string{"y", "x"}
		axes = []netcdf.Var{netcdf.Axis("lat", "degrees_north", p.Lat), netcdf.Axis("lon", "degrees_east", p.Lon)}
		axes[0].Dims, axes[1].Dims = plane, plane
	}
	err := netcdf.Write(path, netcdf.File{
		Dims: []netcdf.Dim{{Name: plane[0], Len: len(grid.Lat)}, {Name: plane[1], Len: len(grid.Lon)}},
		Vars: append(axes,
			netcdf.Var{
				Name: "query_probability", Type: "float", Dims: plane, Raw: netcdf.Floats(share),
				Attrs: []netcdf.Attr{{Name: "units", Value: "1"}, {Name: "_FillValue", Value: []float32{float32(math.NaN())}}, {
					Name: "long_name", Value: "share of the training draws in which an observed cell was to be reconstructed",
				}},
			},
			netcdf.Var{
				Name: "draws", Type: "float", Dims: plane, Raw: netcdf.Floats(draws),
				Attrs: []netcdf.Attr{{Name: "units", Value: "1"}, {Name: "long_name", Value: "training draws in which the cell was observed"}},
			}),
		Attrs: []netcdf.Attr{{Name: "Conventions", Value: "CF-1.8"}, {Name: "title", Value: "P(query) of the partitions that a Lacuna model learned from"}},
	})
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}
