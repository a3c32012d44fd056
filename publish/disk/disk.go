// Package disk keeps products in a folder.
//
// A Store keeps the bytes of every revision of a product in a file of its own,
// out of sight, that never changes once it was promised: later deliveries to
// other sinks read the promised bytes there. A Sink makes revisions visible:
//
//	<root>/<dataset>/<YYYY>/<MM>/<name>.nc          the current revision; Folders may have it otherwise
//	                            /<name>.nc.sha256   as sha256sum --check reads it
//	                            /<name>.png         a quick look
//	                            /<name>_members.nc  its members, with a side file of their own
//	                            /<YYYYMMDD>.manifest.json
//	                            /<name>.json        its item of a STAC catalogue, with catalog.json and collection.json above
//	                /latest                         a link to the newest product
//	                /latest_members                 a link to its members
//	                /.revisions/<YYYY>/<MM>/...     every revision, hard links to the above
//
// A product appears whole or not at all. Where there is a side file or a
// manifest entry it tells the truth, also after a crash: both are taken away
// before a product is replaced and written after, those of a product after those
// of its members. Repeating a step changes nothing, or repairs the damage of a
// crash or of a person.
//
// Package disk knows nothing of NetCDF: it hands out a path and another writes
// the file. Nor does it know which deliveries are due; the caller that removes
// old products says which must stay.
package disk

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"lacuna/internal/durable"
	"lacuna/publish"
)

const (
	folderMode = 0o755
	fileMode   = 0o644

	// nameBytesMax leaves room for endings (.nc.sha256, or the number of a
	// revision) in the 255 bytes that file systems give a name.
	nameBytesMax = 220
)

// Store is a folder of products. Its methods may be called from many
// goroutines and processes, also for the same product: of revisions that were
// not promised the last one wins.
type Store struct {
	Root    string
	Folders publish.Folders // of the products below those of their datasets
	// FloorBytes of the disk stay free: below, Put refuses.
	FloorBytes int64
	// Free returns the free bytes of the disk that a folder is on; nil asks
	// the system.
	Free func(folder string) (int64, error)
	// Mark refuses a folder whose marker was there and is gone; nil refuses none.
	Mark *publish.Mark
	// Hashed is told of the files that Put has hashed; nil: nobody is.
	Hashed *publish.Hashed
	// Hold keeps other daemons out, from Lock on; nil: as long as Lock says.
	Hold *Hold
}

// Item is a revision of a product that is to be stored.
type Item struct {
	Dataset  string
	Granule  string
	Name     string    // name of the visible file; .nc is added where it lacks
	Time     time.Time // time of the first field
	Revision int
}

// Stored is a revision in the store.
type Stored struct {
	Path    string // path of the revision's own file
	Visible string // path where a Sink on the same root shows it while it is current
	SHA256  string // hex, of the file's bytes
	Bytes   int64
	New     bool // false if the same bytes were there already
}

// Put stores the file that write writes to its path. A picture that write
// leaves at that path with .png added goes with it, and members that it leaves at
// MembersPath. If write or ctx fails nothing is changed; with too little room
// left the error wraps ErrFull.
//
// A revision that was promised, which is one that was sealed or that a manifest
// lists, keeps its bytes: others under its number are refused with a
// *publish.Conflict. One that was not promised was left by a crash before
// anybody was told, and is replaced: the granule may have other neighbours by
// now.
func (s Store) Put(ctx context.Context, item Item, write func(path string) error) (Stored, error) {
	visible, err := s.Visible(item.Dataset, item.Time, item.Name)
	if err != nil {
		return Stored{}, err
	}
	_, err = s.Owner(ctx)
	if errors.Is(err, publish.ErrAway) || errors.Is(err, ErrLocked) {
		return Stored{}, fmt.Errorf("store %s: %w", visible, err)
	}
	if err := s.checkRoom(0); err != nil {
		return Stored{}, fmt.Errorf("store %s: %w", visible, err)
	}
	stored, err := s.put(ctx, item, write)
	if err != nil {
		return Stored{}, fmt.Errorf("store %s: %w", visible, err)
	}
	stored.Visible = visible
	return stored, nil
}

// Visible returns where a Sink shows a product, and refuses names that could
// lead out of the store.
func (s Store) Visible(dataset string, t time.Time, name string) (string, error) {
	if err := checkName(dataset); err != nil {
		return "", fmt.Errorf("dataset: %w", err)
	}
	if err := checkName(name); err != nil {
		return "", fmt.Errorf("product: %w", err)
	}
	return filepath.Join(s.Root, filepath.FromSlash(s.Folders.Folder(dataset, t)), fileName(name)), nil
}

func fileName(name string) string {
	if strings.HasSuffix(name, ".nc") {
		return name
	}
	return name + ".nc"
}

// revisionsFolder is hidden, so that a listing of a dataset shows each product
// once.
const revisionsFolder = ".revisions"

// RevisionFile returns where the bytes of a revision lie, if it was stored.
func (s Store) RevisionFile(item Item) string { return s.revisionPath(item) }

// revisionPath returns the file of one revision. Granules of one name in two
// folders of an archive are told apart by the start of a hash. Nobody looks here,
// so that the folders are those of the default whatever the visible ones are.
func (s Store) revisionPath(item Item) string {
	sum := sha256.Sum256([]byte(item.Granule))
	folder := strings.TrimPrefix(publish.DefaultFolders.Folder(item.Dataset, item.Time), item.Dataset)
	name := fmt.Sprintf("%s_r%d_%s", strings.TrimSuffix(item.Name, ".nc"), item.Revision, hex.EncodeToString(sum[:4]))
	return filepath.Join(s.Root, item.Dataset, revisionsFolder, filepath.FromSlash(folder), name)
}

func checkName(name string) error {
	bad := func(r rune) bool { return unicode.IsControl(r) || strings.ContainsRune(`/\`, r) }
	switch {
	case name == "" || strings.HasPrefix(name, "."):
		return fmt.Errorf("name %q is empty or starts with a dot", name)
	case len(name) > nameBytesMax:
		return fmt.Errorf("name of %d bytes is longer than %d", len(name), nameBytesMax)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, bad):
		return fmt.Errorf("name %q has a separator or a control character", name)
	}
	return nil
}

// stagingPattern names the folders that unfinished work lies in; Sweep removes
// them.
const stagingPattern = ".put-*"

// Staging makes a folder for files of products of a dataset that are not stored yet. They
// can be renamed to where Put has them written. Sweep removes it, or whoever made it.
func (s Store) Staging(dataset string) (string, error) {
	dir := filepath.Join(s.Root, dataset)
	if err := durable.MakeFolders(dir); err != nil {
		return "", err
	}
	return os.MkdirTemp(dir, stagingPattern)
}

// put writes into a folder of its own beside path, so that unfinished files are
// out of sight and go with the folder.
func (s Store) put(ctx context.Context, item Item, write func(path string) error) (stored Stored, err error) {
	path := s.revisionPath(item)
	dir := filepath.Dir(path)
	if err := durable.MakeFolders(dir); err != nil {
		return Stored{}, err
	}
	staging, err := os.MkdirTemp(dir, stagingPattern)
	if err != nil {
		return Stored{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(staging)) }()
	staged := filepath.Join(staging, filepath.Base(path))
	if err := write(staged); err != nil {
		return Stored{}, err
	}
	stored.Path = path
	if stored.SHA256, stored.Bytes, err = sumAndSync(staged); err != nil {
		return Stored{}, err
	}
	if err := errors.Join(s.checkRoom(stored.Bytes), ctx.Err()); err != nil {
		return Stored{}, err
	}
	unlock, err := lockFolder(dir)
	if err != nil {
		return Stored{}, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	there, _, err := sumAndSync(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return Stored{}, err
	}
	if err := s.checkPromised(item, there, stored.SHA256); err != nil {
		return Stored{}, err
	}
	if err := errors.Join(moveIfThere(staged+pictureEnding, path+pictureEnding), s.moveMembers(MembersPath(staged), MembersPath(path))); err != nil {
		return Stored{}, err
	}
	defer func() {
		if err == nil {
			s.Hashed.Note(path, stored.SHA256)
		}
	}()
	if there == stored.SHA256 {
		return stored, durable.Sync(dir)
	}
	stored.New = true
	if err := os.Rename(staged, path); err != nil {
		return Stored{}, err
	}
	return stored, durable.Sync(dir)
}

// pictureEnding is the ending of the name of a quick look.
const pictureEnding = ".png"

// MembersPath returns where the members of the revision in a file lie.
func MembersPath(revision string) string { return revision + ".members" }

// moveMembers moves the members of a revision into their place, before the
// product that names them. Those of an earlier attempt do not stay behind; the
// same ones stay, for they may be sealed.
func (s Store) moveMembers(from, to string) error {
	next, _, err := sumAndSync(from)
	if errors.Is(err, os.ErrNotExist) {
		return removeAll(to)
	}
	if err != nil {
		return err
	}
	if there, _, err := sumAndSync(to); err != nil || there != next {
		if err := os.Rename(from, to); err != nil {
			return err
		}
	}
	s.Hashed.Note(to, next)
	return nil
}

// moveIfThere moves a file that may not exist.
func moveIfThere(from, to string) error {
	if _, _, err := sumAndSync(from); errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	return os.Rename(from, to)
}
