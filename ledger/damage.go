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

// damagedMark stands between the name of the ledger and the time of the move in
// the name of a damaged ledger.
const (
	damagedMark   = ".damaged-"
	damagedLayout = "20060102T150405Z"
)

// MoveAway renames a damaged ledger with its other files and returns the new
// path. Nobody may have it open.
func MoveAway(path string, now time.Time) (string, error) {
	target := path + damagedMark + now.UTC().Format(damagedLayout)
	for _, ending := range []string{"-shm", "-wal", ""} { // the file itself last: its absence says that the move is complete
		if err := os.Rename(path+ending, target+ending); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("move damaged ledger away: %w", err)
		}
	}
	if err := durable.Sync(filepath.Dir(path)); err != nil {
		return "", fmt.Errorf("move damaged ledger away: %w", err)
	}
	return target, nil
}

// LastDamage returns the time of the last rebuild of a ledger; zero: never.
func LastDamage(path string) time.Time {
	var last time.Time
	for _, mark := range []string{damagedMark, journalEnding + "-"} {
		files, err := filepath.Glob(path + mark + "*")
		if err != nil {
			return time.Time{} // the path is a malformed pattern
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
