package stac_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"lacuna/publish"
	"lacuna/publish/disk"
	"lacuna/publish/netcdf/compliance"
	"lacuna/publish/sinktest"
	"lacuna/publish/stac"

	"github.com/google/go-cmp/cmp"
)

// found is a catalogue as pystac has it.
type found struct {
	Collections map[string]struct {
		Interval [][2]string `json:"interval"`
		BBox     []float64   `json:"bbox"`
	} `json:"collections"`
	Items map[string]struct {
		Datetime string   `json:"datetime"`
		Geometry string   `json:"geometry"`
		Assets   []string `json:"assets"`
		Revision int      `json:"revision"`
	} `json:"items"`
}

// validate has pystac read the catalogue of a folder and hold it against the
// official schemas.
func validate(t *testing.T, root string) found {
	t.Helper()
	python := compliance.Python(t)
	if exec.Command(python, "-c", "import pystac, jsonschema").Run() != nil {
		t.Skipf("%s has no pystac and jsonschema: pip install -r ops/setup/requirements-test.txt into it to run this test", python)
	}
	var stderr bytes.Buffer
	cmd := exec.Command(python, filepath.Join("testdata", "validate.py"), filepath.Join(root, stac.CatalogName), filepath.Join("testdata", "file-v2.1.0.schema.json"))
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("validate: %v\n%s", err, &stderr)
	}
	var f found
	if err := json.Unmarshal(out, &f); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return f
}

func TestACatalogueIsValidAndFollowsItsProducts(t *testing.T) {
	root := t.TempDir()
	sink := disk.NewSink(disk.Store{Root: root})
	product := func(dataset, granule string, day, revision int) publish.Product {
		p := sinktest.Product(t, dataset, granule, revision)
		p.Time = p.Time.AddDate(0, 0, day)
		return p
	}
	pacific := product("pacific", "p", 0, 1)
	pacific.BBox = [4]float64{170, -10, -170, 10}
	withMembers := sinktest.WithMembers(t, product("sea", "b", 1, 1))
	if err := os.WriteFile(withMembers.Path+".png", []byte("a picture"), 0o600); err != nil {
		t.Fatal(err)
	}
	gone := product("sea", "c", 40, 1)
	for _, p := range []publish.Product{product("sea", "a", 0, 1), withMembers, gone, product("sea", "a", 0, 2), pacific} {
		if err := sink.Publish(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	before := validate(t, root)
	if got := before.Collections["sea"].Interval[0]; got != [2]string{"2024-04-30T12:00:00+00:00", "2024-06-09T12:00:00+00:00"} {
		t.Errorf("the sea is covered from %s to %s", got[0], got[1])
	}
	gone.Retracted, gone.Why = true, "sensor fault"
	if err := sink.Retract(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	got := validate(t, root)
	if len(before.Items) != 4 || len(got.Items) != 3 || len(got.Collections) != 2 {
		t.Errorf("%d items, and %d in %d collections after a retraction; want 4, and 3 in 2", len(before.Items), len(got.Items), len(got.Collections))
	}
	if end := got.Collections["sea"].Interval[0][1]; end != "2024-05-01T12:00:00+00:00" {
		t.Errorf("after the retraction of the last product the sea is covered until %s", end)
	}
	if a := got.Items["sea/a_l4"]; a.Revision != 2 || a.Datetime != "2024-04-30T12:00:00+00:00" || a.Geometry != "Polygon" || !slices.Equal(a.Assets, []string{"data"}) {
		t.Errorf("the item of a is %+v", a)
	}
	if b := got.Items["sea/b_l4"]; !slices.Equal(b.Assets, []string{"data", "members", "thumbnail"}) {
		t.Errorf("the item of b is %+v", b)
	}
	if p := got.Items["pacific/p_l4"]; p.Geometry != "MultiPolygon" || got.Collections["pacific"].BBox[0] != 170 {
		t.Errorf("the item across the antimeridian is %+v", p)
	}
}

func TestACollectionReadsBack(t *testing.T) {
	at := time.Date(2024, 4, 30, 12, 0, 0, 0, time.UTC)
	c := stac.Collection{Dataset: "sea"}
	for _, days := range []int{0, 40, 1, -400} {
		c = c.Add(at.AddDate(0, 0, days).Format("2006/01"), at.AddDate(0, 0, days), [4]float64{1, 2, 3, 4})
	}
	text, err := c.Encode()
	if diff := cmp.Diff(c, stac.ParseCollection("sea", text)); diff != "" || err != nil {
		t.Errorf("read back %v (-want +got):\n%s", err, diff)
	}
	if want := []string{"2023/03", "2024/04", "2024/05", "2024/06"}; !slices.Equal(c.Folders, want) {
		t.Errorf("folders are %v, want %v", c.Folders, want)
	}
	root, err := stac.WithDataset(nil, "sea")
	if err != nil {
		t.Fatal(err)
	}
	two, err := stac.WithDataset(root, "lake")
	if err != nil {
		t.Fatal(err)
	}
	again, err := stac.WithDataset(two, "sea")
	both, _ := stac.Root([]string{"lake", "sea"})
	if !bytes.Equal(again, both) || err != nil {
		t.Errorf("a root with two datasets is %s, %v", again, err)
	}
}
