package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"lacuna/pipeline/ingest"

	"github.com/fhs/go-netcdf/netcdf"
)

func ExampleCheckName() {
	fmt.Println(ingest.CheckName("20240401_chl.nc"))
	fmt.Println(ingest.CheckName("../20240401_chl.nc"))
	// Output:
	// <nil>
	// "../20240401_chl.nc": the name has a slash or backslash; rename the file or leave it out of the archive
}

// A granule becomes fields in physical units with NaN for a gap; a file that is
// no granule costs one error, which names the remedy.
func ExampleReader_Read() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	granule, page := filepath.Join(dir, "20240401_sst.nc"), filepath.Join(dir, "20240402_sst.nc")
	if err := errors.Join(writeGranule(granule), os.WriteFile(page, []byte("<html>Please log in</html>"), 0o600)); err != nil {
		panic(err)
	}

	// The child is this program again, with an argument that makes it call
	// RunChild.
	program, err := os.Executable()
	if err != nil {
		panic(err)
	}
	reader, err := ingest.NewReader(ingest.DefaultConfig(), []string{program, "decode"})
	if err != nil {
		panic(err)
	}
	g, err := reader.Read(context.Background(), granule, ingest.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	day := g.Fields[0]
	fmt.Println(g.Source.Variable, day.Time.Format("2006-01-02"), day.Grid.Height(), "x", day.Grid.Width(), day.Values)

	_, err = reader.Read(context.Background(), page, ingest.Options{})
	var bad *ingest.BadGranule
	fmt.Println(errors.As(err, &bad))
	fmt.Println(err)
	// Output:
	// sst 2024-04-01 2 x 3 [11 12 NaN 11.5 12.5 13]
	// true
	// 20240402_sst.nc: it is an HTML page, not NetCDF; the server probably sent an error page: download it again
}

// writeGranule writes two by three cells of sea surface temperature, one of
// them under a cloud.
func writeGranule(path string) error {
	file, err := netcdf.CreateFile(path, netcdf.CLOBBER|netcdf.NETCDF4)
	if err != nil {
		return err
	}
	var faults []error
	add := func(name, standardName, units string, values []float32, dims ...netcdf.Dim) {
		v, err := file.AddVar(name, netcdf.FLOAT, dims)
		faults = append(faults, err,
			v.Attr("standard_name").WriteBytes([]byte(standardName)), v.Attr("units").WriteBytes([]byte(units)))
		if name == "sst" {
			faults = append(faults, v.Attr("_FillValue").WriteFloat32s([]float32{-999}))
		}
		faults = append(faults, v.WriteFloat32s(values))
	}
	dim := func(name string, n uint64) netcdf.Dim {
		d, err := file.AddDim(name, n)
		faults = append(faults, err)
		return d
	}
	time, lat, lon := dim("time", 1), dim("lat", 2), dim("lon", 3)
	add("time", "time", "days since 2024-04-01", []float32{0}, time)
	add("lat", "latitude", "degrees_north", []float32{43, 44}, lat)
	add("lon", "longitude", "degrees_east", []float32{30, 31, 32}, lon)
	add("sst", "sea_surface_temperature", "degree_Celsius", []float32{11, 12, -999, 11.5, 12.5, 13}, time, lat, lon)
	return errors.Join(append(faults, file.Close())...)
}
