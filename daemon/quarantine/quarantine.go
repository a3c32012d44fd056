// Package quarantine is the folder of granules that were set aside. A file lies
// there with its reason beside it, and goes back into the spool when the granule
// is taken up again; no crash in between loses it.
//
// It does not know why a granule is set aside.
package quarantine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"time"

	"lacuna/daemon/state"
	"lacuna/fetch"
	"lacuna/internal/durable"
	"lacuna/ledger"
)

// WhySuffix ends the name of the file with the reason, beside the granule.
const WhySuffix = ".why.txt"

// Folder is the quarantine of a state, with the spool that its granules come from.
type Folder struct{ State state.Dir }

// Of returns the folder of a dataset.
func (f Folder) Of(dataset string) string { return filepath.Join(f.State.Quarantine(), dataset) }

// Put gives the file of a granule a name in the folder, with the reason beside it,
// and returns it. Its place in the spool stays: to another dataset the same bytes
// may be a granule.
func (f Folder) Put(g ledger.Granule, reason string) (string, error) {
	target := filepath.Join(f.Of(g.Dataset), revisionName(g))
	if err := durable.Link(g.SpoolPath, target); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("set aside: %w", err)
	}
	if err := os.WriteFile(target+WhySuffix, []byte(reason+"\n"), 0o644); err != nil {
		return "", fmt.Errorf("set aside: %w", err)
	}
	return target, nil
}

func revisionName(g ledger.Granule) string {
	return fmt.Sprintf("r%d-%s", g.Revision, path.Base(g.Name))
}

// File returns the path of the bytes of a granule that was set aside; empty where
// they are gone.
func (f Folder) File(g ledger.Granule) string {
	if g.SHA256 == "" {
		return ""
	}
	for _, file := range []string{
		filepath.Join(f.Of(g.Dataset), revisionName(g)),
		filepath.Join(f.Of(g.Dataset), g.SHA256[:8]+"-"+path.Base(path.Clean("/"+g.Name))),
		g.SpoolPath, // where the intake put it
	} {
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			return file
		}
	}
	return ""
}

// Restore moves the file of a granule back to its place in the spool, where a
// process was killed after Put and before the ledger knew. It reports whether
// there was a file to move.
func (f Folder) Restore(g ledger.Granule) (bool, error) {
	from := f.File(g)
	if from == "" || from == g.SpoolPath {
		return false, nil
	}
	if err := durable.MakeFolders(filepath.Dir(g.SpoolPath)); err != nil {
		return false, fmt.Errorf("restore to the spool: %w", err)
	}
	if err := os.Rename(from, g.SpoolPath); err != nil {
		return false, fmt.Errorf("restore to the spool: %w", err)
	}
	return true, state.Remove(from + WhySuffix)
}

// Forget removes the name of a granule in the folder, and the reason, where its file
// is in the spool: a process was killed after Put and before the ledger knew, and the
// granule was good after all.
func (f Folder) Forget(g ledger.Granule) error {
	aside := filepath.Join(f.Of(g.Dataset), revisionName(g))
	if _, err := os.Lstat(aside + WhySuffix); err != nil {
		return nil // as a rule
	}
	if _, err := os.Stat(g.SpoolPath); err != nil {
		return err
	}
	return errors.Join(state.Remove(aside), state.Remove(aside+WhySuffix))
}

// Books record that a granule is taken up again.
type Books interface {
	Retry(ctx context.Context, id int64, spoolPath, why string, at time.Time) error
}

// TakeUp links the file of a granule back into the spool, records that, and only
// then removes it from the folder: a crash in between leaves the granule either
// set aside or taken up, in both cases with its file. why is empty where an
// operator asked for it.
func (f Folder) TakeUp(ctx context.Context, books Books, g ledger.Granule, why string, at time.Time) error {
	from := f.File(g)
	if from == "" {
		return fmt.Errorf("%s has no bytes here (it was refused by its name, or its file is gone): put the file on the archive again, under a good name", g.Name)
	}
	to, err := fetch.NewSpool(f.State.Spool()).Adopt(from, g.Name, g.SHA256)
	if err != nil {
		return err
	}
	if err := books.Retry(ctx, g.ID, to, why, at); err != nil {
		return err
	}
	if from == to {
		return nil
	}
	return errors.Join(state.Remove(from), state.Remove(from+WhySuffix))
}
