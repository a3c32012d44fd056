package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"lacuna/internal/durable"
)

// ErrSpool marks a failure of the local disk, as against one of the archive
// or of an object. The next object would meet it too.
var ErrSpool = errors.New("spool folder")

// ErrCorrupt says that the bytes of an object do not have the hash that the
// archive gives.
var ErrCorrupt = errors.New("bytes do not have the hash that the archive gives")

// Granule is a whole object in the spool.
type Granule struct {
	Name    string    // name on the archive
	Path    string    // path of the copy in the spool
	SHA256  string    // hash of its bytes, lower-case hex
	Size    int64     // bytes
	ModTime time.Time // modification time on the archive
}

// Spool is the folder that granules are copied into. A file in it lies in
// a folder named after its content: it never changes, and a replaced object
// becomes another file. It is safe for concurrent use, also by several
// processes.
type Spool struct {
	dir  string
	room room
	wrap func(tempFile) tempFile // tests put a failing disk in front of files with it
}

// NewSpool returns the spool in dir, which is made when it is first needed.
func NewSpool(dir string) *Spool {
	return &Spool{dir: dir, room: room{space: diskSpace}, wrap: func(f tempFile) tempFile { return f }}
}

// Download is an object to be brought in.
type Download struct {
	Archive Archive
	Object  Object
	Floor   Floor       // free space that must be left
	OnBytes func(n int) // told of bytes as they come, resumed ones included; may be nil
	Limits  Limits      // how slow it may be
	OnAlive func()      // told now and then while it is fast enough; may be nil
}

// Bring copies an object from its archive. When it returns, the file is whole,
// has the listed size and hash and survives a power cut. A download that broke
// off is resumed where it stopped, by the next call and by the next process,
// as long as the archive lists the object as before. The hash is that of the
// whole file, however many downloads it took: where it is another one, nothing
// is kept and the next call begins afresh. A failure of the local disk wraps
// ErrSpool.
func (s *Spool) Bring(ctx context.Context, d Download) (Granule, error) {
	if err := durable.MakeFolders(s.dir); err != nil {
		return Granule{}, fmt.Errorf("make %w: %w", ErrSpool, err)
	}
	p, err := openPart(s.dir, d.Object)
	if err != nil {
		return Granule{}, fmt.Errorf("write to %w: %w", ErrSpool, err)
	}
	p.out = s.wrap(p.file)
	g, err := s.complete(ctx, p, d)
	switch {
	case err == nil:
		return g, nil
	case resumable(err):
		err = errors.Join(err, p.leave())
	default:
		_ = p.discard() // err says why; the sweep tries again
	}
	return Granule{}, fmt.Errorf("copy %s: %w", d.Object.Name, err)
}

// resumable reports whether the bytes before err are worth keeping. After a
// failure of the disk nobody knows which of them are on it.
func resumable(err error) bool {
	for _, useless := range []error{ErrChanged, ErrCorrupt, ErrSpool, fs.ErrNotExist} {
		if errors.Is(err, useless) && !errors.Is(err, ErrDiskFloor) {
			return false
		}
	}
	return true
}

// complete fetches the rest of p, checks the whole and moves it to its place.
func (s *Spool) complete(ctx context.Context, p *part, d Download) (Granule, error) {
	o := d.Object
	if d.OnBytes == nil {
		d.OnBytes = func(int) {}
	}
	if d.OnAlive == nil {
		d.OnAlive = func() {}
	}
	space, err := s.room.take(s.dir, o.Size-p.written, d.Floor)
	if err != nil {
		return Granule{}, err
	}
	defer space.release()
	d.OnBytes(int(p.written))
	// A part that is whole already was left by a process that died just before
	// it could move it. Where the listing gives no hash, the archive is asked
	// for the empty rest, for its answer may give one.
	if p.written < o.Size || o.Size == 0 || o.MD5 == "" && o.Digest == "" {
		count := d.OnBytes
		d.OnBytes = func(n int) { space.used(n); count(n) }
		if err := download(ctx, p, d); err != nil {
			return Granule{}, err
		}
	}
	sum, md5 := p.sums()
	if o.MD5 != "" && !strings.EqualFold(o.MD5, md5) {
		return Granule{}, fmt.Errorf("%w: MD5 %s, came with %s", ErrCorrupt, o.MD5, md5)
	}
	for _, given := range []string{o.Digest, p.digest} {
		if given != "" && !strings.EqualFold(given, sum) {
			return Granule{}, fmt.Errorf("%w: SHA-256 %s, came with %s", ErrCorrupt, given, sum)
		}
	}
	g := Granule{Name: o.Name, Path: s.path(o.Name, sum), SHA256: sum, Size: o.Size, ModTime: o.ModTime}
	return g, p.moveTo(g.Path)
}

// download appends the rest of the object to p.
func download(ctx context.Context, p *part, d Download) error {
	ctx, watch := d.Limits.watch(ctx, d.OnAlive)
	defer watch.stop()
	src, err := d.Archive.Open(ctx, p.object, p.written)
	if err != nil {
		return fmt.Errorf("open: %w", why(ctx, err))
	}
	defer src.Close()
	watch.began(ctx)
	to := newStream(p, d.OnBytes, watch.cancel)
	err = readAll(ctx, src, to, watch, p.written, p.object.Size)
	if disk := to.end(); disk != nil {
		return disk // which has ended the reading
	}
	if err == nil {
		p.digest = digestOf(src)
	}
	return err
}

// readAll reads the rest of an object of the listed size, of which at bytes are
// there.
func readAll(ctx context.Context, src io.Reader, to *stream, watch *stopwatch, at, size int64) error {
	for at <= size {
		if err := ctx.Err(); err != nil {
			return why(ctx, err)
		}
		// One byte more than listed is enough to see that an object has grown;
		// an archive that never stops sending must not fill the disk.
		room := to.room()
		n, err := src.Read(room[:min(int64(len(room)), size+1-at)])
		to.filled(n)
		watch.came(n)
		at += int64(n)
		switch {
		case err == io.EOF && at < size:
			return fmt.Errorf("ended after %d of %d bytes: %w", at, size, ErrChanged)
		case err == io.EOF && at == size:
			return nil
		case err != nil && err != io.EOF:
			return why(ctx, err)
		}
	}
	return fmt.Errorf("longer than the %d bytes listed: %w", size, ErrChanged)
}

// Aside gives a file that is not a granule a name in folder, with the reason beside
// it, and returns it with its new path. Its place in the spool stays: to another
// dataset the same bytes may be a granule.
func (s *Spool) Aside(g Granule, folder, reason string) (Granule, error) {
	target := filepath.Join(folder, g.SHA256[:8]+"-"+path.Base(path.Clean("/"+g.Name)))
	if err := durable.Link(g.Path, target); err != nil {
		return Granule{}, fmt.Errorf("set aside from %w: %w", ErrSpool, err)
	}
	if err := os.WriteFile(target+".why.txt", []byte(reason+"\n"), 0o644); err != nil {
		return Granule{}, fmt.Errorf("set aside from %w: %w", ErrSpool, err)
	}
	g.Path = target
	return g, nil
}

// Adopt links a file of known content into the spool and returns the path
// there.
func (s *Spool) Adopt(file, name, sha256 string) (string, error) {
	place := s.path(name, sha256)
	if file == place {
		return place, nil
	}
	if err := durable.Link(file, place); err != nil {
		return "", fmt.Errorf("adopt into %w: %w", ErrSpool, err)
	}
	return place, nil
}

// Sweep removes partial files of killed processes that no download will resume.
// Downloads under way are left alone.
func (s *Spool) Sweep(now time.Time) error {
	entries, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("sweep %w: %w", ErrSpool, err)
	}
	var errs []error
	for _, e := range entries {
		file := filepath.Join(s.dir, e.Name())
		if !strings.HasPrefix(e.Name(), tempPrefix) || !stale(file, e, now) {
			continue
		}
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("sweep %w: %w", ErrSpool, err))
		}
	}
	return errors.Join(errs...)
}

// path returns the path of the file with this content. The file keeps its own
// name, which may be all that says of which day it is, in a folder named after
// the content; the two-digit folder above keeps folders small over years.
func (s *Spool) path(name, sum string) string {
	return filepath.Join(s.dir, sum[:2], sum, path.Base(path.Clean("/"+name)))
}

// moveInto renames temp to file and syncs the folder, so that the new name
// survives a power cut.
func moveInto(temp, file string) error {
	folder := filepath.Dir(file)
	if err := durable.MakeFolders(folder); err != nil {
		return err
	}
	if err := os.Chmod(temp, 0o644); err != nil { // CreateTemp's 0600 would keep other users from looking
		return err
	}
	if err := os.Rename(temp, file); err != nil {
		return err
	}
	return durable.Sync(folder)
}
