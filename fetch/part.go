package fetch

import (
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A part is a download under way. Its bytes lie in a file beside the granules,
// and a note beside that says of which object they are, how many can be relied
// on and what their hash is. The note makes a part fit to be resumed after a
// crash: bytes behind the noted length, or bytes that a power cut took away,
// are found out and fetched again.
//
// The file is locked while the part is open. Where somebody else has it open,
// a download goes to a file of its own, which nobody resumes.
type part struct {
	file     *os.File
	out      tempFile // file, or the failing disk of a test
	note     string   // path of the note; empty where the part is not to be resumed
	object   Object
	sha, md5 hash.Hash
	written  int64  // bytes in file
	noted    int64  // bytes that the note vouches for
	digest   string // SHA-256 that the host gave with the last bytes; empty: none
}

// tempFile is the part of os.File that a download writes through.
type tempFile interface {
	io.WriteCloser
	Sync() error
}

// partNote is the content of a note.
type partNote struct {
	Object Object `json:"object"`
	Length int64  `json:"length"` // bytes that can be relied on
	SHA256 string `json:"sha256"` // hash of those bytes
}

const (
	// tempPrefix begins the names of files that are being written.
	tempPrefix  = ".arriving-"
	partEnding  = ".part"
	noteEnding  = ".json"
	aloneEnding = ".tmp" // ending of a file that nobody resumes

	// noteEvery is the number of bytes between two notes: the most that a
	// killed process has to fetch again, beside what was in its ring.
	noteEvery = 8 << 20
)

// openPart opens the part of o in dir, with the bytes that can be relied on.
func openPart(dir string, o Object) (*part, error) {
	sum := sha256.Sum256([]byte(o.Name))
	base := filepath.Join(dir, tempPrefix+hex.EncodeToString(sum[:16]))
	file, err := openLocked(base + partEnding)
	p := &part{file: file, note: base + noteEnding, object: o, sha: sha256.New(), md5: md5.New()}
	if errors.Is(err, errInUse) {
		p.note = ""
		p.file, err = os.CreateTemp(dir, tempPrefix+"*"+aloneEnding)
		if err == nil {
			err = lockFile(p.file) // so that a sweep leaves it alone
		}
	}
	if err != nil {
		return nil, err
	}
	p.out = p.file
	if err := p.resume(); err != nil {
		p.file.Close()
		return nil, err
	}
	return p, nil
}

// resume keeps the bytes that the note vouches for and cuts off the rest.
func (p *part) resume() error {
	if n, ok := p.readNote(); ok {
		length, err := io.CopyN(io.MultiWriter(p.sha, p.md5), p.file, n.Length)
		if err == nil && hex.EncodeToString(p.sha.Sum(nil)) == n.SHA256 {
			p.written, p.noted = length, length
		}
	}
	if p.written == 0 {
		p.sha.Reset()
		p.md5.Reset()
	}
	if err := p.file.Truncate(p.written); err != nil {
		return err
	}
	_, err := p.file.Seek(p.written, io.SeekStart)
	return err
}

// readNote returns the note where there is one of this very object.
func (p *part) readNote() (partNote, bool) {
	if p.note == "" {
		return partNote{}, false
	}
	var n partNote
	text, err := os.ReadFile(p.note)
	if err != nil || json.Unmarshal(text, &n) != nil {
		return partNote{}, false
	}
	// Without a time or a tag, the same size is no sign of the same bytes.
	o := p.object
	telling := !o.ModTime.IsZero() || o.ETag != "" || o.MD5 != ""
	same := telling && n.Object.Name == o.Name && listedAlike(n.Object, o)
	return n, same && n.Length > 0 && n.Length <= o.Size
}

// append writes bytes behind those that are there.
func (p *part) append(b []byte) error {
	n, err := p.out.Write(b)
	p.written += int64(n)
	if err != nil {
		return fmt.Errorf("write to %w: %w", ErrSpool, err)
	}
	return nil
}

// sums returns the hashes of the written bytes.
func (p *part) sums() (sha, md5 string) {
	return hex.EncodeToString(p.sha.Sum(nil)), hex.EncodeToString(p.md5.Sum(nil))
}

// remember writes the note for the bytes written so far, which have the given
// SHA-256.
func (p *part) remember(sum string) error {
	if p.note == "" || p.written == p.noted {
		return nil
	}
	text, err := json.Marshal(partNote{Object: p.object, Length: p.written, SHA256: sum})
	if err != nil {
		return fmt.Errorf("encode note: %w", err)
	}
	// Renamed into place, so that a killed process leaves the old note or the
	// new one. It is not synced: the bytes are compared with it before they are
	// used.
	if err := os.WriteFile(p.note+aloneEnding, text, 0o644); err != nil {
		return fmt.Errorf("write note to %w: %w", ErrSpool, err)
	}
	if err := os.Rename(p.note+aloneEnding, p.note); err != nil {
		return fmt.Errorf("write note to %w: %w", ErrSpool, err)
	}
	// Begin writing to disk now, so that the sync at the end is short. A file
	// system that cannot do that has more to do then.
	_ = unix.SyncFileRange(int(p.file.Fd()), p.noted, p.written-p.noted, unix.SYNC_FILE_RANGE_WRITE)
	p.noted = p.written
	return nil
}

// moveTo gives the whole part its place. Afterwards it survives a power cut.
func (p *part) moveTo(path string) error {
	if err := p.out.Sync(); err != nil {
		return fmt.Errorf("sync %w: %w", ErrSpool, err)
	}
	// A second descriptor keeps the lock until the file has left its place:
	// the first is closed before, for a close may tell of lost bytes too.
	hold, err := unix.FcntlInt(p.file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("keep lock in %w: %w", ErrSpool, err)
	}
	defer unix.Close(hold)
	if err := p.out.Close(); err != nil {
		return fmt.Errorf("close in %w: %w", ErrSpool, err)
	}
	move := moveInto
	if there, err := os.Stat(path); err == nil && there.Size() == p.written {
		// Its place is named after its bytes, so they lie there already. They
		// are left alone: a worker of another dataset may be opening the file
		// just now.
		move = func(temp, _ string) error { return os.Remove(temp) }
	}
	if err := move(p.file.Name(), path); err != nil {
		return fmt.Errorf("move into %w: %w", ErrSpool, err)
	}
	if p.note != "" {
		os.Remove(p.note) // a note without its part is harmless
	}
	return nil
}

// leave closes the part for a later download to resume.
func (p *part) leave() error {
	if p.note == "" || p.written == 0 {
		return p.discard()
	}
	sum, _ := p.sums()
	return errors.Join(p.remember(sum), p.file.Close())
}

// discard removes the part, whose bytes are of no use.
func (p *part) discard() error {
	if p.note != "" {
		os.Remove(p.note)
	}
	err := os.Remove(p.file.Name())
	if closeErr := p.file.Close(); closeErr != nil && !errors.Is(closeErr, os.ErrClosed) {
		return closeErr
	}
	return err
}

// errInUse says that somebody else has the file locked.
var errInUse = errors.New("in use")

// openLocked opens or makes the file at path and locks it. The lock is the
// kernel's, so that it ends with the process.
func openLocked(path string) (*os.File, error) {
	for {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			return nil, err
		}
		if err := lockFile(file); err != nil {
			file.Close()
			return nil, err
		}
		// Between the two calls the holder before us may have renamed the file
		// into the spool: then the open file is a granule.
		if liesAt(file, path) {
			return file, nil
		}
		file.Close()
	}
}

// liesAt reports whether path still leads to the open file.
func liesAt(file *os.File, path string) bool {
	mine, err := file.Stat()
	there, thereErr := os.Stat(path)
	return err == nil && thereErr == nil && os.SameFile(mine, there)
}

func lockFile(file *os.File) error {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errInUse
	}
	return err
}

// partLife is the time that a part is kept to be resumed: longer than an outage
// over a holiday, shorter than it takes to fill a disk with forgotten parts.
const partLife = 14 * 24 * time.Hour

// stale reports whether a temporary file in the spool serves no download, under
// way or to come.
func stale(path string, entry fs.DirEntry, now time.Time) bool {
	if strings.HasSuffix(path, noteEnding) {
		_, err := os.Stat(strings.TrimSuffix(path, noteEnding) + partEnding)
		return errors.Is(err, fs.ErrNotExist)
	}
	info, err := entry.Info()
	if err != nil {
		return false // already removed
	}
	if strings.HasSuffix(path, partEnding) && now.Sub(info.ModTime()) < partLife {
		_, err := os.Stat(strings.TrimSuffix(path, partEnding) + noteEnding)
		return errors.Is(err, fs.ErrNotExist) && free(path)
	}
	return free(path)
}

// free reports whether nobody has the file locked.
func free(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	return lockFile(file) == nil
}
