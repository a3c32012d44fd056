package trainjob

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"lacuna/daemon/jobs"
	"lacuna/modelstore"
)

// bench is the folder of a training on the machine of a worker:
//
//	in/0/NAME, in/1/NAME…   its files
//	store                   the versions that it needs, and the one that it makes
//	checkpoints             of lacuna train
//	saved                   links to the checkpoints of one moment
type bench struct {
	dir    string
	folder jobs.Folder
	key    string // of the training
}

func (b bench) checkpoints() string { return filepath.Join(b.dir, "checkpoints") }

func (b bench) file(i int, name string) string {
	return filepath.Join(b.dir, "in", strconv.Itoa(i), name)
}

// unpack fetches all that a training needs, and the last checkpoint.
func (b bench) unpack(ctx context.Context, m jobs.Message, store *modelstore.Store) error {
	for i, f := range m.Training.Files {
		if filepath.Base(f.Name) != f.Name || f.Name == "." || f.Name == ".." {
			return fmt.Errorf("the name %q of a file is none", f.Name)
		}
		if err := b.fetch(f.SHA256, b.file(i, f.Name)); err != nil {
			return err
		}
	}
	for _, f := range m.Training.Versions {
		packed := filepath.Join(b.dir, "version.tar")
		if err := b.fetch(f.SHA256, packed); err != nil {
			return err
		}
		if err := importFrom(ctx, store, packed, f.Name); err != nil {
			return err
		}
	}
	if m.Training.Champion != "" {
		change := modelstore.Change{Dataset: m.Dataset, Version: m.Training.Champion, By: "the coordinator", Why: []string{"it is the champion there"}}
		if _, err := store.Promote(ctx, change); err != nil {
			return err
		}
	}
	if sum := m.Training.Calendar; sum != "" {
		calendar, err := b.folder.Read(sum)
		if err != nil {
			return err
		}
		if err := store.ChangeCalendar(ctx, m.Dataset, func([]byte) ([]byte, error) { return calendar, nil }); err != nil {
			return err
		}
	}
	return b.restore()
}

func (b bench) fetch(sum, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return b.folder.Fetch(sum, path)
}

// importFrom takes the version of a file, which must have this name, into a store.
func importFrom(ctx context.Context, store *modelstore.Store, path, name string) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	v, err := store.Import(ctx, in)
	if err == nil && v.ID != name {
		err = fmt.Errorf("a version came as %s, and is %s", name, v.ID)
	}
	return err
}

// place puts the files into their places in the arguments.
func (b bench) place(t *jobs.Training) []string {
	args := slices.Clone(t.Args)
	for i, arg := range args {
		name := ""
		if i > 0 && args[i-1] == covariateFlag {
			of, file, _ := strings.Cut(arg, "=")
			name, arg = of+"=", file
		}
		number, is := strings.CutPrefix(arg, jobs.FilePlace)
		if n, err := strconv.Atoi(number); is && err == nil && n >= 0 && n < len(t.Files) {
			args[i] = name + b.file(n, t.Files[n].Name)
		}
	}
	return args
}

// restore fetches the last checkpoint. One whose files are gone counts as none.
func (b bench) restore() error {
	files, err := b.folder.Checkpoint(b.key)
	if err != nil {
		return err
	}
	for _, f := range files {
		if !filepath.IsLocal(f.Name) {
			return fmt.Errorf("the checkpoint of a training names the file %q", f.Name)
		}
		err := b.fetch(f.SHA256, filepath.Join(b.checkpoints(), f.Name))
		if errors.Is(err, fs.ErrNotExist) {
			return os.RemoveAll(b.checkpoints())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// save puts the checkpoints as they are at one moment, for which hold stops the
// process, into the folder: what a process that is killed then would leave. Files that
// have not changed are there already.
func (b bench) save(l *lease, hold func() (release func())) error {
	saved := filepath.Join(b.dir, "saved")
	if err := os.RemoveAll(saved); err != nil {
		return err
	}
	release := hold()
	names, err := link(b.checkpoints(), saved)
	release()
	if err != nil || len(names) == 0 {
		return err
	}
	var files []jobs.File
	for _, name := range names {
		sum, err := b.folder.AddFile(filepath.Join(saved, name))
		if err != nil {
			return err
		}
		files = append(files, jobs.File{Name: filepath.ToSlash(name), SHA256: sum})
	}
	if err := l.renew(); err != nil { // else those of another would be replaced by older ones
		return err
	}
	return b.folder.KeepCheckpoint(b.key, files)
}

// link links every file below a folder to another, and returns their names. Files are
// replaced and never changed, so that a link keeps what is there now.
func link(from, to string) (names []string, err error) {
	err = filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && (d.IsDir() || strings.HasPrefix(d.Name(), ".")) {
			return nil // a name with a dot is of a file that is being written
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		names = append(names, name)
		return os.Link(path, target)
	})
	return names, err
}

// pack puts the version and the calendar that it was made by into the folder.
func (b bench) pack(ctx context.Context, dataset string, store *modelstore.Store, made *jobs.Trained) (err error) {
	if made.Packed, err = packVersion(ctx, b.folder, store, made.Version, b.dir); err != nil {
		return err
	}
	made.Calendar, err = packCalendar(b.folder, store, dataset)
	return err
}

// packVersion puts a version of a store into the folder, in one file, and returns its
// hash.
func packVersion(ctx context.Context, folder jobs.Folder, store *modelstore.Store, id, scratch string) (sum string, err error) {
	file, err := os.CreateTemp(scratch, "version-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.Remove(file.Name())) }()
	err = errors.Join(store.Export(ctx, id, file), file.Close())
	if err != nil {
		return "", err
	}
	return folder.AddFile(file.Name())
}

// packCalendar puts the calendar of a dataset into the folder; empty: it has none.
func packCalendar(folder jobs.Folder, store *modelstore.Store, dataset string) (string, error) {
	calendar, err := store.Calendar(dataset)
	if err != nil || len(calendar) == 0 {
		return "", err
	}
	return folder.AddBytes(calendar)
}
