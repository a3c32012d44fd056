package modelstore

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestACardWithoutListsOfDaysStillLoads(t *testing.T) {
	card := wholeCard()
	card.Split = Split{Rule: "the last quarter", TrainDays: 290, TestDays: 137}
	old, err := DecodeCard(encode(t, card))
	if err != nil || old.Split.Known() || old.Split.TrainDays != 290 {
		t.Fatalf("split %+v, %v", old.Split, err)
	}
	if text := old.Text(); !strings.Contains(text, "290 days to learn from, 0 to choose by, 137 to judge on; which days is not known") {
		t.Errorf("the text is %s", text)
	}
	if !wholeCard().Split.Known() {
		t.Error("days that are listed are not known")
	}
}

func TestADayThatIsNoDateIsRefused(t *testing.T) {
	for name, edit := range map[string]func(*Split){
		"of all seas":    func(s *Split) { s.Judge = append(s.Judge, "tomorrow") },
		"of one":         func(s *Split) { s.Seas["x"] = Sea{Choose: []string{"2023-13-01"}} },
		"of an ancestor": func(s *Split) { s.Seen = append(s.Seen, Seen{Until: "1.1.2023"}) },
	} {
		card := wholeCard()
		card.Split = testSplit()
		edit(&card.Split)
		if _, err := card.Encode(); err == nil || !strings.Contains(err.Error(), "not a date") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// Days of a parent must not stay on the card of its child as if they were its
// own: the card keeps fields that it does not know.
func TestAChildHasNoDaysOfItsParent(t *testing.T) {
	parent, err := DecodeCard(encode(t, wholeCard()))
	if err != nil {
		t.Fatal(err)
	}
	child := parent.Child("blk-chl-2024-04-01-0123456789abcdef")
	child.Created = day0
	if again, err := DecodeCard(encode(t, child)); err != nil || !reflect.DeepEqual(again.Split, Split{}) {
		t.Errorf("split of the child %+v, %v", again.Split, err)
	}
}

func TestDiffCountsDays(t *testing.T) {
	a, b := wholeCard(), wholeCard()
	b.Split.Judge = append(b.Split.Judge, "2023-08-05")
	got, err := Diff(a, b)
	if err != nil {
		t.Fatal(err)
	}
	want := []Difference{{"split.judge", "2 days from 2023-08-01 to 2023-08-02", "3 days from 2023-08-01 to 2023-08-05"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Diff (-want +got):\n%s", diff)
	}
}

func TestACalendarIsChangedAsAWholeOrNotAtAll(t *testing.T) {
	s := newStore(t)
	if data, err := s.Calendar("blk-chl"); data != nil || err != nil {
		t.Errorf("a store that is not there has the calendar %s, %v", data, err)
	}
	change := func(want, to string, fail error) error {
		return s.ChangeCalendar(t.Context(), "blk-chl", func(now []byte) ([]byte, error) {
			if string(now) != want {
				t.Errorf("the calendar is %q, want %q", now, want)
			}
			return []byte(to), fail
		})
	}
	broken := errors.New("broken")
	if err := errors.Join(change("", "one", nil), change("one", "two", nil)); err != nil {
		t.Fatal(err)
	}
	if err := change("two", "three", broken); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if data, err := s.Calendar("blk-chl"); !bytes.Equal(data, []byte("two")) || err != nil {
		t.Errorf("calendar %q, %v", data, err)
	}
	if left, err := os.ReadDir(filepath.Join(s.Dir(), "calendars")); err != nil || len(left) != 1 {
		t.Errorf("in the folder are %v, %v", left, err)
	}
	if _, err := s.Calendar("../champion"); err == nil {
		t.Error("a dataset can name any file")
	}
	// Garbage collection leaves it alone: a version may come back.
	if _, err := s.GC(t.Context(), Retention{}, false); err != nil {
		t.Fatal(err)
	}
	if data, err := s.Calendar("blk-chl"); string(data) != "two" || err != nil {
		t.Errorf("after collection the calendar is %q, %v", data, err)
	}
}
