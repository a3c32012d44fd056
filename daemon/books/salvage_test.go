package books

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"lacuna/ledger"
)

func TestARevisionThatWentOnUnderALaterNumberIsNotRestored(t *testing.T) {
	s := Keeper{Now: time.Now}.Salvage()
	spooled := filepath.Join(t.TempDir(), "granule")
	if err := os.WriteFile(spooled, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fact := ledger.Fact{Dataset: "sea", Name: "a.nc", Revision: 2, SHA256: "same", SpoolPath: spooled}
	later := fact
	later.Revision, later.Publication = 3, &ledger.PublishedFact{File: spooled}
	s.addFact(fact) // the line from before its number was found to be taken
	s.addFact(later)
	if got := s.Found(); len(got) != 1 || got[0].Revision != 3 {
		t.Errorf("Found() = %+v, want revision 3 only", got)
	}
}
