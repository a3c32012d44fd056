package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"lacuna/internal/cdl"
	"lacuna/pipeline/field"
)

// A Product is a feed that can be simulated.
type Product struct {
	Name      string // short name, such as "blk-chl"
	Dataset   string // dataset id of the real feed, which Config.Product accepts too
	Title     string // one line of description
	Variable  string // the variable that Day holds
	Units     string
	Log       bool    // values span decades: show and compare them in log10
	Low, High float64 // a colour range that suits the product

	NativeHeight, NativeWidth int // grid of the real product
}

// Products returns the products that can be simulated, sorted by name.
func Products() []Product {
	var out []Product
	for _, r := range recipes() {
		out = append(out, r.Product)
	}
	return out
}

// A recipe defines one product: its region, its ocean, its sky, its sensors and
// its files.
type recipe struct {
	Product
	region  region
	current current
	sea     sea
	weather weather
	sensors []sensor

	retrieve func(view) reading
	good     func(quality int8) bool // readings that a user of the product would use
	best     int8                    // the highest quality

	hour     int // hour of the day in the file's time
	fileName func(r *recipe, date string) string
	layout   func(*sheet) cdl.File
}

// A region is the extent of the grid of a product.
type region struct {
	south, north, west, east float64
	demoHeight, demoWidth    int
	ease                     bool // rows of equal area, from the north: EASE-Grid 2.0
}

func (r region) grid(height, width int) (field.Grid, error) {
	lat := centres(r.south, r.north, height)
	if r.ease {
		lat = easeLatitudes(height)
	}
	lon := centres(r.west, r.east, width)
	for _, axis := range [][]float64{lat, lon} {
		for i, v := range axis {
			axis[i] = float64(float32(v)) // the precision of the files
		}
	}
	return field.NewGrid(lat, lon)
}

func centres(low, high float64, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = low + (high-low)*(float64(i)+0.5)/float64(n)
	}
	return x
}

// recipes returns the recipes of all products, sorted by name.
func recipes() []*recipe {
	all := []*recipe{blackSeaChlorophyll(), balticNano(), mediterraneanTemperature(), smosSalinity()}
	slices.SortFunc(all, func(a, b *recipe) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// recipeOf returns the recipe with the given short name or dataset id.
func recipeOf(product string) (*recipe, error) {
	var names []string
	for _, r := range recipes() {
		if product == r.Name || product == r.Dataset {
			return r, nil
		}
		names = append(names, r.Name)
	}
	return nil, fmt.Errorf("unknown product %q: use one of %s", product, strings.Join(names, ", "))
}
