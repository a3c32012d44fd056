package fetch

import (
	"path"
	"slices"
	"strings"
)

// Unfinished tells the names under which programs write a file before they
// give it its own: rsync and browsers, cp and curl wrappers, ftp servers. One
// such part of a path is enough. Archives leave these names out of a listing.
func Unfinished(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(part, ".") && part != "." && part != ".." || strings.HasSuffix(part, "~") {
			return true
		}
		switch strings.ToLower(path.Ext(part)) {
		case ".tmp", ".temp", ".part", ".partial", ".filepart", ".crdownload":
			return true
		}
	}
	return false
}

// Reaches reports whether something below folder, a path without a slash at
// its end, may belong into a listing of s. The root is "".
func (s Scope) Reaches(folder string) bool {
	if folder == "" || s.Holds(folder+"/") {
		return true
	}
	for _, prefix := range s.Prefixes {
		if strings.HasPrefix(prefix, folder+"/") {
			return true
		}
	}
	return false
}

// Roots returns the prefixes in order and without those that another one
// covers, so that listing each of them lists nothing twice. For the whole
// archive it is one empty prefix.
func (s Scope) Roots() []string {
	if len(s.Prefixes) == 0 {
		return []string{""}
	}
	var roots []string
	for _, prefix := range slices.Sorted(slices.Values(s.Prefixes)) {
		if n := len(roots); n == 0 || !strings.HasPrefix(prefix, roots[n-1]) {
			roots = append(roots, prefix)
		}
	}
	return roots
}
