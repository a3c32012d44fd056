package fetch

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// yielding returns a record of these objects.
func yielding(known ...Known) iter.Seq2[Known, error] {
	return func(yield func(Known, error) bool) {
		for _, k := range known {
			if !yield(k, nil) {
				return
			}
		}
	}
}

func TestDecideFindsEveryKindOfChange(t *testing.T) {
	then, now := longAgo(), longAgo().Add(time.Hour)
	had := func(o Object) Known { return Known{Object: o, SHA256: "aa"} }
	plain := Object{Name: "2024/20240501_a.nc", Size: 5, ModTime: then}
	with := func(o Object, edit func(*Object)) Object { edit(&o); return o }
	hashed := with(plain, func(o *Object) { o.MD5 = "m1" })
	tagged := with(plain, func(o *Object) { o.ETag = "e1" })
	parts := with(plain, func(o *Object) { o.ETag = "0123456789abcdef0123456789abcdef-3" })
	gone := func(k Known) Known { k.Vanished = then; return k }
	elsewhere := func(o Object) Object { o.Name = "moved/20240501_a.nc"; o.ModTime = now; return o }
	tests := []struct {
		name    string
		objects []Object
		known   []Known
		edit    func(*listing)
		want    []string
	}{
		{name: "an empty archive needs nothing"},
		{name: "a new name", objects: []Object{plain}, want: []string{"new 2024/20240501_a.nc"}},
		{name: "as it was", objects: []Object{plain}, known: []Known{had(plain)}},
		{
			name: "another size", objects: []Object{with(plain, func(o *Object) { o.Size++ })}, known: []Known{had(plain)},
			want: []string{"changed 2024/20240501_a.nc"},
		},
		{
			name: "another time and no hash to tell", objects: []Object{with(plain, func(o *Object) { o.ModTime = now })},
			known: []Known{had(plain)}, want: []string{"changed 2024/20240501_a.nc"},
		},
		{
			name: "touched, the same MD5", objects: []Object{with(hashed, func(o *Object) { o.ModTime = now; o.ETag = "other" })},
			known: []Known{had(hashed)}, want: []string{"touched 2024/20240501_a.nc"},
		},
		{
			name: "touched, the same ETag", objects: []Object{with(tagged, func(o *Object) { o.ModTime = now })},
			known: []Known{had(tagged)}, want: []string{"touched 2024/20240501_a.nc"},
		},
		{
			name: "a weak ETag proves nothing", objects: []Object{with(plain, func(o *Object) { o.ModTime = now; o.ETag = `W/"1"` })},
			known: []Known{had(with(plain, func(o *Object) { o.ETag = `W/"1"` }))}, want: []string{"changed 2024/20240501_a.nc"},
		},
		{
			name: "another MD5 with the old time", objects: []Object{with(hashed, func(o *Object) { o.MD5 = "m2" })},
			known: []Known{had(hashed)}, want: []string{"changed 2024/20240501_a.nc"},
		},
		{
			name: "another ETag with the old time", objects: []Object{with(tagged, func(o *Object) { o.ETag = "e2" })},
			known: []Known{had(tagged)}, want: []string{"changed 2024/20240501_a.nc"},
		},
		{
			name: "an archive that began to give hashes", objects: []Object{hashed}, known: []Known{had(plain)},
			want: []string{"touched 2024/20240501_a.nc"},
		},
		{name: "vanished", known: []Known{had(plain)}, want: []string{"vanished 2024/20240501_a.nc"}},
		{name: "still gone", known: []Known{gone(had(plain))}},
		{name: "missing in half a listing", known: []Known{had(plain)}, edit: func(l *listing) { l.complete = false }},
		{name: "not asked for", known: []Known{had(plain)}, edit: func(l *listing) { l.scope.Prefixes = []string{"2025/"} }},
		{name: "too old to be shown", known: []Known{had(plain)}, edit: func(l *listing) { l.scope.Since = now }},
		{name: "back again", objects: []Object{plain}, known: []Known{gone(had(plain))}, want: []string{"returned 2024/20240501_a.nc"}},
		{
			name: "back with other bytes", objects: []Object{with(plain, func(o *Object) { o.Size++ })},
			known: []Known{gone(had(plain))}, want: []string{"changed 2024/20240501_a.nc"},
		},
		{
			name: "moved, as the MD5 tells", objects: []Object{elsewhere(hashed)}, known: []Known{had(hashed)},
			want: []string{"vanished 2024/20240501_a.nc", "moved moved/20240501_a.nc from 2024/20240501_a.nc"},
		},
		{
			name: "moved, as the ETag of an upload in parts tells", objects: []Object{elsewhere(parts)}, known: []Known{had(parts)},
			want: []string{"vanished 2024/20240501_a.nc", "moved moved/20240501_a.nc from 2024/20240501_a.nc"},
		},
		{
			name: "moved long after it vanished", objects: []Object{elsewhere(hashed)}, known: []Known{gone(had(hashed))},
			want: []string{"moved moved/20240501_a.nc from 2024/20240501_a.nc"},
		},
		{
			name: "an ETag of time and inode tells no move", objects: []Object{elsewhere(tagged)}, known: []Known{had(tagged)},
			want: []string{"vanished 2024/20240501_a.nc", "new moved/20240501_a.nc"},
		},
		{
			name: "the same bytes for another day are another granule", known: []Known{had(hashed)},
			objects: []Object{with(hashed, func(o *Object) { o.Name = "2024/20240502_a.nc" })},
			want:    []string{"vanished 2024/20240501_a.nc", "new 2024/20240502_a.nc"},
		},
		{
			name: "a copy beside the original is read", objects: []Object{hashed, elsewhere(hashed)}, known: []Known{had(hashed)},
			want: []string{"new moved/20240501_a.nc"},
		},
		{
			name: "a listing that has a name twice", objects: []Object{plain, with(plain, func(o *Object) { o.ModTime = now; o.Size = 9 })},
			known: []Known{had(with(plain, func(o *Object) { o.ModTime = now; o.Size = 9 }))},
		},
		{
			name: "days that were not asked for", objects: []Object{plain}, want: []string{"outside 2024/20240501_a.nc"},
			edit: func(l *listing) { l.live.From = time.Date(2024, 5, 2, 0, 0, 0, 0, time.UTC) },
		},
		{
			name: "a backfill", objects: []Object{plain}, want: []string{"new 2024/20240501_a.nc in backfill"},
			edit: func(l *listing) {
				l.live.From = time.Date(2024, 5, 2, 0, 0, 0, 0, time.UTC)
				l.backfill = Days{From: time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC), To: time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC)}
			},
		},
		{
			name: "no day to be told", objects: []Object{{Name: "latest.nc", Size: 1}}, want: []string{"new latest.nc"},
			edit: func(l *listing) { l.live.From = time.Date(2024, 5, 2, 0, 0, 0, 0, time.UTC) },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := listing{objects: slices.Clone(tt.objects), complete: true}
			if tt.edit != nil {
				tt.edit(&l)
			}
			actions, err := decide(l, yielding(tt.known...))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, a := range actions {
				text := fmt.Sprintf("%s %s", a.Kind, a.Object.Name)
				if a.From != "" {
					text += " from " + a.From
				}
				if a.Lane == Backfill {
					text += " in backfill"
				}
				got = append(got, text)
				if a.Why == "" {
					t.Errorf("%s has no reason", text)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("decide() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecideMergesLongListsInOrder(t *testing.T) {
	var objects []Object
	var known []Known
	for i := range 1000 {
		o := Object{Name: fmt.Sprintf("%04d.nc", i), Size: int64(i), ModTime: longAgo()}
		if i%3 != 0 {
			objects = append(objects, o)
		}
		if i%2 != 0 {
			known = append(known, Known{Object: o, SHA256: "aa"})
		}
	}
	slices.Reverse(objects) // in any order
	actions, err := decide(listing{objects: objects, complete: true}, yielding(known...))
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range actions {
		if i > 0 && actions[i-1].Object.Name >= a.Object.Name {
			t.Fatalf("%s comes after %s", a.Object.Name, actions[i-1].Object.Name)
		}
		want := New
		if a.Object.Size%3 == 0 {
			want = Vanished
		}
		if a.Kind != want {
			t.Errorf("%s is %s, want %s", a.Object.Name, a.Kind, want)
		}
	}
	if len(actions) != 500 { // 333 of 6n+2 and 6n+4 are new, 167 of 6n+3 gone
		t.Errorf("%d actions, want 500", len(actions))
	}
}

func TestDecideFailsWithTheRecord(t *testing.T) {
	broken := errors.New("disk is gone")
	known := func(yield func(Known, error) bool) { yield(Known{}, broken) }
	if _, err := decide(listing{complete: true}, known); !errors.Is(err, broken) {
		t.Errorf("decide() = %v, want the error of the record", err)
	}
}

func TestDayInNameReadsDatesOfProducers(t *testing.T) {
	for name, want := range map[string]string{
		"2024/05/20240517_cmems_obs-oc_blk_bgc-plankton_my_l3-multi-1km_P1D.nc": "2024-05-17",
		"20240517120000-CMEMS-L3S_GHRSST-SSTsubskin.nc":                         "2024-05-17",
		"PACE_OCI.20240517.L3m.DAY.CHL.V3_0.chlor_a.4km.nc":                     "2024-05-17",
		"A2024138.L3m_DAY_CHL.nc":                                               "2024-05-17",
		"x_2024-05-17.nc":                                                       "2024-05-17",
		"2024/05/17/chl.nc":                                                     "2024-05-17",
		"v202311/20240517.nc":                                                   "2024-05-17",
		"orbit12345678901.nc":                                                   "",
		"x_20241317.nc":                                                         "",
		"x_20230229.nc":                                                         "",
		"run_99999999_20240517.nc":                                              "2024-05-17",
		"latest.nc":                                                             "",
		"":                                                                      "",
	} {
		got := ""
		if day, ok := DayInName(name); ok {
			got = day.Format(time.DateOnly)
		}
		if got != want {
			t.Errorf("DayInName(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestPrefixesFollowTheDays(t *testing.T) {
	today := time.Date(2024, 3, 2, 15, 0, 0, 0, time.UTC)
	days := Days{From: today.AddDate(0, 0, -2)}
	for _, tt := range []struct {
		template string
		days     Days
		want     []string
	}{
		{"{year}/{month}/", days, []string{"2024/02/", "2024/03/"}},
		{"{year}/{yearday}_", days, []string{"2024/060_", "2024/061_", "2024/062_"}},
		{"sst/", days, []string{"sst/"}},
		{"sst/{year}/", Days{}, []string{"sst/"}},
		{"{year}{month}{day}", Days{From: days.From, To: days.From}, []string{"20240229"}},
	} {
		if diff := cmp.Diff(tt.want, expand([]string{tt.template}, tt.days, today)); diff != "" {
			t.Errorf("expand(%q) (-want +got):\n%s", tt.template, diff)
		}
	}
}

func TestADayThatWasNotAskedForHasNotVanished(t *testing.T) {
	since := time.Date(2024, 5, 10, 13, 0, 0, 0, time.UTC)
	known := func(yield func(Known, error) bool) {
		for _, name := range []string{"chl_20240509.nc", "chl_20240510.nc"} { // both were made anew yesterday
			if !yield(Known{Object: Object{Name: name, Size: 1, ModTime: since.AddDate(0, 0, 9)}, SHA256: "x"}, nil) {
				return
			}
		}
	}
	actions, err := decide(listing{complete: true, scope: Scope{Since: since}}, known)
	if err != nil || len(actions) != 1 || actions[0].Kind != Vanished || actions[0].Object.Name != "chl_20240510.nc" {
		t.Errorf("decide() = %+v, %v; want that the 10th alone has vanished", actions, err)
	}
}
