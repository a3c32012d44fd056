package ledger

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A backup is of one moment: of work that always adds a granule together with
// its times, a copy never has the one without the other.
func TestABackupIsWholeWhileOthersWrite(t *testing.T) {
	folder := t.TempDir()
	l := open(t, filepath.Join(folder, "ledger.db"))
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				ended <- nil
				return
			default:
			}
			err := l.Batch(t.Context(), func(b Batch) error {
				for _, name := range []string{"a", "b"} {
					if _, _, err := b.Arrive(t.Context(), arrival(fmt.Sprintf("%s%05d.nc", name, i), fmt.Sprint(i)), at(i)); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				ended <- err
				return
			}
		}
	}()
	beside, err := Join(t.Context(), filepath.Join(folder, "ledger.db"))
	must(t, err)
	defer beside.Close()
	sizes := []int{}
	for i := range 5 {
		copied := filepath.Join(folder, fmt.Sprintf("copy%d.db", i))
		must(t, beside.Backup(t.Context(), copied))
		c := open(t, copied)
		pending, err := c.Pending(t.Context(), "chl")
		must(t, err)
		if len(pending)%2 != 0 {
			t.Errorf("backup %d has %d granules, of pairs", i, len(pending))
		}
		sizes = append(sizes, len(pending))
	}
	close(stop)
	must(t, <-ended)
	if !slices.IsSorted(sizes) || sizes[0] == sizes[4] {
		t.Errorf("backups have %v granules, while more and more came", sizes)
	}
	if left, err := filepath.Glob(filepath.Join(folder, ".ledger-backup-*")); err != nil || len(left) > 0 {
		t.Errorf("backups left %v, %v", left, err)
	}
}

func TestABackupThatFailsLeavesTheOneBefore(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "ledger.db")
	l := open(t, path)
	arriveNow(t, l, arrival("a.nc", "1"))
	if err := l.Backup(t.Context(), path); err == nil || !strings.Contains(err.Error(), "itself") {
		t.Errorf("Backup() = %v over the ledger", err)
	}
	copied := filepath.Join(folder, "copy.db")
	must(t, os.WriteFile(copied, []byte("before"), 0o600))
	must(t, l.Close())
	must(t, os.WriteFile(path, []byte(strings.Repeat("noise", 1000)), 0o600))
	broken := &Ledger{path: path}
	if err := broken.Backup(t.Context(), copied); err == nil {
		t.Error("Backup() of a damaged ledger succeeds")
	}
	if text, err := os.ReadFile(copied); string(text) != "before" || err != nil {
		t.Errorf("the backup before is %q, %v", text, err)
	}
}

func TestTheHolderOfALedgerIsNamedWithoutTouchingItsLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	if name, running := Holder(path); running {
		t.Errorf("Holder() = %s of a ledger that is not there", name)
	}
	l := open(t, path)
	want := fmt.Sprintf("process %d", os.Getpid())
	if name, running := Holder(path); !running || name != want {
		t.Errorf("Holder() = %s, %v, want %s", name, running, want)
	}
	must(t, l.Close())
	if name, running := Holder(path); running {
		t.Errorf("Holder() = %s of a ledger that was closed", name)
	}
	// A killed process leaves its number behind, and no lock.
	must(t, os.WriteFile(path+".lock", []byte(fmt.Sprintln(os.Getpid())), 0o600))
	if name, running := Holder(path); running {
		t.Errorf("Holder() = %s where nobody has the lock", name)
	}
}
