package fetch

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ErrName marks an object whose name is not fit to be used. Only a new name
// cures it.
var ErrName = errors.New("name refused")

// maxNameBytes is the longest part of a path that Linux file systems take, less
// room for the endings that products and temporary files add.
const maxNameBytes = 255 - 32

// CheckName returns why name is unfit for paths, logs and products: a way out
// of a folder, a character that shells, terminals or netCDF-C take for
// something else, or a length that the file system refuses.
func CheckName(name string) error {
	if !utf8.ValidString(name) {
		return errors.New("not UTF-8; rename the file on the archive")
	}
	for _, r := range name {
		switch {
		case r == '\\':
			return errors.New("has a backslash, which netCDF takes for a slash; rename the file on the archive")
		case !unicode.IsPrint(r):
			return fmt.Errorf("has the unprintable character %U; rename the file on the archive", r)
		}
	}
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "":
			return errors.New("is empty or has an empty part; give a path like 2024/file.nc")
		case part == "." || part == "..":
			return fmt.Errorf("has the part %q, which could lead out of the folder; rename the file on the archive", part)
		case len(part) > maxNameBytes:
			return fmt.Errorf("has a part of %d bytes, more than %d; rename the file on the archive", len(part), maxNameBytes)
		}
	}
	return nil
}
