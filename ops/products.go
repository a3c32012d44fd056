package ops

import (
	"io/fs"
	"net/http"
	"os"
	"path"
	"strings"
	"syscall"
	"time"
)

// productFiles serves the finished files below a folder. Everything else is
// answered with 404, whatever the reason, so that nothing can be learnt of the
// rest of the disk.
type productFiles struct{ folder string }

// ServeHTTP serves the file whose name below the folder is the path.
func (p productFiles) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Path
	kind, ok := contentType(name)
	if !ok {
		http.NotFound(w, r)
		return
	}
	file, info, err := p.open(name)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	defer file.Close()
	// Products are large and networks slow. A server that cannot move the
	// deadline, as in some tests, has none.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(downloadLimit))
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-cache") // a revision may replace the file: ask, and get 304
	http.ServeContent(w, r, "", info.ModTime(), file)
}

// open opens a regular file below the folder. os.Root holds against "..",
// absolute names and links that lead out; O_NONBLOCK against pipes.
func (p productFiles) open(name string) (*os.File, fs.FileInfo, error) {
	root, err := os.OpenRoot(p.folder)
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

// contentType returns the type of a file that is a product or goes with one.
// Files that are being written have names that begin with a dot.
func contentType(name string) (string, bool) {
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || strings.HasPrefix(part, ".") {
			return "", false
		}
	}
	switch path.Ext(name) {
	case ".nc":
		return "application/netcdf", true
	case ".sha256":
		return "text/plain; charset=utf-8", true
	case ".png":
		return "image/png", true
	case ".json":
		return "application/json", true
	}
	return "", false
}
