package engine

import (
	"os"
	"path/filepath"
	"strings"
)

// tuningFolder returns the folder where XLA keeps which kernels are fastest on this
// GPU, or nothing where it cannot be written to. To find that out anew takes three
// minutes for the training of a base network on an H200, to read it seven seconds.
// Without a name in the settings it is that of systemd's CacheDirectory, else one in
// the user's cache; both are of this user alone, as what XLA reads must be.
func tuningFolder(named string, env func(string) string, userCache func() (string, error)) string {
	dir := named
	if caches, _, _ := strings.Cut(env("CACHE_DIRECTORY"), ":"); dir == "" && caches != "" {
		dir = filepath.Join(caches, "xla")
	}
	if dir == "" {
		cache, err := userCache()
		if err != nil {
			return ""
		}
		dir = filepath.Join(cache, "lacuna", "xla")
	}
	// XLA reads its flags word by word, and a folder that it cannot write to ends its
	// compilation with an error.
	if strings.ContainsAny(dir, " \t\n'\"") || os.MkdirAll(dir, 0o700) != nil || !writable(dir) {
		return ""
	}
	return dir
}

// writable reports whether a file can be made in dir.
func writable(dir string) bool {
	f, err := os.CreateTemp(dir, ".writable-*")
	if err != nil {
		return false
	}
	closed := f.Close()
	return os.Remove(f.Name()) == nil && closed == nil
}
