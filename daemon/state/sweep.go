package state

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

// unfinished matches the names of files that were to replace another: a dot, the name
// of the other, and a number.
var unfinished = regexp.MustCompile(`^\.(.+?)[0-9]{6,}$`)

// Sweep removes the unfinished files of a process that was killed. The caller holds the
// ledger: only such files are removed as nobody writes without it.
func (d Dir) Sweep() error {
	var errs []error
	for _, pattern := range []string{".ledger.db.*", ".alarms.json*", ".speeds.json*", "calibration/.*", "scaling/.*", "seen/.*", "sources/.*"} {
		found, _ := filepath.Glob(d.in(pattern)) // the patterns are good
		for _, path := range found {
			if !unfinished.MatchString(filepath.Base(path)) {
				continue
			}
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}
