package push

import (
	"fmt"
	"path"
	"strings"

	"lacuna/publish"
)

// day holds the paths of a product and the manifest of its day.
type day struct {
	transfer
	root     string
	folder   string
	product  string // path
	listed   string // path of the manifest
	manifest publish.Manifest
}

func (s *Sink) open(t transfer, p publish.Product) (*day, error) {
	if err := p.CheckNames(); err != nil {
		return nil, err
	}
	folder := path.Join(s.cfg.Root, s.folders.Folder(p.Dataset, p.Time))
	d := &day{transfer: t, root: s.cfg.Root, folder: folder, product: path.Join(folder, p.Name), listed: path.Join(folder, publish.ManifestName(p.Time))}
	text, err := t.get(d.listed)
	if err != nil {
		return nil, err
	}
	if text != nil {
		if d.manifest, err = publish.ParseManifest(text); err != nil {
			return nil, fmt.Errorf("%s: %w; remove it and replay the day", d.listed, err)
		}
	}
	d.manifest.Dataset, d.manifest.Day = p.Dataset, publish.Day(p.Time)
	return d, nil
}

// checkOwner refuses a file name that the product of another granule has.
func (d *day) checkOwner(p publish.Product) error {
	if owner, taken := d.manifest.Owner(p.Name); taken && owner != p.Granule {
		return fmt.Errorf("%w: the file name %s is that of granule %s", publish.ErrPermanent, p.Name, owner)
	}
	return nil
}

// publish shows p, which has the promised bytes.
func (d *day) publish(p publish.Product) error {
	if err := d.checkOwner(p); err != nil {
		return err
	}
	if err := d.manifest.Conflict(p); err != nil {
		return err
	}
	next, current := d.manifest.Add(publish.EntryOf(p))
	if err := d.makeFolders(d.root, d.folder); err != nil {
		return err
	}
	if !current {
		if err := d.list(next); err != nil {
			return err
		}
		return d.removeFormer(p.Granule)
	}
	files := d.files(p)
	held, err := d.vouched(files)
	if err != nil {
		return err
	}
	if !held {
		if err := d.show(p, files); err != nil {
			return err
		}
	}
	if err := d.list(next); err != nil {
		return err
	}
	if err := d.removeFormer(p.Granule); err != nil {
		return err
	}
	return d.sweep()
}

// named returns the paths of a product of the same day under another name.
func (d *day) named(name string) *day { return &day{product: path.Join(d.folder, path.Base(name))} }

// removeFormer removes the files of earlier revisions that had other names. The
// manifest lists those names, so that a cut line leaves none behind.
func (d *day) removeFormer(granule string) error {
	entry, _ := d.manifest.Entry(granule)
	for _, name := range entry.Former() {
		if _, taken := d.manifest.Owner(name); taken {
			continue // it is that of another product by now
		}
		if err := d.remove(d.named(name).all()...); err != nil {
			return err
		}
	}
	return nil
}

// all returns the files of a product, in the order in which they go.
func (d *day) all() []string {
	return []string{publish.SideName(d.product), publish.SideName(d.members()), d.members(), d.product}
}

// files are the files of p, that of the product last.
func (d *day) files(p publish.Product) []file {
	var all []file
	if m := p.Members; m != nil {
		all = append(all, localFile(d.members(), m.Path, m.Size, m.SHA256))
	}
	return append(all, localFile(d.product, p.Path, p.Size, p.SHA256))
}

// vouched reports whether files are there, with side files that say so, which are
// written after them.
func (d *day) vouched(files []file) (bool, error) {
	for _, f := range files {
		text, err := d.get(publish.SideName(f.name))
		if err != nil || string(text) != publish.SideText(f.name, f.sum) {
			return false, err
		}
		if size, err := d.server.size(f.name); err != nil || size != f.size {
			return false, nil //nolint:nilerr // it is sent again, which reports what is wrong
		}
	}
	return true, nil
}

// show sends files, takes the present revision out of use and shows the new one.
// The long part comes first, so that receivers are without for a moment only.
func (d *day) show(p publish.Product, files []file) error {
	there := make([]bool, len(files))
	for i, f := range files {
		var err error
		if there[i], err = d.stage(f); err != nil {
			return err
		}
	}
	if err := d.withdraw(p.Granule); err != nil {
		return err
	}
	if p.Members == nil { // those of an earlier revision do not stay behind
		if err := d.server.remove(d.members()); err != nil {
			return fmt.Errorf("remove %s: %w", d.members(), err)
		}
	}
	for i, f := range files {
		if !there[i] {
			if err := d.reveal(f); err != nil {
				return err
			}
		}
		if err := d.put(textFile(publish.SideName(f.name), []byte(publish.SideText(f.name, f.sum)))); err != nil {
			return err
		}
	}
	return nil
}

// withdraw removes the side files and the manifest entry of the present revision.
func (d *day) withdraw(granule string) error {
	if there, known := d.manifest.Entry(granule); known && there.Live() {
		m, _ := d.manifest.Add(there.Withdrawn())
		if err := d.list(m); err != nil {
			return err
		}
		if old := d.named(there.File); old.product != d.product {
			if err := d.remove(publish.SideName(old.product), publish.SideName(old.members())); err != nil {
				return err
			}
		}
	}
	return d.remove(publish.SideName(d.product), publish.SideName(d.members()))
}

// retract takes p out of use.
func (d *day) retract(p publish.Product) error {
	next, current, err := d.manifest.Withdraw(p, publish.EntryOf(p))
	if err != nil {
		return err
	}
	if err := d.makeFolders(d.root, d.folder); err != nil {
		return err
	}
	if err := d.list(next); err != nil || !current {
		return err
	}
	if _, taken := next.Owner(p.Name); !taken { // else another product has the name by now
		if err := d.remove(d.all()...); err != nil {
			return err
		}
	}
	if err := d.removeFormer(p.Granule); err != nil {
		return err
	}
	return d.sweep()
}

func (d *day) remove(names ...string) error {
	for _, name := range names {
		if err := d.server.remove(name); err != nil {
			return fmt.Errorf("remove %s: %w", name, err)
		}
	}
	return nil
}

// list writes the manifest of the day.
func (d *day) list(m publish.Manifest) error {
	text, err := m.Encode()
	if err != nil {
		return err
	}
	if err := d.put(textFile(d.listed, text)); err != nil {
		return err
	}
	d.manifest = m
	return nil
}

// sweep removes what is left of uploads of other revisions.
func (d *day) sweep() error {
	entries, err := d.server.list(d.folder)
	if err != nil {
		return fmt.Errorf("list %s: %w", d.folder, err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.name, partEnding) {
			continue
		}
		for _, name := range []string{d.product, d.members(), d.listed} {
			if strings.HasPrefix(e.name, path.Base(name)+".") {
				if err := d.remove(path.Join(d.folder, e.name)); err != nil {
					return err
				}
				break
			}
		}
	}
	return nil
}

func (d *day) members() string { return publish.MembersName(d.product) }
