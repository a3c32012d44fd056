package image

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"time"
)

// User is the number of the user and of the group that the image runs as, the one
// that other images without a distribution have too.
const User = 65532

// A Tree holds the files of a layer by their path, without the slash before it.
type Tree map[string]Entry

// An Entry is a folder, a link, or a file with the content of another or a text.
type Entry struct {
	Mode  fs.FileMode
	Owner int
	Link  string // target of a symbolic link
	From  string // file with the content; empty: Text is it
	Text  string
}

// parents adds the folders above every entry that are not there.
func (t Tree) parents() {
	for name := range maps.Clone(t) {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, ok := t[dir]; !ok {
				t[dir] = Entry{Mode: fs.ModeDir | 0o755}
			}
		}
	}
}

// Tar writes the tree as a layer. Nothing in it depends on when and where it is
// written, nor by whom.
func (t Tree) Tar(w io.Writer) error {
	t.parents()
	archive := tar.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if err := t[name].write(archive, name); err != nil {
			return fmt.Errorf("put %s into the image: %w", name, err)
		}
	}
	return archive.Close()
}

func (e Entry) write(archive *tar.Writer, name string) error {
	header := &tar.Header{
		Name: name, Uid: e.Owner, Gid: e.Owner, ModTime: time.Unix(0, 0), Format: tar.FormatPAX,
		Mode: int64(e.Mode.Perm()), Typeflag: tar.TypeReg,
	}
	if e.Mode&fs.ModeSticky != 0 {
		header.Mode |= 0o1000
	}
	switch {
	case e.Link != "":
		header.Typeflag, header.Linkname, header.Mode = tar.TypeSymlink, e.Link, 0o777
		return archive.WriteHeader(header)
	case e.Mode.IsDir():
		header.Typeflag, header.Name = tar.TypeDir, name+"/"
		return archive.WriteHeader(header)
	case e.From == "":
		header.Size = int64(len(e.Text))
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		_, err := io.WriteString(archive, e.Text)
		return err
	}
	file, err := os.Open(e.From)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	header.Size = info.Size()
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(archive, file)
	return err
}
