package disk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"lacuna/internal/durable"
	"lacuna/publish"
)

// Sink makes products visible in the folder of a Store. It is a publish.Sink.
type Sink struct {
	store Store
	crash func(step string) // called between any two steps by tests; nil: not called
}

// NewSink returns the sink of a store.
func NewSink(store Store) *Sink { return &Sink{store: store} }

// Name implements publish.Sink.
func (s *Sink) Name() string { return "disk" }

// Publish shows a revision as the current one of its product, unless a later
// one is there.
func (s *Sink) Publish(ctx context.Context, p publish.Product) error {
	if err := p.Check(); err != nil {
		return err
	}
	if err := checkFiles(p); err != nil {
		return err
	}
	return s.change(ctx, p, &p, func(w *work) error {
		if err := w.checkOwner(p); err != nil {
			return err
		}
		if err := w.manifest.Conflict(p); err != nil {
			return err
		}
		entry := publish.EntryOf(p)
		entry.File = filepath.Base(w.visible)
		if _, err := os.Stat(p.Path + pictureEnding); err == nil {
			entry.QuickLook = filepath.Base(w.picture())
		}
		return w.show(p, entry)
	})
}

// Retract removes a revision and puts the reason into the manifest.
func (s *Sink) Retract(ctx context.Context, p publish.Product) error {
	if err := p.Check(); err != nil {
		return err
	}
	return s.change(ctx, p, nil, func(w *work) error {
		entry := publish.EntryOf(p)
		entry.File = filepath.Base(w.visible)
		next, current, err := w.manifest.Withdraw(p, entry)
		if err != nil {
			return err
		}
		if err := w.write(next); err != nil || !current {
			return err
		}
		s.step("retracted")
		if _, taken := w.manifest.Owner(entry.File); taken {
			return nil // another product has the name by now
		}
		return removeAll(w.files()...)
	})
}

// checkFiles checks that the files of p have the promised bytes.
func checkFiles(p publish.Product) error {
	if err := checkFile(p.Path, p.SHA256); err != nil || p.Members == nil {
		return err
	}
	return checkFile(p.Members.Path, p.Members.SHA256)
}

func checkFile(path, want string) error {
	sum, _, err := sumAndSync(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: its file %s is gone; fill the granule again", publish.ErrPermanent, path)
	case err != nil:
		return fmt.Errorf("read product: %w", err)
	case sum != want:
		return fmt.Errorf("%w: its file %s has sha256 %s, not %s; fill the granule again", publish.ErrPermanent, path, sum, want)
	}
	return nil
}

// work is a change to the products of one day.
type work struct {
	sink     *Sink
	visible  string // path of the product
	listed   string // path of the manifest of its day
	staging  string // folder for unfinished files
	manifest publish.Manifest
}

// change runs do on the day of p while the dataset is locked, then updates the
// link to the newest product and the catalogue. added is p where it was shown.
func (s *Sink) change(ctx context.Context, p publish.Product, added *publish.Product, do func(*work) error) (err error) {
	visible, err := s.store.Visible(p.Dataset, p.Time, p.Name)
	if err != nil {
		return fmt.Errorf("%w: %w", publish.ErrPermanent, err)
	}
	dir, dataset := filepath.Dir(visible), filepath.Join(s.store.Root, p.Dataset)
	if err := durable.MakeFolders(dir); err != nil {
		return err
	}
	unlock, err := lockFolder(dataset)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	staging, err := os.MkdirTemp(dir, stagingPattern)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(staging)) }()
	if err := ctx.Err(); err != nil {
		return err
	}
	w := &work{
		sink: s, visible: visible, staging: staging,
		listed: filepath.Join(dir, publish.ManifestName(p.Time)),
	}
	if w.manifest, err = loadManifest(w.listed); err != nil {
		return err
	}
	w.manifest.Dataset, w.manifest.Day = p.Dataset, publish.Day(p.Time)
	if err := do(w); err != nil {
		return err
	}
	s.step("changed")
	if err := s.store.linkLatest(p.Dataset, staging); err != nil {
		return err
	}
	s.step("linked latest")
	if err := w.removeFormer(p.Granule); err != nil {
		return err
	}
	s.step("removed former")
	return s.store.catalogue(p.Dataset, dir, staging, added)
}

// step lets tests crash the sink here.
func (s *Sink) step(name string) {
	if s.crash != nil {
		s.crash(name)
	}
}

// checkOwner refuses a file name that the product of another granule has.
func (w *work) checkOwner(p publish.Product) error {
	if owner, taken := w.manifest.Owner(filepath.Base(w.visible)); taken && owner == p.Granule {
		return nil
	}
	if _, err := os.Lstat(w.visible); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	manifests, err := manifestsIn(filepath.Dir(w.visible))
	if err != nil {
		return err
	}
	for _, path := range manifests {
		m, err := loadManifest(path)
		if err != nil {
			return err
		}
		if owner, taken := m.Owner(filepath.Base(w.visible)); taken && owner != p.Granule {
			return fmt.Errorf("%w: the file name %s is that of granule %s", publish.ErrPermanent, filepath.Base(w.visible), owner)
		}
	}
	return nil
}

// show puts the revision of entry in its place, then writes its side file.
func (w *work) show(p publish.Product, entry publish.Entry) error {
	next, current := w.manifest.Add(entry)
	if !current {
		return w.write(next)
	}
	if !w.holds(p) {
		if err := w.replace(p); err != nil {
			return err
		}
	}
	if err := w.showPicture(p, entry); err != nil {
		return err
	}
	if err := w.showItem(entry); err != nil {
		return err
	}
	w.sink.step("shown")
	return w.write(next)
}

// removeFormer removes the files of earlier revisions that had other names. The
// manifest lists those names, so that a crash leaves none behind.
func (w *work) removeFormer(granule string) error {
	entry, _ := w.manifest.Entry(granule)
	for _, name := range entry.Former() {
		old := work{visible: filepath.Join(filepath.Dir(w.visible), name)}
		if _, taken := w.manifest.Owner(name); taken || name != filepath.Base(name) {
			continue // it is that of another product by now
		}
		if err := removeAll(old.files()...); err != nil {
			return err
		}
	}
	return nil
}

// files returns the files of a product, in the order in which they go.
func (w *work) files() []string {
	return []string{w.item(), w.side(), w.picture(), sideOf(w.members()), w.members(), w.visible}
}

// showPicture puts the quick look beside the product. That of an earlier
// revision does not stay behind.
func (w *work) showPicture(p publish.Product, entry publish.Entry) error {
	if entry.QuickLook == "" {
		return removeAll(w.picture())
	}
	return w.link(p.Path+pictureEnding, w.picture())
}

// holds reports whether the product is in its place with its members and the
// side files of both.
func (w *work) holds(p publish.Product) bool {
	if p.Members == nil {
		_, err := os.Lstat(w.members())
		return errors.Is(err, fs.ErrNotExist) && vouched(w.visible, p.SHA256)
	}
	return vouched(w.visible, p.SHA256) && vouched(w.members(), p.Members.SHA256)
}

// vouched reports whether a file has a hash, and a side file that says so.
func vouched(path, want string) bool {
	text, err := os.ReadFile(sideOf(path))
	if err != nil || string(text) != sideText(want, path) {
		return false
	}
	sum, _, err := sumAndSync(path)
	return err == nil && sum == want
}

// replace moves a revision into its place, its members before it. Side files and
// manifest entry of the one before are removed first, and the side file of the
// product is written last: where it is, the members are too.
func (w *work) replace(p publish.Product) error {
	if there, known := w.manifest.Entry(p.Granule); known && there.Live() {
		m, _ := w.manifest.Add(there.Withdrawn())
		if err := w.write(m); err != nil {
			return err
		}
		old := work{visible: filepath.Join(filepath.Dir(w.visible), there.File)}
		if err := removeAll(old.item(), old.side(), sideOf(old.members())); err != nil {
			return err
		}
	}
	w.sink.step("withdrawn")
	if err := removeAll(w.item(), w.side(), sideOf(w.members())); err != nil {
		return err
	}
	w.sink.step("unvouched")
	if err := w.replaceMembers(p.Members); err != nil {
		return err
	}
	w.sink.step("members linked")
	if err := w.link(p.Path, w.visible); err != nil {
		return err
	}
	w.sink.step("linked")
	return writeFile(w.staging, w.side(), []byte(sideText(p.SHA256, w.visible)))
}

// replaceMembers puts the members of a revision beside it. Those of an earlier
// one do not stay behind.
func (w *work) replaceMembers(m *publish.Members) error {
	if m == nil {
		return removeAll(w.members())
	}
	if err := w.link(m.Path, w.members()); err != nil {
		return err
	}
	return writeFile(w.staging, sideOf(w.members()), []byte(sideText(m.SHA256, w.members())))
}

// link gives a file its visible name, in place of the present holder.
func (w *work) link(from, to string) error {
	staged := filepath.Join(w.staging, filepath.Base(to))
	if err := linkOrCopy(from, staged); err != nil {
		return err
	}
	if err := os.Rename(staged, to); err != nil {
		return err
	}
	// Renaming a link onto another to the same file does nothing and leaves
	// the first behind; staging is removed with it.
	return durable.Sync(filepath.Dir(to))
}

// write writes the manifest of the day if it changed.
func (w *work) write(m publish.Manifest) error {
	text, err := m.Encode()
	if err != nil {
		return err
	}
	w.manifest = m
	return writeChanged(w.staging, w.listed, text)
}

func (w *work) side() string    { return sideOf(w.visible) }
func (w *work) members() string { return publish.MembersName(w.visible) }
func (w *work) picture() string { return strings.TrimSuffix(w.visible, ".nc") + pictureEnding }

// sideOf returns the side file of a file.
func sideOf(path string) string { return path + ".sha256" }

// sideText is a line as sha256sum writes it.
func sideText(sum, path string) string { return sum + "  " + filepath.Base(path) + "\n" }
