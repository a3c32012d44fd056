package zarr

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"lacuna/internal/zarr"
	"lacuna/publish"
	"lacuna/publish/netcdf"
)

var firstDay = time.Date(2024, 2, 27, 0, 0, 0, 0, time.UTC)

// sea describes products for tests: a grid, and values that follow from day and
// revision.
type sea struct{ rows, cols int }

// product writes the product of a day, counted from firstDay.
func (s sea) product(t testing.TB, day, revision int) publish.Product {
	t.Helper()
	at := firstDay.AddDate(0, 0, day)
	cells := s.rows * s.cols
	p := netcdf.Product{
		Variable: "CHL", Space: netcdf.Log10, StandardName: "mass_concentration_of_chlorophyll_a_in_sea_water", LongName: "chlorophyll", Units: "mg m-3",
		Times: []time.Time{at}, Dataset: "sea", Method: "optimal interpolation", Model: "oi", Revision: revision, Version: "test",
		Mode: netcdf.NearRealTime, Windows: []netcdf.Window{{First: at.AddDate(0, 0, -3), Last: at}}, Created: at.AddDate(0, 0, 2),
		Inputs: []netcdf.Input{{Name: "g.nc", SHA256: strings.Repeat("0a", 32), Role: netcdf.RoleTarget}},
		Source: netcdf.File{
			Dims: []netcdf.Dim{{Name: "time", Len: 1}, {Name: "lat", Len: s.rows}, {Name: "lon", Len: s.cols}},
			Vars: []netcdf.Var{
				// The reference date changes from file to file, as in the archives of some producers.
				{Name: "time", Type: "int", Dims: []string{"time"}, Raw: []byte{0, 0, 0, 0}, Attrs: []netcdf.Attr{{Name: "units", Value: "hours since " + at.Format("2006-01-02 15:04:05")}}},
				{Name: "lat", Type: "float", Dims: []string{"lat"}, Attrs: []netcdf.Attr{{Name: "units", Value: "degrees_north"}}, Raw: ramp(s.rows, 40)},
				{Name: "lon", Type: "float", Dims: []string{"lon"}, Attrs: []netcdf.Attr{{Name: "units", Value: "degrees_east"}}, Raw: ramp(s.cols, 20)},
				{
					Name: "CHL", Type: "float", Dims: []string{"time", "lat", "lon"}, Raw: make([]byte, 4*cells),
					Attrs: []netcdf.Attr{{Name: "_FillValue", Value: []float32{-999}}, {Name: "units", Value: "mg m-3"}},
				},
			},
		},
	}
	for i := range cells {
		value := float32(1 + 0.5*math.Sin(float64(i)/7) + 0.01*float64(day) + 100*float64(revision))
		flags := netcdf.Interpolated
		if i%3 == 0 {
			flags = netcdf.Land
			value = float32(math.NaN())
		}
		p.Value, p.Sigma = append(p.Value, value), append(p.Sigma, value/10)
		p.Lower, p.Upper = append(p.Lower, value*0.9), append(p.Upper, value*1.1)
		p.Flags = append(p.Flags, flags)
		binary.LittleEndian.PutUint32(p.Source.Vars[3].Raw[4*i:], math.Float32bits(-999))
	}
	file := filepath.Join(t.TempDir(), fmt.Sprintf("%s_r%d.nc", at.Format("20060102"), revision))
	if err := netcdf.WriteProduct(file, p); err != nil {
		t.Fatal(err)
	}
	image, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(image)
	return publish.Product{
		Dataset: "sea", Granule: at.Format("20060102") + ".nc", Name: at.Format("20060102") + "_l4.nc", Time: at, Revision: revision,
		Path: file, Size: int64(len(image)), SHA256: hex.EncodeToString(sum[:]), Variable: "CHL", Units: "mg m-3", Model: "oi",
		Mode: publish.NearRealTime, Created: at.AddDate(0, 0, 2), BBox: [4]float64{20, 40, 21, 41},
	}
}

func ramp(n int, from float64) (raw []byte) {
	for i := range n {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(from+0.01*float64(i))))
	}
	return raw
}

// seen is a slot as a reader finds it.
type seen struct {
	at       time.Time
	granule  string
	hash     string
	revision int
	maps     map[string][]byte // numbers of each map
}

// readStore reads a store as a reader does that begins with the group's
// zarr.json and knows the format only. It fails t where an object is damaged.
func readStore(t testing.TB, o objects, dataset string) []seen {
	t.Helper()
	ctx := context.Background()
	text, err := o.Get(ctx, dataset+".zarr/zarr.json")
	if err != nil {
		t.Fatal(err)
	}
	if text == nil {
		return nil
	}
	var g group
	if err := json.Unmarshal(text, &g); err != nil {
		t.Fatalf("group: %v", err)
	}
	maps, err := zarr.Open(ctx, shelf{o}, dataset+".zarr")
	if err != nil {
		t.Fatal(err)
	}
	slots := make([]seen, g.Consolidated.Metadata[revisionSeries].Shape[0])
	for name, a := range g.Consolidated.Metadata {
		if len(a.Dims) == 0 || a.Dims[0] != "time" {
			continue
		}
		if a.Shape[0] != len(slots) {
			t.Fatalf("%s has %d slots, others %d", name, a.Shape[0], len(slots))
		}
		for i := range slots {
			s := &slots[i]
			if s.maps == nil {
				s.maps = map[string][]byte{}
			}
			if a.sharded() {
				at := slices.IndexFunc(maps.Arrays, func(a *zarr.Array) bool { return path.Base(a.Name) == name })
				if s.maps[name], err = maps.Arrays[at].Read(ctx, []int{i, 0, 0}, []int{1, a.Shape[1], a.Shape[2]}, 1<<30); err != nil {
					t.Fatal(err)
				}
				continue
			}
			frame, err := o.Get(ctx, dataset+".zarr/"+name+"/"+seriesKey(a, i/seriesChunk))
			if err != nil || frame == nil {
				t.Fatalf("series %s: %v", name, err)
			}
			rows, err := decodeSeries(a, frame)
			if err != nil {
				t.Fatalf("series %s: %v", name, err)
			}
			switch row := rows[i%seriesChunk]; name {
			case revisionSeries:
				s.revision = int(int32(binary.LittleEndian.Uint32(row)))
			case granuleSeries:
				s.granule = string(row)
			case hashSeries:
				s.hash = string(row)
			case "time":
				s.at = time.Unix(int64(binary.LittleEndian.Uint64(row)), 0).UTC()
			}
		}
	}
	return slots
}

// shelf lets package zarr of internal, which fetches stores of others, read one that
// is written here.
type shelf struct{ objects }

func (s shelf) Get(ctx context.Context, key string, _ int64) ([]byte, error) {
	content, err := s.objects.Get(ctx, key)
	if err == nil && content == nil {
		err = fs.ErrNotExist
	}
	return content, err
}

// wantMaps checks that a slot has the numbers of a product, all of them.
func wantMaps(t testing.TB, s seen, p publish.Product) {
	t.Helper()
	for _, v := range fileOf(t, p).Vars {
		if len(v.Dims) == 3 && string(s.maps[v.Name]) != string(v.Raw) {
			t.Errorf("%s of %s is not that of revision %d", v.Name, s.at.Format(time.DateOnly), p.Revision)
		}
	}
	if s.granule != p.Granule || s.hash != p.SHA256 || s.revision != p.Revision || !s.at.Equal(p.Time) {
		t.Errorf("slot is %v %s revision %d with %s, want %s", s.at, s.granule, s.revision, s.hash, p.ID())
	}
}

// empty reports whether a slot shows nothing of the variable.
func (s seen) empty() bool {
	fill := string(binary.LittleEndian.AppendUint32(nil, math.Float32bits(-999)))
	return strings.Trim(string(s.maps["CHL"]), fill) == ""
}

var files sync.Map // netcdf.File by the bytes of the file: reading one takes milliseconds

// decoded is netcdf.Read that reads each file once.
func decoded(image []byte) (netcdf.File, error) {
	if f, ok := files.Load(sha256.Sum256(image)); ok {
		return f.(netcdf.File), nil
	}
	f, err := netcdf.Read(image)
	files.Store(sha256.Sum256(image), f)
	return f, err
}

// fileOf returns the content of the file of a product.
func fileOf(t testing.TB, p publish.Product) netcdf.File {
	t.Helper()
	image, err := os.ReadFile(p.Path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := decoded(image)
	if err != nil {
		t.Fatal(err)
	}
	return f
}
