package s3

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/minio/minio-go/v7"

	"lacuna/publish"
)

// day holds the keys of a product and the manifest of its day.
type day struct {
	sink     *Sink
	folder   string // key, without a slash at the end
	product  string // key
	listed   string // key of the manifest
	manifest publish.Manifest
}

func (s *Sink) open(ctx context.Context, p publish.Product) (*day, error) {
	if err := p.CheckNames(); err != nil {
		return nil, err
	}
	folder := path.Join(s.cfg.Prefix, s.folders.Folder(p.Dataset, p.Time))
	d := &day{sink: s, folder: folder, product: path.Join(folder, p.Name), listed: path.Join(folder, publish.ManifestName(p.Time))}
	var err error
	if d.manifest, err = s.manifest(ctx, d.listed); err != nil {
		return nil, err
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

// show uploads the product of entry with its members, its picture and the side
// objects, unless they are there.
func (d *day) show(ctx context.Context, p publish.Product, entry publish.Entry) error {
	there, err := d.holds(ctx, p)
	if err != nil {
		return err
	}
	if there {
		return d.showItem(ctx, entry) // products of earlier versions have none
	}
	if err := d.withdraw(ctx, p.Granule); err != nil {
		return err
	}
	if err := d.showMembers(ctx, p.Members); err != nil {
		return err
	}
	if err := d.uploadNetCDF(ctx, d.product, p.Path, p.SHA256); err != nil {
		return err
	}
	if err := d.showPicture(ctx, p, entry); err != nil {
		return err
	}
	if err := d.showItem(ctx, entry); err != nil {
		return err
	}
	return d.vouch(ctx, d.product, p.SHA256)
}

// showMembers puts the members beside the product. Those of an earlier revision
// do not stay behind.
func (d *day) showMembers(ctx context.Context, m *publish.Members) error {
	if m == nil {
		return d.sink.remove(ctx, d.members())
	}
	if err := d.uploadNetCDF(ctx, d.members(), m.Path, m.SHA256); err != nil {
		return err
	}
	return d.vouch(ctx, d.members(), m.SHA256)
}

func (d *day) uploadNetCDF(ctx context.Context, key, file, sum string) error {
	return d.upload(ctx, key, file, minio.PutObjectOptions{
		ContentType: "application/netcdf", UserMetadata: map[string]string{"sha256": sum},
	})
}

// vouch writes the side object of an object.
func (d *day) vouch(ctx context.Context, key, sum string) error {
	return d.sink.put(ctx, publish.SideName(key), []byte(publish.SideText(key, sum)), "text/plain")
}

// showPicture puts the quick look beside the product. That of an earlier
// revision does not stay behind.
func (d *day) showPicture(ctx context.Context, p publish.Product, entry publish.Entry) error {
	if entry.QuickLook == "" {
		return d.sink.remove(ctx, d.picture())
	}
	return d.upload(ctx, d.picture(), p.Path+".png", minio.PutObjectOptions{ContentType: "image/png"})
}

// holds reports whether the product is there with its members. Its side object
// is the last that was written, so that with it the rest is there too.
func (d *day) holds(ctx context.Context, p publish.Product) (bool, error) {
	there, err := d.vouched(ctx, d.product, p.Size, p.SHA256)
	if err != nil || !there || p.Members == nil {
		return there, err
	}
	return d.vouched(ctx, d.members(), p.Members.Size, p.Members.SHA256)
}

// vouched reports whether an object has a hash, and a side object that says so.
func (d *day) vouched(ctx context.Context, key string, size int64, sum string) (bool, error) {
	text, err := d.sink.get(ctx, publish.SideName(key))
	if err != nil || string(text) != publish.SideText(key, sum) {
		return false, err
	}
	info, err := d.sink.client.StatObject(ctx, d.sink.cfg.Bucket, key, minio.StatObjectOptions{})
	if absent(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at %s: %w", key, err)
	}
	return info.Size == size && info.UserMetadata["Sha256"] == sum, nil
}

// withdraw removes the side objects and the manifest entry of the present
// revision.
func (d *day) withdraw(ctx context.Context, granule string) error {
	if there, known := d.manifest.Entry(granule); known && there.Live() {
		m, _ := d.manifest.Add(there.Withdrawn())
		if err := d.write(ctx, m); err != nil {
			return err
		}
		if old := d.named(there.File); old.product != d.product {
			if err := d.sink.removeAll(ctx, old.item(), publish.SideName(old.product), publish.SideName(old.members())); err != nil {
				return err
			}
		}
	}
	return d.sink.removeAll(ctx, d.item(), publish.SideName(d.product), publish.SideName(d.members()))
}

// named returns the keys of a product of the same day under another name.
func (d *day) named(file string) *day {
	return &day{sink: d.sink, folder: d.folder, product: path.Join(d.folder, path.Base(file))}
}

// removeFormer removes the objects of earlier revisions that had other names. The
// manifest lists those names, so that a crash leaves none behind.
func (d *day) removeFormer(ctx context.Context, granule string) error {
	entry, _ := d.manifest.Entry(granule)
	for _, name := range entry.Former() {
		if _, taken := d.manifest.Owner(name); taken {
			continue // it is that of another product by now
		}
		if err := d.sink.removeAll(ctx, d.named(name).keys()...); err != nil {
			return err
		}
	}
	return nil
}

// keys returns the keys of a product, in the order in which they go.
func (d *day) keys() []string {
	return []string{d.item(), publish.SideName(d.product), d.picture(), publish.SideName(d.members()), d.members(), d.product}
}

func (d *day) upload(ctx context.Context, key, file string, options minio.PutObjectOptions) error {
	options.SendContentMd5 = true // the host checks the bytes
	if _, err := d.sink.client.FPutObject(ctx, d.sink.cfg.Bucket, key, file, options); err != nil {
		return fmt.Errorf("upload %s: %w", key, err)
	}
	return nil
}

// write writes the manifest of the day if it changed.
func (d *day) write(ctx context.Context, m publish.Manifest) error {
	text, err := m.Encode()
	if err != nil {
		return err
	}
	if before, err := d.manifest.Encode(); err == nil && string(before) == string(text) {
		return nil
	}
	if err := d.sink.put(ctx, d.listed, text, "application/json"); err != nil {
		return err
	}
	d.manifest = m
	return nil
}

func (d *day) members() string { return publish.MembersName(d.product) }
func (d *day) picture() string { return strings.TrimSuffix(d.product, ".nc") + ".png" }
