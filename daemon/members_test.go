package daemon

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lacuna/daemon/operate"
	"lacuna/publish"
	"lacuna/publish/netcdf"

	nc "github.com/fhs/go-netcdf/netcdf"
)

// object returns an object of the bench's bucket; nil where there is none.
func (b *bench) object(t *testing.T, key string) []byte {
	t.Helper()
	answer, err := http.Get(b.cfg.Publish.S3.Endpoint + "/products/tree/" + key)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if answer.StatusCode != http.StatusOK {
		return nil
	}
	return content
}

// fileOrNil returns the content of a file; nil where there is none.
func fileOrNil(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return content
}

// wantMembers checks that folder, bucket and topic have the same members beside
// the product, and returns them.
func (b *bench) wantMembers(t *testing.T, product string, count int) []byte {
	t.Helper()
	rel, err := filepath.Rel(b.cfg.ProductsDir, publish.MembersName(product))
	if err != nil {
		t.Fatal(err)
	}
	content := fileOrNil(t, publish.MembersName(product))
	if content == nil {
		t.Fatalf("there are no members beside %s\n%s", product, b.log)
	}
	events := b.onTopic(t)
	last := events[len(events)-1]
	m := last.Members
	if m == nil || m.Name != filepath.Base(rel) || m.SHA256 != hash(content) || m.Size != int64(len(content)) || m.Count != count || last.Links["members"] != filepath.ToSlash(rel) {
		t.Errorf("the event announces %+v with links %v; the file %s has %d bytes and sha256 %s", m, last.Links, rel, len(content), hash(content))
	}
	if got := hash(b.object(t, filepath.ToSlash(rel))); got != hash(content) {
		t.Errorf("the bucket has the members %s, the folder %s", got, hash(content))
	}
	if own := read(t, product, "CHL"); !mentions(own, m.Name+" sha256:"+m.SHA256) {
		t.Error("the product does not name its members")
	}
	return content
}

func TestMembersArePublishedSupersededAndRetractedWithTheirProduct(t *testing.T) {
	oneByOne(t)
	b := allSinks(t)
	set := &b.cfg.Datasets[0]
	set.Fill.Method, set.Fill.Members = "oi", 3
	name := b.deliver(t, 1)
	b.once(t)
	product := b.products(t)[0]
	first := b.wantMembers(t, product, 3)
	wantEqualWhereObserved(t, product)

	b.deliver(t, 2) // another content of the same granule
	b.once(t)
	if second := b.wantMembers(t, product, 3); hash(second) == hash(first) {
		t.Error("revision 2 has the members of revision 1")
	}
	set.Fill.Members = 0
	b.deliver(t, 3)
	b.once(t)
	rel, _ := filepath.Rel(b.cfg.ProductsDir, publish.MembersName(product))
	if exists(publish.MembersName(product)) || b.object(t, filepath.ToSlash(rel)) != nil {
		t.Error("the members of revision 2 stay beside revision 3, which has none")
	}
	set.Fill.Members = 2
	b.deliver(t, 4)
	b.once(t)
	b.wantMembers(t, product, 2)

	p, err := operate.JoinPublications(t.Context(), b.cfg.Operate())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Retract(t.Context(), operate.Selection{Names: []string{name}}, "sensor fault"); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	b.once(t)
	for _, ending := range []string{"", ".sha256"} {
		if exists(product+ending) || exists(publish.MembersName(product)+ending) || b.object(t, filepath.ToSlash(rel)+ending) != nil {
			t.Errorf("product or members%s are still there after the retraction\n%s", ending, b.log)
		}
	}
	b.wantOneHash(t, 4)
}

// stored returns the numbers of a variable of type float as they are stored.
func stored(t *testing.T, path, variable string) []float32 {
	t.Helper()
	file, err := nc.OpenFile(path, nc.NOWRITE)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	v, err := file.Var(variable)
	if err != nil {
		t.Fatal(err)
	}
	n, err := v.Len()
	if err != nil {
		t.Fatal(err)
	}
	values := make([]float32, n)
	if err := v.ReadFloat32s(values); err != nil {
		t.Fatal(err)
	}
	return values
}

// wantEqualWhereObserved compares a product with its three members: the same
// where it was not filled, others where it was.
func wantEqualWhereObserved(t *testing.T, product string) {
	t.Helper()
	value, members := stored(t, product, "CHL"), stored(t, publish.MembersName(product), "CHL")
	flags := raw(t, read(t, product, "flags"), "flags")
	if len(members) != 3*len(value) || len(flags) != len(value) {
		t.Fatalf("the members have %d cells, the product %d: want three times as many", len(members), len(value))
	}
	same, filled := 0, 0
	for i, x := range members {
		cell := i % len(value)
		switch {
		case flags[cell] != netcdf.Interpolated && x != value[cell]:
			t.Fatalf("member %d has %g at cell %d with the flags %b, the product %g", i/len(value)+1, x, cell, flags[cell], value[cell])
		case flags[cell] == netcdf.Interpolated:
			filled++
			if x == value[cell] {
				same++
			}
		}
	}
	if filled == 0 || same > filled/100 {
		t.Errorf("%d of %d filled cells are the same in a member and in the product", same, filled)
	}
}

// The same granule gives the same members again, wherever it is filled.
func TestTheSameGranuleGivesTheSameMembers(t *testing.T) {
	oneByOne(t)
	var sums [2]string
	for i := range sums {
		b := newBench(t)
		b.plain().Fill.Members = 2
		deliverDays(t, b, 2)
		b.once(t)
		for _, path := range b.products(t) {
			if strings.HasSuffix(path, "_members.nc") {
				sums[i] += fmt.Sprint(stored(t, path, "CHL"))
			}
		}
	}
	if sums[0] == "" || sums[0] != sums[1] {
		t.Errorf("two services draw different members, or none: %.60s and %.60s", sums[0], sums[1])
	}
}
