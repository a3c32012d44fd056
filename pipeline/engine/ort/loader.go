package ort

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// systemFolders lists the folders in which the system's loader searches, best
// first: $LD_LIBRARY_PATH, the folders of /etc/ld.so.conf, those built in. The
// loader itself is not asked, because it loads a library, and runs its code,
// before anybody can check who may change it.
func systemFolders() []string {
	folders := absolute(filepath.SplitList(os.Getenv("LD_LIBRARY_PATH")))
	if runtime.GOOS == "darwin" {
		return append(folders, "/usr/local/lib", "/opt/homebrew/lib", "/usr/lib")
	}
	folders = append(folders, loaderFolders("/etc/ld.so.conf", 0)...)
	return append(folders, "/lib64", "/usr/lib64", "/lib", "/usr/lib")
}

// absolute leaves out relative folders. An empty folder on a search path is one:
// it means the working directory.
func absolute(folders []string) []string {
	return slices.DeleteFunc(folders, func(f string) bool { return !filepath.IsAbs(f) })
}

// mostIncludes is how deep the loader's files may include one another; one that
// includes itself has to end somewhere.
const mostIncludes = 4

// loaderFolders reads a file like /etc/ld.so.conf: a folder a line, comments
// after #, and "include PATTERN". A file that cannot be read has none.
func loaderFolders(file string, depth int) []string {
	text, err := os.ReadFile(file)
	if err != nil || depth > mostIncludes {
		return nil
	}
	var folders []string
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case words[0] == "include":
			for _, pattern := range words[1:] {
				if !filepath.IsAbs(pattern) {
					pattern = filepath.Join(filepath.Dir(file), pattern)
				}
				files, _ := filepath.Glob(pattern) // fails on a malformed pattern only
				for _, included := range files {
					folders = append(folders, loaderFolders(included, depth+1)...)
				}
			}
		default:
			folders = append(folders, words[0])
		}
	}
	return absolute(folders)
}
