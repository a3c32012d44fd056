package geo

import (
	"errors"
	"math"
	"testing"
)

type attrs map[string]float64

func (a attrs) get(name string) (float64, bool) { v, ok := a[name]; return v, ok }

// The figures are those of PROJ 9.5 by pyproj 3.7.2, and one of Snyder's own.
func TestProjectionsAgreeWithPROJ(t *testing.T) {
	const millimetre, tenthMetre, degrees = 1e-3, 0.1, 1e-6
	tests := []struct {
		name, mapping string
		attrs         attrs
		within        float64
		places        [][4]float64 // lat, lon, y, x
	}{
		{"Hughes ellipsoid of the NSIDC", PolarStereographic, attrs{
			"latitude_of_projection_origin": 90, "straight_vertical_longitude_from_pole": -45, "standard_parallel": 70,
			"semi_major_axis": 6378273, "semi_minor_axis": 6356889.449,
		}, millimetre, [][4]float64{
			{70, -45, -2187973.819025, 0},
			{83.2, 120.5, 713981.997673, 184648.299512},
			{60.1, -170.3, 1913663.576234, -2702763.991386},
			{89.99, 10, -621.353081, 887.384164},
		}},
		{"south, with false origin", PolarStereographic, attrs{
			"latitude_of_projection_origin": -90, "straight_vertical_longitude_from_pole": 0, "standard_parallel": -71,
			"false_easting": 100000, "false_northing": -20000, "semi_major_axis": 6378137, "inverse_flattening": 298.257223563,
		}, millimetre, [][4]float64{
			{-71, 0, 2062760.108543, 100000}, {-65.3, 140.2, -2113100.768351, 1843905.814294}, {-78.9, -60, 584837.952526, -947610.064121},
		}},
		{"sphere, by the scale at the pole", PolarStereographic, attrs{
			"latitude_of_projection_origin": 90, "straight_vertical_longitude_from_pole": 0,
			"scale_factor_at_projection_origin": 0.994, "earth_radius": 6371000,
		}, millimetre, [][4]float64{{75, 30, -1444054.949393, 833725.513757}, {66.5, -100, 457465.318400, -2594414.743349}}},
		{"Snyder, the example at 75°S", PolarStereographic, attrs{
			"latitude_of_projection_origin": -90, "longitude_of_projection_origin": -100, "standard_parallel": -71,
			"semi_major_axis": 6378388, "inverse_flattening": 297,
		}, tenthMetre, [][4]float64{{-75, 150, -560526.4, -1540033.6}}},
		{"Europe of CORDEX", RotatedPole, attrs{"grid_north_pole_latitude": 39.25, "grid_north_pole_longitude": -162}, degrees, [][4]float64{
			{50.75, 18, -0.0000000, 0.0000000}, {36.1, -5.4, -11.6219218, -19.1236560}, {70, 40, 20.4247307, 7.8579915},
		}},
		{"turned about its own pole too", RotatedPole, attrs{
			"grid_north_pole_latitude": -20, "grid_north_pole_longitude": 100, "north_pole_grid_longitude": 30,
		}, degrees, [][4]float64{
			{10, 20, 5.8143650, 107.1258045}, {-45.5, 170, 27.9832822, -101.7687501},
		}},
	}
	for _, tt := range tests {
		p, err := Of(tt.mapping, tt.attrs.get)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		for _, want := range tt.places {
			if y, x := p.Project(want[0], want[1]); math.Abs(y-want[2]) > tt.within || math.Abs(x-want[3]) > tt.within {
				t.Errorf("%s: %g°N %g°E is at y %.7f, x %.7f, want %.7f, %.7f", tt.name, want[0], want[1], y, x, want[2], want[3])
			}
			lat, lon := p.Place(want[2], want[3])
			if off := tt.within; tt.mapping == RotatedPole && (math.Abs(lat-want[0]) > off || math.Abs(lon-want[1]) > off) ||
				math.Abs(lat-want[0]) > 1e-6 || math.Abs(lon-want[1]) > 1e-5 {
				t.Errorf("%s: y %.3f, x %.3f is %.8f°N %.8f°E, want %g, %g", tt.name, want[2], want[3], lat, lon, want[0], want[1])
			}
		}
	}
}

func TestThePoleItselfHasAPlace(t *testing.T) {
	p, err := Of(PolarStereographic, attrs{"latitude_of_projection_origin": -90, "straight_vertical_longitude_from_pole": 30}.get)
	if err != nil {
		t.Fatal(err)
	}
	if lat, lon := p.Place(0, 0); lat != -90 || lon != 30 {
		t.Errorf("the origin is at %g°N %g°E", lat, lon)
	}
}

func TestAMappingThatSaysTooLittleIsRefused(t *testing.T) {
	pole := attrs{"latitude_of_projection_origin": 90, "straight_vertical_longitude_from_pole": 0}
	with := func(name string, v float64) attrs {
		out := attrs{name: v}
		for k, x := range pole {
			if k != name {
				out[k] = x
			}
		}
		return out
	}
	for name, tt := range map[string]struct {
		mapping string
		attrs   attrs
	}{
		"no pole":               {PolarStereographic, attrs{"straight_vertical_longitude_from_pole": 0}},
		"oblique":               {PolarStereographic, with("latitude_of_projection_origin", 52)},
		"no meridian":           {PolarStereographic, attrs{"latitude_of_projection_origin": 90}},
		"parallel of the south": {PolarStereographic, with("standard_parallel", -70)},
		"parallel is no number": {PolarStereographic, with("standard_parallel", math.NaN())},
		"no scale":              {PolarStereographic, with("scale_factor_at_projection_origin", 0)},
		"no Earth":              {PolarStereographic, with("earth_radius", 0)},
		"hollow Earth":          {PolarStereographic, with("semi_minor_axis", 7e6)},
		"no rotated pole":       {RotatedPole, attrs{"grid_north_pole_latitude": 40}},
		"pole beyond the pole":  {RotatedPole, attrs{"grid_north_pole_latitude": 140, "grid_north_pole_longitude": 0}},
	} {
		if _, err := Of(tt.mapping, tt.attrs.get); err == nil || errors.Is(err, ErrUnknown) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Of("lambert_conformal_conic", pole.get); !errors.Is(err, ErrUnknown) {
		t.Errorf("another projection: %v", err)
	}
}
