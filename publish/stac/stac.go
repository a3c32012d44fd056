// Package stac describes trees of products as a static SpatioTemporal Asset
// Catalog, version 1.1.0.
//
//	<root>/catalog.json                             the datasets
//	<root>/<dataset>/collection.json                a dataset: its extent and its months
//	<root>/<dataset>/<YYYY>/<MM>/catalog.json       a month: its products
//	                            /<product>.json     an item: a product with its files
//
// Links are relative, so that a tree can be moved, and served by any web server.
// An item is to its product as a side file is: where it is, it tells the truth.
//
// Package stac makes and reads texts. It knows neither disks nor buckets, and not
// when a product comes or goes.
package stac

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"lacuna/publish"
)

// The names of files of a catalogue.
const (
	CatalogName    = "catalog.json"
	CollectionName = "collection.json"
)

const (
	version     = "1.1.0"
	fileInfo    = "https://stac-extensions.github.io/file/v2.1.0/schema.json"
	geoJSON     = "application/geo+json"
	plainJSON   = "application/json"
	sha256Start = "1220" // of a multihash: sha2-256, 32 bytes
)

// ItemName returns the name of the item of a product's file, beside it.
func ItemName(file string) string { return strings.TrimSuffix(file, ".nc") + ".json" }

// IsItem reports whether a file of a month is an item.
func IsItem(name string) bool {
	return strings.HasSuffix(name, ".json") && !strings.HasPrefix(name, ".") && name != CatalogName && !publish.IsManifest(name)
}

// link leads from one text of a catalogue to another.
type link struct {
	Rel   string `json:"rel"`
	Href  string `json:"href"`
	Type  string `json:"type"`
	Title string `json:"title,omitempty"`
}

// asset is a file of an item.
type asset struct {
	Href     string   `json:"href"`
	Type     string   `json:"type"`
	Title    string   `json:"title"`
	Roles    []string `json:"roles"`
	Bytes    int64    `json:"file:size,omitempty"`
	Checksum string   `json:"file:checksum,omitempty"`
}

// item is a product.
type item struct {
	Type       string           `json:"type"`
	Version    string           `json:"stac_version"`
	Extensions []string         `json:"stac_extensions"`
	ID         string           `json:"id"`
	Collection string           `json:"collection"`
	BBox       [4]float64       `json:"bbox"`
	Geometry   geometry         `json:"geometry"`
	Properties properties       `json:"properties"`
	Assets     map[string]asset `json:"assets"`
	Links      []link           `json:"links"`
}

type geometry struct {
	Type        string `json:"type"`
	Coordinates any    `json:"coordinates"`
}

// properties have the prefix of this program where STAC has no word.
type properties struct {
	Datetime        time.Time `json:"datetime"`
	Created         time.Time `json:"created"`
	Title           string    `json:"title"`
	Granule         string    `json:"lacuna:granule"`
	Revision        int       `json:"lacuna:revision"`
	Mode            string    `json:"lacuna:mode"`
	Input           string    `json:"lacuna:input,omitempty"`
	Model           string    `json:"lacuna:model"`
	CoverageBefore  float64   `json:"lacuna:coverage_before"`
	CoverageAfter   float64   `json:"lacuna:coverage_after"`
	MeanUncertainty float64   `json:"lacuna:mean_uncertainty"`
}

// Item returns the item of a product of a dataset from its entry in the manifest:
// what a manifest does not keep could not be said again after a rebuild.
func Item(dataset string, e publish.Entry) ([]byte, error) {
	i := item{
		Type: "Feature", Version: version, Extensions: []string{fileInfo}, ID: strings.TrimSuffix(e.File, ".nc"), Collection: dataset,
		BBox: e.BBox, Geometry: outline(e.BBox),
		Properties: properties{
			Datetime: e.Time.UTC(), Created: e.Created.UTC(), Title: fmt.Sprintf("%s, %s", dataset, publish.Day(e.Time)),
			Granule: e.Granule, Revision: e.Revision, Mode: e.Mode, Input: e.Input, Model: e.Model,
			CoverageBefore: e.CoverageBefore, CoverageAfter: e.CoverageAfter, MeanUncertainty: e.MeanUncertainty,
		},
		Assets: map[string]asset{"data": {
			Href: "./" + e.File, Type: "application/netcdf", Title: "Analysis with its uncertainty and flags", Roles: []string{"data"},
			Bytes: e.Size, Checksum: sha256Start + e.SHA256,
		}},
		Links: []link{
			{Rel: "root", Href: "../../../" + CatalogName, Type: plainJSON},
			{Rel: "parent", Href: "./" + CatalogName, Type: plainJSON},
			{Rel: "collection", Href: "../../" + CollectionName, Type: plainJSON, Title: dataset},
		},
	}
	if m := e.Members; m != nil {
		i.Assets["members"] = asset{
			Href: "./" + m.File, Type: "application/netcdf", Title: fmt.Sprintf("%d equally likely fields", m.Count), Roles: []string{"data"},
			Bytes: m.Size, Checksum: sha256Start + m.SHA256,
		}
	}
	if e.QuickLook != "" {
		i.Assets["thumbnail"] = asset{Href: "./" + e.QuickLook, Type: "image/png", Title: "Quick look", Roles: []string{"thumbnail"}}
	}
	return encode(i)
}

// outline returns the outline of a box: two where it crosses the antimeridian.
func outline(box [4]float64) geometry {
	ring := func(west, east float64) [][][2]float64 {
		south, north := box[1], box[3]
		return [][][2]float64{{{west, south}, {east, south}, {east, north}, {west, north}, {west, south}}}
	}
	if box[0] > box[2] {
		return geometry{"MultiPolygon", [][][][2]float64{ring(box[0], 180), ring(-180, box[2])}}
	}
	return geometry{"Polygon", ring(box[0], box[2])}
}

// Collection is a dataset.
type Collection struct {
	Dataset     string
	BBox        [4]float64
	First, Last time.Time // times of the first and the last product; zero: there is none
	Folders     []string  // of its products, such as 2024/04, in order
}

// Add returns c with a product in a folder, of a time and a box.
func (c Collection) Add(folder string, t time.Time, box [4]float64) Collection {
	t = t.UTC()
	c.BBox = box
	if c.First.IsZero() || t.Before(c.First) {
		c.First = t
	}
	if t.After(c.Last) {
		c.Last = t
	}
	c.Folders = append(slices.Clone(c.Folders), folder)
	slices.Sort(c.Folders)
	c.Folders = slices.Compact(c.Folders)
	return c
}

// collection is the form of a Collection in a file.
type collection struct {
	Type        string `json:"type"`
	Version     string `json:"stac_version"`
	ID          string `json:"id"`
	Title       string `json:"title"`
	Description string `json:"description"`
	License     string `json:"license"`
	Extent      struct {
		Spatial struct {
			BBox [][4]float64 `json:"bbox"`
		} `json:"spatial"`
		Temporal struct {
			Interval [][2]time.Time `json:"interval"`
		} `json:"temporal"`
	} `json:"extent"`
	Links []link `json:"links"`
}

// Encode returns c as the text of a file. The licence is that of the input data,
// which STAC calls other.
func (c Collection) Encode() ([]byte, error) {
	out := collection{
		Type: "Collection", Version: version, ID: c.Dataset, Title: c.Dataset, License: "other",
		Description: "Gap-free Level-4 analyses with their uncertainty, made by Lacuna from the Level-3 granules of this dataset. The terms of the input data apply.",
		Links: []link{
			{Rel: "root", Href: "../" + CatalogName, Type: plainJSON}, {Rel: "parent", Href: "../" + CatalogName, Type: plainJSON},
		},
	}
	out.Extent.Spatial.BBox = [][4]float64{c.BBox}
	out.Extent.Temporal.Interval = [][2]time.Time{{c.First, c.Last}}
	for _, folder := range c.Folders {
		out.Links = append(out.Links, link{Rel: "child", Href: "./" + path.Join(folder, CatalogName), Type: plainJSON, Title: strings.ReplaceAll(folder, "/", "-")})
	}
	return encode(out)
}

// ParseCollection reads the form that Encode writes. A text that it cannot read
// is that of no product: the next one makes it anew.
func ParseCollection(dataset string, text []byte) Collection {
	c := Collection{Dataset: dataset}
	var in collection
	if json.Unmarshal(text, &in) != nil || len(in.Extent.Spatial.BBox) != 1 || len(in.Extent.Temporal.Interval) != 1 {
		return c
	}
	c.BBox = in.Extent.Spatial.BBox[0]
	c.First, c.Last = in.Extent.Temporal.Interval[0][0], in.Extent.Temporal.Interval[0][1]
	for _, l := range in.Links {
		if l.Rel == "child" {
			c.Folders = append(c.Folders, path.Dir(path.Clean(l.Href)))
		}
	}
	return c
}

// catalog is the form of a folder, or of the root.
type catalog struct {
	Type        string `json:"type"`
	Version     string `json:"stac_version"`
	ID          string `json:"id"`
	Description string `json:"description"`
	Links       []link `json:"links"`
}

// Folder returns the catalogue of a folder, such as 2024/04, of a dataset, with
// the names of its items.
func Folder(dataset, folder string, items []string) ([]byte, error) {
	name, up := strings.ReplaceAll(folder, "/", "-"), strings.Repeat("../", 1+strings.Count(folder, "/"))
	c := catalog{
		Type: "Catalog", Version: version, ID: dataset + "-" + name,
		Description: "Products of " + dataset + " of " + name,
		Links: []link{
			{Rel: "root", Href: up + "../" + CatalogName, Type: plainJSON},
			{Rel: "parent", Href: up + CollectionName, Type: plainJSON, Title: dataset},
		},
	}
	for _, name := range items {
		c.Links = append(c.Links, link{Rel: "item", Href: "./" + name, Type: geoJSON})
	}
	return encode(c)
}

// Root returns the catalogue of a tree.
func Root(datasets []string) ([]byte, error) {
	c := catalog{
		Type: "Catalog", Version: version, ID: "lacuna", Description: "Gap-free Level-4 analyses made by Lacuna",
		Links: []link{{Rel: "root", Href: "./" + CatalogName, Type: plainJSON}},
	}
	for _, name := range datasets {
		c.Links = append(c.Links, link{Rel: "child", Href: "./" + path.Join(name, CollectionName), Type: plainJSON, Title: name})
	}
	return encode(c)
}

// WithDataset returns the text of a root with one dataset more.
func WithDataset(root []byte, dataset string) ([]byte, error) {
	var c catalog
	names := []string{dataset}
	if json.Unmarshal(root, &c) == nil {
		for _, l := range c.Links {
			if l.Rel == "child" {
				names = append(names, path.Dir(path.Clean(l.Href)))
			}
		}
	}
	slices.Sort(names)
	return Root(slices.Compact(names))
}

func encode(v any) ([]byte, error) {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode catalogue: %w", err)
	}
	return append(text, '\n'), nil
}
