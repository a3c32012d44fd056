package ingest

import (
	"math"
	"strings"
	"testing"
	"time"

	"lacuna/pipeline/field"
	"lacuna/pipeline/realdata"
)

// The numbers were obtained with Python's netCDF4 1.7 (masked arrays, NaN
// masked): shape, date of the first and last frame by num2date, count of
// unmasked values inside and outside the range that ingest allows, and count,
// minimum and maximum of those inside in the fullest frame.
func TestRealFilesReadRight(t *testing.T) {
	day := func(y int, m time.Month, d int) time.Time { return time.Date(y, m, d, 0, 0, 0, 0, time.UTC) }
	tests := []struct {
		file           string
		variable       string
		product        string
		log10          bool
		n, height, w   int
		first, last    time.Time
		observed       int // observed cells of all frames
		rejected       int
		sea            int // 0: no mask
		frame, inFrame int // the fullest frame
		low, high      float32
		south, west    float64 // coordinates of the first row and column
		format         string
	}{
		{
			file: "phytofit/pacific_modis_poly4_2021.nc", variable: "CHL", product: "chlorophyll", log10: true,
			n: 181, height: 336, w: 285, first: day(2021, 1, 1), last: day(2021, 6, 30), observed: 707090, sea: 51837,
			frame: 107, inFrame: 26366, low: 0.06869199, high: 23.606277, south: 46.02083333, west: -139.96875,
		},
		{
			file: "phytofit/pacific_modis_ocx_2020.nc", variable: "CHL", product: "chlorophyll", log10: true,
			n: 229, height: 336, w: 285, first: day(2020, 1, 1), last: day(2020, 8, 16), observed: 911205, sea: 51837,
			frame: 126, inFrame: 25484, low: 0.18712644, high: 16.701887, south: 46.02083333, west: -139.96875,
		},
		{
			file: "phytofit/pacific_seawifs_gsmgs_2009.nc", variable: "CHL", product: "chlorophyll", log10: true,
			n: 313, height: 336, w: 285, first: day(2009, 1, 1), last: day(2009, 11, 9), observed: 761984, sea: 51837,
			frame: 213, inFrame: 23547, low: 0.0014014699, high: 84.645355, south: 46.02083333, west: -139.96875,
		},
		{
			file: "phytofit/testregion_365d.nc", variable: "CHL", product: "chlorophyll", log10: true,
			n: 365, height: 96, w: 161, first: day(1970, 1, 1), last: day(1970, 12, 31), observed: 504835, sea: 11340,
			frame: 133, inFrame: 10412, low: 0.26323202, high: 97.58937, south: 45.02083333, west: -60.96875,
		},
		{
			file: "phytofit/atlantic_modis_poly4_2021.nc", variable: "CHL", product: "chlorophyll", log10: true,
			n: 59, height: 564, w: 465, first: day(2021, 1, 1), last: day(2021, 2, 28), observed: 308592, sea: 192196,
			frame: 57, inFrame: 18743, low: 0.0512833, high: 23.604855, south: 39.02083333, west: -70.96875,
		},
		{
			file: "bigelow_gom_sst/gom_modis_sst_daily_201808.nc", variable: "SST", product: "sst",
			n: 31, height: 86, w: 110, first: day(2018, 8, 1), last: day(2018, 8, 31), observed: 114987, sea: 6608,
			frame: 5, inFrame: 6178, low: 13.355, high: 31.925, south: 46.0416546, west: -72.04165935,
		},
		{
			file: "bigelow_gom_sst/gom_modis_chl_monthly_2018.nc", variable: "CHL", product: "chlorophyll", log10: true,
			n: 12, height: 86, w: 110, first: day(2018, 1, 1), last: day(2018, 12, 1), observed: 77297, sea: 6608,
			frame: 8, inFrame: 6667, low: 0.06443622, high: 78.87555, south: 46.0416546, west: -72.04165935,
		},
		{
			file: "dineof_alboran/alboranSST_small.nc", variable: "SST", product: "sst", format: "NetCDF-3 classic",
			n: 10, height: 201, w: 301, first: day(2017, 5, 14), last: day(2017, 5, 24), observed: 121243, sea: 22186,
			frame: 0, inFrame: 20144, low: 14.689997, high: 20.249994, south: 34.01, west: -5.99,
		},
		{
			// 9090 values lie below 0.001 mg m-3.
			file: "xcube_olci_northsea/olci_chl_300m_5d.nc", variable: "conc_chl", product: "chlorophyll", log10: true,
			n: 5, height: 1000, w: 2000, first: time.Date(2017, 1, 16, 10, 9, 21, 834432000, time.UTC),
			last: time.Date(2017, 1, 30, 10, 46, 33, 836892000, time.UTC), observed: 1149568, rejected: 9090, sea: 835688,
			frame: 3, inFrame: 565139, low: 0.0010028391, high: 22.043486, south: 52.49875, west: 0.00125,
		},
		{
			// 80 values lie below 1; the smallest of the others is 1.0141798.
			file: "smap_sss/SMAP_L3_SSS_20210105_8DAYS_V5.0.nc", variable: "smap_sss", product: "sss",
			n: 1, height: 720, w: 1440, first: day(2021, 1, 5), last: day(2021, 1, 5), observed: 532436, rejected: 80,
			frame: 0, inFrame: 532436, low: 1.0141798, high: 43.37371, south: 89.875, west: -179.875,
		},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			if raceEnabled() && tt.n*tt.height*tt.w > 2_000_000 {
				t.Skip("too many cells for the race detector")
			}
			g := mustRead(t, realdata.Path(t, tt.file), Options{})
			if g.Source.Variable != tt.variable || g.Product != tt.product || g.Transform.Log10 != tt.log10 {
				t.Errorf("read %s as %s, log10 %v; want %s, %s, %v", g.Source.Variable, g.Product, g.Transform.Log10, tt.variable, tt.product, tt.log10)
			}
			if tt.format == "" {
				tt.format = "NetCDF-4"
			}
			if g.Format != tt.format {
				t.Errorf("format %s, want %s", g.Format, tt.format)
			}
			if len(g.Fields) != tt.n || len(g.Rejected) != tt.n {
				t.Fatalf("%d fields and %d masks, want %d", len(g.Fields), len(g.Rejected), tt.n)
			}
			first, last := g.Fields[0], g.Fields[tt.n-1]
			if d := first.Time.Sub(tt.first).Abs() + last.Time.Sub(tt.last).Abs(); d > time.Millisecond {
				t.Errorf("times %v .. %v, want %v .. %v", first.Time, last.Time, tt.first, tt.last)
			}
			if first.Grid.Height() != tt.height || first.Grid.Width() != tt.w {
				t.Errorf("grid %v, want %d×%d", first.Grid, tt.height, tt.w)
			}
			if math.Abs(first.Grid.Lat[0]-tt.south) > 1e-5 || math.Abs(first.Grid.Lon[0]-tt.west) > 1e-5 {
				t.Errorf("first cell at %v, %v, want %v, %v", first.Grid.Lat[0], first.Grid.Lon[0], tt.south, tt.west)
			}
			observed, rejected := 0, 0
			for i, f := range g.Fields {
				observed += f.ObservedMask().Count()
				rejected += g.Rejected[i].Count()
			}
			if observed != tt.observed || rejected != tt.rejected {
				t.Errorf("%d observed and %d rejected, want %d and %d", observed, rejected, tt.observed, tt.rejected)
			}
			if s := first.Sea.Count(); s != tt.sea {
				t.Errorf("%d sea cells, want %d", s, tt.sea)
			}
			s := field.Summarise(g.Fields[tt.frame].Values)
			if s.N != tt.inFrame || float32(s.Min) != tt.low || float32(s.Max) != tt.high {
				t.Errorf("frame %d has %d values in %v..%v, want %d in %v..%v", tt.frame, s.N, s.Min, s.Max, tt.inFrame, tt.low, tt.high)
			}
		})
	}
}

func TestRealSeaMaskOfTheBlackSea(t *testing.T) {
	path := realdata.Path(t, "masks/blk_1km_790x1101_from_globe.nc")
	grid := field.Grid{Lat: make([]float64, 790), Lon: make([]float64, 1101)}
	for i := range grid.Lat {
		grid.Lat[i] = 40 + 8*float64(i)/789
	}
	for i := range grid.Lon {
		grid.Lon[i] = 26.5 + 15.5*float64(i)/1100
	}
	mask, err := reader(t, "decode").ReadSea(t.Context(), path, grid)
	if err != nil {
		t.Fatal(err)
	}
	if n := mask.Count(); n != 365606 { // sum of the variable by netCDF4
		t.Errorf("%d sea cells, want 365606", n)
	}
	at := func(lat, lon float64) bool { return mask[int((lat-40)/8*789+0.5)*1101+int((lon-26.5)/15.5*1100+0.5)] }
	if !at(43, 34) || at(46.5, 39) || at(40.5, 33) {
		t.Error("the middle of the Black Sea is land, or its shores are sea")
	}
}

func TestNotesSayWhatWasAssumed(t *testing.T) {
	g := mustRead(t, realdata.Path(t, "bigelow_gom_sst/gom_modis_chl_monthly_2018.nc"), Options{})
	all := strings.Join(g.Notes, "\n")
	for _, want := range []string{"lat is taken for latitude by its name", "calendar months", "sea mask is variable mask: 6608 of 9460", "1066 values lie on land"} {
		if !strings.Contains(all, want) {
			t.Errorf("no note says %q:\n%s", want, all)
		}
	}
}
