package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"lacuna/internal/figure"
)

// ErrFull says that the disk has less room left than the floor.
var ErrFull = errors.New("disk is at its floor")

// checkRoom refuses to go below the floor with bytes that are written already
// or, with 0, about to be. The message names files that could be removed.
func (s Store) checkRoom(written int64) error {
	if s.FloorBytes <= 0 {
		return nil
	}
	free := s.Free
	if free == nil {
		free = freeBytes
	}
	left, err := free(nearest(s.Root))
	if err != nil {
		return fmt.Errorf("ask for free space: %w", err)
	}
	if left >= s.FloorBytes {
		return nil
	}
	return fmt.Errorf("%w: %s free on the disk of %s, %s are to stay; free %s%s", ErrFull,
		figure.Bytes(left), s.Root, figure.Bytes(s.FloorBytes), figure.Bytes(s.FloorBytes-left+written), s.suggestion())
}

// suggestion names the space that old products take and the setting that frees
// it.
func (s Store) suggestion() string {
	usage, err := s.Usage()
	if err != nil {
		return ""
	}
	text := ""
	for _, class := range []Class{Superseded, NearRealTime, Delayed} {
		if u := usage[class]; u.Files > 0 {
			text += fmt.Sprintf(", %d %s files hold %s", u.Files, class, figure.Bytes(u.Bytes))
		}
	}
	if text == "" {
		return " or lower publish.disk.floor_mib"
	}
	return ": " + text[2:] + "; shorten publish.disk.keep_days or lower publish.disk.floor_mib"
}

// nearest returns the folder itself, or the first above it that exists.
func nearest(folder string) string {
	for {
		if _, err := os.Stat(folder); err == nil {
			return folder
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return folder
		}
		folder = parent
	}
}

func freeBytes(folder string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(folder, &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail) * st.Bsize, nil
}
