package consumer

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"
)

// longestName is the longest name, in bytes, that is used unchanged: file
// systems take 255, and side files and temporary ones need some.
const longestName = 224

// longestEnding is the longest ending of a name that is kept.
const longestEnding = 16

// shortened matches the names that FileName makes.
var shortened = regexp.MustCompile(`~[0-9a-f]{64}(\.[^.]*)?$`)

// FileName returns the name under which to keep a product or a dataset: the
// name itself, or where that is longer than 224 bytes or has control characters,
// its beginning, a tilde, the SHA-256 of the whole name and its ending. Names
// that differ have file names that differ, for a name that looks shortened is
// shortened too; the whole name stands in the event, which is to be kept beside
// the file.
func FileName(name string) string {
	odd := func(r rune) bool { return r < 0x20 || r == 0x7f }
	if len(name) <= longestName && strings.IndexFunc(name, odd) < 0 && !shortened.MatchString(name) {
		return name
	}
	plain := strings.Map(func(r rune) rune {
		if odd(r) {
			return '_'
		}
		return r
	}, name)
	ending := path.Ext(plain)
	if len(ending) > longestEnding {
		ending = ""
	}
	sum := sha256.Sum256([]byte(name))
	tail := "~" + hex.EncodeToString(sum[:]) + ending
	head := plain[:min(len(plain)-len(ending), longestName-len(tail))]
	for head != "" { // a character is kept whole or not at all
		if r, size := utf8.DecodeLastRuneInString(head); r != utf8.RuneError || size > 1 {
			break
		}
		head = head[:len(head)-1]
	}
	return head + tail
}
