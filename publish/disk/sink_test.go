package disk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lacuna/publish"
	"lacuna/publish/sinktest"
	"lacuna/publish/stac"
)

func TestSinkKeepsTheContract(t *testing.T) {
	for _, folders := range []publish.Folders{"", "{year}", "{year}/{month}/{day}"} {
		t.Run(string(folders), func(t *testing.T) {
			sinktest.Run(t, func(t *testing.T) sinktest.Subject {
				store := Store{Root: t.TempDir(), Folders: folders}
				return sinktest.Subject{
					Sink:    NewSink(store),
					Restart: func(*testing.T) publish.Sink { return NewSink(store) },
					Receive: func(t *testing.T, dataset string) map[string]sinktest.Seen { return receive(t, store, dataset) },
				}
			})
		})
	}
}

// receive reads a dataset as a receiver that trusts manifests, side files and
// the link, and fails where one of them is wrong.
func receive(t *testing.T, s Store, dataset string) map[string]sinktest.Seen {
	t.Helper()
	got := map[string]sinktest.Seen{}
	var newest time.Time
	latest := ""
	known := map[string]bool{}
	defer func() {
		for _, path := range list(t, s.Root) {
			rel, _ := filepath.Rel(filepath.Join(s.Root, dataset), path)
			if strings.HasSuffix(rel, ".nc") && !strings.HasPrefix(rel, ".") && !known[path] {
				t.Errorf("%s is shown, and no manifest lists it", rel)
			}
		}
	}()
	for _, path := range list(t, s.Root) {
		rel, _ := filepath.Rel(filepath.Join(s.Root, dataset), path)
		if strings.HasPrefix(rel, "..") || !publish.IsManifest(path) {
			continue
		}
		m, err := loadManifest(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range m.Products {
			file := filepath.Join(filepath.Dir(path), e.File)
			known[file], known[publish.MembersName(file)] = true, true
			if _, taken := m.Owner(e.File); taken && e.Retracted { // another product has its name
				got[e.Granule] = sinktest.Seen{Revision: e.Revision, Retracted: true, Why: e.Why}
				continue
			}
			if item, err := os.ReadFile(stac.ItemName(file)); (err == nil) != e.Live() || err == nil && !strings.Contains(string(item), "1220"+e.SHA256) {
				t.Errorf("item of %s, which is live: %v, is %s, %v", file, e.Live(), item, err)
			}
			catalog, err := os.ReadFile(filepath.Join(filepath.Dir(path), stac.CatalogName))
			if strings.Contains(string(catalog), filepath.Base(stac.ItemName(file))) != e.Live() {
				t.Errorf("catalogue of the month of %s, which is live: %v, is %s, %v", file, e.Live(), catalog, err)
			}
			if e.Absent {
				continue
			}
			if e.Retracted {
				got[e.Granule] = sinktest.Seen{Revision: e.Revision, Retracted: true, Why: e.Why}
				for _, gone := range []string{file, file + ".sha256", publish.MembersName(file), publish.MembersName(file) + ".sha256"} {
					if _, err := os.Stat(gone); !errors.Is(err, os.ErrNotExist) {
						t.Errorf("%s of a retracted product is still there: %v", gone, err)
					}
				}
				continue
			}
			sum, n, err := sumAndSync(file)
			if err != nil || sum != e.SHA256 || n != e.Size {
				t.Errorf("manifest says %+v, file has %s, %d bytes, %v", e, sum, n, err)
			}
			if side, err := os.ReadFile(file + ".sha256"); err != nil || string(side) != sideText(sum, file) {
				t.Errorf("side file is %q, %v", side, err)
			}
			if e.Time.After(newest) || e.Time.Equal(newest) {
				newest, latest = e.Time, file
			}
			got[e.Granule] = sinktest.Seen{Revision: e.Revision, SHA256: sum, Members: receiveMembers(t, file, e)}
		}
	}
	target, err := filepath.EvalSymlinks(filepath.Join(s.Root, dataset, "latest"))
	if (latest == "") != errors.Is(err, os.ErrNotExist) || latest != "" && !sameFile(target, latest) {
		t.Errorf("latest is %s, %v, want %s", target, err, latest)
	}
	link, err := os.Readlink(filepath.Join(s.Root, dataset, "latest_members"))
	if there := latest != "" && exists(publish.MembersName(latest)); there != (err == nil) || there && filepath.Base(link) != filepath.Base(publish.MembersName(latest)) {
		t.Errorf("latest_members is %q, %v beside latest %s", link, err, latest)
	}
	return got
}

// receiveMembers returns the hash of the members of a product, and fails where
// the manifest, the side file and the folder do not agree on them.
func receiveMembers(t *testing.T, product string, e publish.Entry) string {
	t.Helper()
	file := publish.MembersName(product)
	if e.Members == nil {
		if exists(file) || exists(file+".sha256") {
			t.Errorf("%s has members that the manifest does not list", product)
		}
		return ""
	}
	sum, n, err := sumAndSync(file)
	if err != nil || e.Members.File != filepath.Base(file) || sum != e.Members.SHA256 || n != e.Members.Size || e.Members.Count < 1 {
		t.Errorf("manifest says %+v, file has %s, %d bytes, %v", *e.Members, sum, n, err)
	}
	if side, err := os.ReadFile(file + ".sha256"); err != nil || string(side) != sideText(sum, file) {
		t.Errorf("side file is %q, %v", side, err)
	}
	return sum
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func sameFile(a, b string) bool {
	ia, errA := os.Stat(a)
	ib, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(ia, ib)
}

// product describes a stored revision, as the daemon does.
func product(s Store, stored Stored, revision int) publish.Product {
	p := publish.Product{
		Dataset: "d", Granule: "n.nc", Name: filepath.Base(stored.Visible), Time: someDay, Revision: revision,
		Path: stored.Path, Size: stored.Bytes, SHA256: stored.SHA256, Mode: publish.NearRealTime,
		Created: someDay.AddDate(0, 0, revision),
	}
	if sum, n, err := sumAndSync(MembersPath(stored.Path)); err == nil {
		p.Members = &publish.Members{Name: publish.MembersName(p.Name), Path: MembersPath(stored.Path), Size: n, SHA256: sum, Count: 2}
	}
	return p
}

// stop is the panic with which a test kills a sink.
type stop struct{}

// crashAt runs do until the n-th step of the sink and reports whether there
// was one.
func crashAt(sink *Sink, n int, do func()) (crashed bool) {
	sink.crash = func(string) {
		if n--; n < 0 {
			panic(stop{})
		}
	}
	defer func() {
		if r := recover(); r != nil {
			if _, ours := r.(stop); !ours {
				panic(r)
			}
			crashed = true
		}
	}()
	do()
	return false
}

// A crash between any two steps must leave a truthful tree, and doing the same
// again must come to the same end.
func TestCrashBetweenAnyTwoStepsIsMendedByDoingItAgain(t *testing.T) {
	ctx := t.Context()
	actions := map[string]func(*Sink, Store, []Stored) error{
		"publish": func(k *Sink, s Store, st []Stored) error { return k.Publish(ctx, product(s, st[0], 1)) },
		"replace": func(k *Sink, s Store, st []Stored) error { return k.Publish(ctx, product(s, st[1], 2)) },
		"retract": func(k *Sink, s Store, st []Stored) error { return k.Retract(ctx, product(s, st[0], 1)) },
		"rename":  func(k *Sink, s Store, st []Stored) error { return k.Publish(ctx, product(s, st[1], 2)) },
	}
	for name, act := range actions {
		for _, members := range [][2]string{{"", ""}, {"m1", "m2"}, {"m1", ""}, {"", "m2"}} {
			t.Run(name+" "+strings.Join(members[:], "-"), func(t *testing.T) { crashEverywhere(t, name, members, act) })
		}
	}
}

// crashEverywhere does an action on revisions with and without members, and
// kills it at every step.
func crashEverywhere(t *testing.T, name string, members [2]string, act func(*Sink, Store, []Stored) error) {
	ctx := context.Background()
	steps := 0
	for n := 0; ; n++ {
		s := Store{Root: t.TempDir()}
		second := item(2)
		if name == "rename" {
			second.Name = "n_r2_l4"
		}
		stored := []Stored{putWith(t, s, item(1), "one", members[0]), putWith(t, s, second, "two", members[1])}
		if name != "publish" {
			if err := NewSink(s).Publish(ctx, product(s, stored[0], 1)); err != nil {
				t.Fatal(err)
			}
		}
		sink := NewSink(s)
		crashed := crashAt(sink, n, func() {
			if err := act(sink, s, stored); err != nil {
				t.Fatal(err)
			}
		})
		if !crashed {
			break
		}
		steps++
		wantTruth(t, s)
		wantPairs(t, stored, members)
		if err := act(NewSink(s), s, stored); err != nil {
			t.Fatalf("%s after a crash at step %d: %v", name, n, err)
		}
		receive(t, s, "d")
		wantPairs(t, stored, members)
	}
	if steps < 2 {
		t.Errorf("%s was stopped at %d steps, too few to mean anything", name, steps)
	}
}

// wantPairs fails where a product that its side file vouches for is without its
// members, or beside those of another revision.
func wantPairs(t *testing.T, stored []Stored, members [2]string) {
	t.Helper()
	for i, st := range stored {
		visible := st.Visible
		if !vouched(visible, st.SHA256) {
			continue
		}
		got, err := os.ReadFile(publish.MembersName(visible))
		if string(got) != members[i] || (err == nil) != (members[i] != "") || err == nil && !exists(publish.MembersName(visible)+".sha256") {
			t.Errorf("beside revision %d are the members %q, %v, want %q", i+1, got, err, members[i])
		}
	}
}

// putWith is put with members, unless they are empty.
func putWith(t *testing.T, s Store, it Item, text, members string) Stored {
	t.Helper()
	stored, err := s.Put(t.Context(), it, func(path string) error {
		if members != "" {
			if err := content(members)(MembersPath(path)); err != nil {
				return err
			}
		}
		return content(text)(path)
	})
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

// wantTruth fails where a side file or manifest in the tree of a stopped sink
// is wrong.
func wantTruth(t *testing.T, s Store) {
	t.Helper()
	for _, path := range list(t, s.Root) {
		switch {
		case strings.HasSuffix(path, ".sha256"):
			file := strings.TrimSuffix(path, ".sha256")
			side, err := os.ReadFile(path)
			sum, _, sumErr := sumAndSync(file)
			if err != nil || sumErr != nil || string(side) != sideText(sum, file) {
				t.Errorf("%s says %q, %v, %v", path, side, err, sumErr)
			}
		case publish.IsManifest(path):
			m, err := loadManifest(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range m.Products {
				sum, _, err := sumAndSync(filepath.Join(filepath.Dir(path), e.File))
				if e.Live() && (err != nil || sum != e.SHA256) {
					t.Errorf("manifest lists %s with %s, file has %s, %v", e.File, e.SHA256, sum, err)
				}
				if e.Live() {
					receiveMembers(t, filepath.Join(filepath.Dir(path), e.File), e)
				}
			}
		}
	}
}

func TestSupersededRevisionStaysForWaitingDeliveries(t *testing.T) {
	s := Store{Root: t.TempDir()}
	first, second := put(t, s, item(1), "one"), put(t, s, item(2), "two")
	publishAll(t, s, product(s, first, 1), product(s, second, 2))
	if text, err := os.ReadFile(first.Path); string(text) != "one" || err != nil {
		t.Errorf("revision 1 has %q, %v after it was replaced", text, err)
	}
	m, err := loadManifest(filepath.Join(s.Root, "d", "2021", "01", "20210105.manifest.json"))
	if err != nil || len(m.Products) != 1 || len(m.Products[0].Superseded) != 1 || m.Products[0].Superseded[0].SHA256 != first.SHA256 {
		t.Errorf("manifest is %+v, %v, want revision 1 noted as superseded", m, err)
	}
}

func TestAQuickLookIsThatOfTheCurrentRevision(t *testing.T) {
	s := Store{Root: t.TempDir()}
	drawn, err := s.Put(t.Context(), item(1), func(path string) error {
		return errors.Join(content("one")(path), content("picture")(path+".png"))
	})
	if err != nil {
		t.Fatal(err)
	}
	publishAll(t, s, product(s, drawn, 1))
	picture := strings.TrimSuffix(drawn.Visible, ".nc") + ".png"
	if text, err := os.ReadFile(picture); string(text) != "picture" || err != nil {
		t.Errorf("quick look is %q, %v", text, err)
	}
	publishAll(t, s, product(s, put(t, s, item(2), "two"), 2)) // without one
	if _, err := os.Stat(picture); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the quick look of revision 1 stays beside revision 2: %v", err)
	}
}

func TestPublishingAgainRepairsManualDamage(t *testing.T) {
	s := Store{Root: t.TempDir()}
	stored := putWith(t, s, item(1), "one", "members")
	p := product(s, stored, 1)
	damages := map[string]func() error{
		"side file gone": func() error { return os.Remove(stored.Visible + ".sha256") },
		"product gone":   func() error { return os.Remove(stored.Visible) },
		"product overwritten": func() error {
			return errors.Join(os.Remove(stored.Visible), os.WriteFile(stored.Visible, []byte("on"), 0o600))
		},
		"manifest gone": func() error {
			return os.Remove(filepath.Join(filepath.Dir(stored.Visible), publish.ManifestName(someDay)))
		},
		"link gone":            func() error { return os.Remove(filepath.Join(s.Root, "d", "latest")) },
		"members gone":         func() error { return os.Remove(publish.MembersName(stored.Visible)) },
		"members' link gone":   func() error { return os.Remove(filepath.Join(s.Root, "d", "latest_members")) },
		"members' side gone":   func() error { return os.Remove(publish.MembersName(stored.Visible) + ".sha256") },
		"members of elsewhere": func() error { return os.Rename(stored.Visible+".sha256", publish.MembersName(stored.Visible)) },
	}
	for name, damage := range damages {
		publishAll(t, s, p)
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		publishAll(t, s, p)
		if got := receive(t, s, "d")["n.nc"]; got.SHA256 != stored.SHA256 || got.Members != p.Members.SHA256 {
			t.Errorf("%s: receiver has %+v", name, got)
		}
	}
}

func TestLatestIsTheNewestDayAndNotTheNewestArrival(t *testing.T) {
	s := Store{Root: t.TempDir()}
	for _, day := range []int{3, 40, 20} { // the last one is late
		it := Item{Dataset: "d", Granule: fmt.Sprint(day), Name: fmt.Sprint("p", day), Time: someDay.AddDate(0, 0, day), Revision: 1}
		p := product(s, put(t, s, it, it.Name), 1)
		p.Granule, p.Time = it.Granule, it.Time
		publishAll(t, s, p)
	}
	if target, err := os.Readlink(filepath.Join(s.Root, "d", "latest")); target != filepath.Join("2021", "02", "p40.nc") {
		t.Errorf("latest leads to %s, %v", target, err)
	}
}

func TestAFileNameBelongsToOneGranule(t *testing.T) {
	s := Store{Root: t.TempDir()}
	publishAll(t, s, product(s, put(t, s, item(1), "one"), 1))
	other := item(1)
	other.Granule, other.Time = "elsewhere/n.nc", someDay.AddDate(0, 0, 1)
	p := product(s, put(t, s, other, "two"), 1)
	p.Granule, p.Time = other.Granule, other.Time
	if err := NewSink(s).Publish(t.Context(), p); !errors.Is(err, publish.ErrPermanent) {
		t.Errorf("Publish() = %v for a name that is taken, want ErrPermanent", err)
	}
	receive(t, s, "d")
}

func TestRetentionRemovesMembersWithTheirProduct(t *testing.T) {
	for _, name := range []string{item(2).Name, "n_r2_l4"} { // of the second revision
		t.Run(name, func(t *testing.T) { removedWithMembers(t, name) })
	}
}

func removedWithMembers(t *testing.T, name string) {
	s := Store{Root: t.TempDir()}
	later := item(2)
	later.Name = name
	first, second := putWith(t, s, item(1), "one", "m1"), putWith(t, s, later, "two", "m2")
	publishAll(t, s, product(s, first, 1), product(s, second, 2))
	none := func(context.Context, Removal) (bool, error) { return false, nil }
	for _, keep := range []Keep{{Superseded: time.Hour}, {NearRealTime: time.Hour}} {
		due, err := s.Plan(someDay.AddDate(1, 0, 0), keep)
		if err != nil || len(due) != 1 || due[0].Bytes != int64(len("one")+len("m1")) {
			t.Fatalf("Plan() = %+v, %v, want one revision with the bytes of its members", due, err)
		}
		if _, err := s.Remove(t.Context(), due, none); err != nil {
			t.Fatal(err)
		}
		receive(t, s, "d")
		if due[0].Revision == 1 && (exists(MembersPath(first.Path)) || !exists(MembersPath(second.Path))) {
			t.Error("the members of the superseded revision are still there, or those of the current one are gone")
		}
	}
	left := slices.DeleteFunc(list(t, s.Root), func(path string) bool { return publish.IsManifest(path) })
	if len(left) != 0 {
		t.Errorf("after all was removed there are %v", left)
	}
}

func TestRetentionKeepsAwaitedRevisions(t *testing.T) {
	s := Store{Root: t.TempDir()}
	first, second := put(t, s, item(1), "one"), put(t, s, item(2), "two")
	publishAll(t, s, product(s, first, 1), product(s, second, 2))
	day := 24 * time.Hour
	created := someDay.AddDate(0, 0, 2) // of revision 2
	plan := func(after time.Duration, keep Keep) []string {
		due, err := s.Plan(created.Add(after), keep)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range due {
			got = append(got, fmt.Sprintf("%s %d", r.Class, r.Revision))
		}
		return got
	}
	both := Keep{Superseded: 5 * day, NearRealTime: 10 * day}
	tests := []struct {
		after time.Duration
		keep  Keep
		want  []string
	}{
		{1 * day, both, nil},
		{6 * day, both, []string{"superseded 1"}},
		{11 * day, both, []string{"near-real-time 2", "superseded 1"}},
		{1000 * day, Keep{Delayed: day}, nil},
		{1000 * day, Keep{}, nil},
	}
	for _, tt := range tests {
		if got := plan(tt.after, tt.keep); !slices.Equal(got, tt.want) {
			t.Errorf("after %v with %v: %v, want %v", tt.after, tt.keep, got, tt.want)
		}
	}
	due, _ := s.Plan(created.Add(11*day), both)
	awaited := func(_ context.Context, r Removal) (bool, error) { return r.Revision == 1, nil }
	if gone, err := s.Remove(t.Context(), due, awaited); err != nil || len(gone) != 1 || gone[0].Revision != 2 {
		t.Errorf("Remove() = %+v, %v, want revision 2 only", gone, err)
	}
	if _, err := os.Stat(first.Path); err != nil {
		t.Errorf("an awaited revision is gone: %v", err)
	}
	if got := receive(t, s, "d"); len(got) != 0 {
		t.Errorf("receiver has %v after all was removed", got)
	}
	due, _ = s.Plan(created.Add(11*day), both)
	none := func(context.Context, Removal) (bool, error) { return false, nil }
	if gone, err := s.Remove(t.Context(), due, none); err != nil || len(gone) != 1 || gone[0].Revision != 1 {
		t.Errorf("Remove() = %+v, %v, want revision 1 once nobody awaits it", gone, err)
	}
	if _, err := os.Stat(first.Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("revision 1 is still there: %v", err)
	}
}

func publishAll(t *testing.T, s Store, products ...publish.Product) {
	t.Helper()
	for _, p := range products {
		if err := NewSink(s).Publish(context.Background(), p); err != nil {
			t.Fatal(err)
		}
	}
}
