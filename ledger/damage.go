package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"lacuna/internal/durable"
)

// damagedMark is what the name of a damaged ledger has behind that of the
// ledger, before the time at which it was moved away.
const (
	damagedMark   = ".damaged-"
	damagedLayout = "20060102T150405Z"
)

// MoveAway puts a ledger that is damaged out of the way, with all that belongs
// to it, and returns where it is now. Nobody may have it open.
func MoveAway(path string, now time.Time) (string, error) {
	target := path + damagedMark + now.UTC().Format(damagedLayout)
	for _, ending := range []string{"-shm", "-wal", ""} { // the file itself last: as long as it is there, this is not done
		if err := os.Rename(path+ending, target+ending); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("move damaged ledger away: %w", err)
		}
	}
	if err := durable.Sync(filepath.Dir(path)); err != nil {
		return "", fmt.Errorf("move damaged ledger away: %w", err)
	}
	return target, nil
}

// LastDamage returns when a ledger was last made anew; the zero time where it
// never was.
func LastDamage(path string) time.Time {
	var last time.Time
	for _, mark := range []string{damagedMark, journalEnding + "-"} {
		files, err := filepath.Glob(path + mark + "*")
		if err != nil {
			return time.Time{} // a path that is a pattern
		}
		for _, file := range files {
			at, err := time.Parse(damagedLayout, strings.TrimPrefix(file, path+mark))
			if err == nil && at.After(last) {
				last = at
			}
		}
	}
	return last
}
