package daemon

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/pages"
	"lacuna/ledger"
)

func TestTheAlarmOfSetAsideGranulesCountsAllOfEveryDataset(t *testing.T) {
	b := newBench(t)
	quiet, loud := b.cfg.Datasets[0], b.cfg.Datasets[0]
	quiet.Name, loud.Name = "quiet", "loud"
	b.cfg.Datasets = []Dataset{quiet, loud}
	d := b.daemon(t)
	book, err := d.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer d.books().Close(t.Context(), book)
	aside := func(dataset string, n int, at time.Time) {
		for i := range n {
			a := ledger.Arrival{Object: ledger.Object{Dataset: dataset, Name: fmt.Sprintf("%v-%d.nc", at.Unix(), i)}, SHA256: fmt.Sprintf("%s%v%d", dataset, at, i), SpoolPath: fmt.Sprintf("spool/%s/%v-%d.nc", dataset, at.Unix(), i)}
			g, _, err := book.Arrive(t.Context(), a, at)
			if err == nil {
				err = book.Quarantine(t.Context(), g.ID, "no coordinates", at)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	now := time.Now()
	aside("quiet", 7, now.Add(-25*time.Hour)) // more than a day ago
	aside("quiet", 6, now.Add(-2*time.Hour))
	aside("loud", 3*pages.RecentRows, now.Add(-time.Hour)) // enough to fill the list of the newest
	s, err := d.pages().Status(book)(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, a := range s.Alarms {
		if a.Name == "quarantine" {
			told = append(told, a.Summary)
		}
	}
	want := "60 granules of loud were set aside within a day|6 granules of quiet were set aside within a day"
	if got := strings.Join(told, "|"); got != want {
		t.Errorf("alarms are %q, want %q", got, want)
	}
}
