package zarr

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lacuna/publish"
)

// memory keeps objects in memory, and can be killed.
type memory struct {
	all   map[string][]byte
	left  int // changes until the process dies; negative: it lives
	moved bool
}

type killed struct{}

func (m *memory) change() {
	if m.left == 0 {
		panic(killed{})
	}
	m.left--
}

func (m *memory) Get(_ context.Context, key string) ([]byte, error) { return m.all[key], nil }

func (m *memory) Put(_ context.Context, key string, content []byte, _ string) error {
	m.change()
	m.all[key] = bytes.Clone(content)
	return nil
}

func (m *memory) Remove(_ context.Context, key string) error {
	if _, there := m.all[key]; there {
		m.change()
	}
	delete(m.all, key)
	return nil
}

// Move copies and removes, as in a bucket: a kill can come in between.
func (m *memory) Move(ctx context.Context, from, to string) error {
	content, there := m.all[from]
	if !there {
		return nil
	}
	m.moved = true
	if err := m.Put(ctx, to, content, ""); err != nil {
		return err
	}
	return m.Remove(ctx, from)
}

func (m *memory) List(_ context.Context, prefix string, _ time.Time, each func(string) error) error {
	for _, key := range slices.Sorted(maps.Keys(m.all)) {
		if strings.HasPrefix(key, prefix+"/") {
			if err := each(key); err != nil {
				return err
			}
		}
	}
	return nil
}

// visible returns the objects that receivers see.
func (m *memory) visible() map[string][]byte {
	all := maps.Clone(m.all)
	maps.DeleteFunc(all, func(key string, _ []byte) bool {
		return strings.HasPrefix(key, ".") && !strings.HasPrefix(key, manifests)
	})
	return all
}

// delivery is a step of the history that is killed.
type delivery struct {
	p       publish.Product
	retract bool
}

// history has an append, slots left empty and filled, revisions, an earlier day
// that moves the others, and retractions.
func history(t *testing.T) (all []delivery) {
	small := sea{6, 5}
	for _, step := range []struct {
		day, revision int
		retract       bool
	}{
		{5, 1, false}, {6, 1, false}, {8, 1, false}, {6, 2, false}, {7, 1, false}, {3, 1, false}, {6, 3, false}, {8, 1, true}, {8, 2, false}, {3, 1, true}, {9, 1, false},
	} {
		p := small.product(t, step.day, step.revision)
		if step.retract {
			p.Retracted, p.Why = true, "sensor fault"
		}
		all = append(all, delivery{p, step.retract})
	}
	return all
}

// make makes a delivery, and reports whether the process lived to see its end.
func (d delivery) make(t *testing.T, m *memory) (done bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, ours := r.(killed); !ours {
				panic(r)
			}
		}
	}()
	s := &Sink{name: "test", objects: m, read: decoded}
	err := s.Publish
	if d.retract {
		err = s.Retract
	}
	if err := err(context.Background(), d.p); err != nil {
		t.Fatalf("%s: %v", d.p.ID(), err)
	}
	return true
}

func TestAKillAtAnyPointLeavesAStoreThatIsRight(t *testing.T) {
	if testing.Short() {
		t.Skip("kills a process at a time; leave -short out to run it")
	}
	t.Parallel()
	var folders []string
	var products []publish.Product
	state := &memory{all: map[string][]byte{}, left: -1}
	points := 0
	all := history(t)
	for made, d := range all {
		products = append(products, d.p)
		before := maps.Clone(state.all)
		d.make(t, state)
		for n := 0; ; n++ {
			m := &memory{all: maps.Clone(before), left: n}
			if d.make(t, m) {
				break
			}
			points++
			m.left = -1
			when := fmt.Sprintf("%s killed before change %d", d.p.ID(), n)
			checkAfterKill(t, when, m, all, made)
			if n%6 == 0 {
				folders = append(folders, dump(t, m))
			}
			d.make(t, m) // the queue delivers what was not acknowledged again
			for key, content := range m.visible() {
				if !bytes.Equal(content, state.all[key]) {
					t.Errorf("%s: %s is another one when it is done again", when, key)
				}
			}
			if len(m.visible()) != len(state.visible()) || t.Failed() {
				t.Fatalf("%s: %d objects, not %d", when, len(m.visible()), len(state.visible()))
			}
		}
	}
	if points < 240 || !state.moved {
		t.Errorf("%d points are fewer than 240, or no slot was moved", points)
	}
	if !testing.Short() { // one process, and a fifth of a second a folder
		xarray(t, products, folders...)
	}
	t.Logf("%d points, %d of them read by xarray", points, len(folders))
}

// checkAfterKill checks the store that deliveries up to made, and a part of the
// next, have left.
func checkAfterKill(t *testing.T, when string, m *memory, all []delivery, made int) {
	t.Helper()
	want := map[string]publish.Product{}
	for _, d := range all[:made] {
		want[d.p.Granule] = d.p
		if d.retract {
			delete(want, d.p.Granule)
		}
	}
	current := all[made].p
	shown := map[string]bool{}
	for _, s := range readStore(t, m, "sea") {
		p, delivered := want[s.granule]
		switch {
		case s.revision == 0 && s.empty():
		case s.revision == 0 && s.at.Equal(current.Time): // on its way in or out
			wantOneOf(t, when, s, all[:made+1])
		case s.revision == 0:
			t.Errorf("%s: %v shows values without a revision", when, s.at)
		case delivered && s.revision == p.Revision:
			wantMaps(t, s, p)
			shown[s.granule] = true
		case s.granule == current.Granule:
			wantMaps(t, s, current)
		default:
			t.Errorf("%s: %v has revision %d of %s, which was not delivered", when, s.at, s.revision, s.granule)
		}
	}
	_, shifting := m.all[".shift/sea.json"]
	for granule := range want {
		if !shown[granule] && granule != current.Granule && !shifting {
			t.Errorf("%s: %s is not there any more", when, granule)
		}
	}
}

// wantOneOf checks that all maps of a slot are of one revision.
func wantOneOf(t *testing.T, when string, s seen, all []delivery) {
	t.Helper()
	for _, d := range all {
		f := fileOf(t, d.p)
		same := true
		for _, v := range f.Vars {
			same = same && (len(v.Dims) != 3 || bytes.Equal(s.maps[v.Name], v.Raw))
		}
		if same && d.p.Time.Equal(s.at) {
			return
		}
	}
	t.Errorf("%s: %v shows values of one revision beside those of another", when, s.at)
}

// dump writes objects to a folder.
func dump(t testing.TB, m *memory) string {
	t.Helper()
	dir := t.TempDir()
	for key, content := range m.all {
		file := filepath.Join(dir, filepath.FromSlash(key))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
