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
	if err := checkName(p); err != nil {
		return nil, err
	}
	folder := path.Join(s.cfg.Prefix, publish.Folder(p.Dataset, p.Time))
	d := &day{sink: s, folder: folder, product: path.Join(folder, p.Name), listed: path.Join(folder, publish.ManifestName(p.Time))}
	var err error
	if d.manifest, err = s.manifest(ctx, d.listed); err != nil {
		return nil, err
	}
	d.manifest.Dataset, d.manifest.Day = p.Dataset, publish.Day(p.Time)
	if owner, taken := d.manifest.Owner(p.Name); taken && owner != p.Granule {
		return nil, fmt.Errorf("%w: the file name %s is that of granule %s", publish.ErrPermanent, p.Name, owner)
	}
	return d, nil
}

// checkName refuses names that would be other keys.
func checkName(p publish.Product) error {
	for _, name := range []string{p.Dataset, p.Name} {
		if name != path.Base(name) || strings.HasPrefix(name, ".") {
			return fmt.Errorf("%w: %q cannot be part of a key", publish.ErrPermanent, name)
		}
	}
	return nil
}

// show uploads the product of entry with its picture and side object, unless it
// is there.
func (d *day) show(ctx context.Context, p publish.Product, entry publish.Entry) error {
	side := p.SHA256 + "  " + p.Name + "\n"
	there, err := d.holds(ctx, p, side)
	if err != nil || there {
		return err
	}
	if err := d.withdraw(ctx, p.Granule); err != nil {
		return err
	}
	if err := d.upload(ctx, d.product, p.Path, minio.PutObjectOptions{
		ContentType: "application/netcdf", UserMetadata: map[string]string{"sha256": p.SHA256},
	}); err != nil {
		return err
	}
	if err := d.showPicture(ctx, p, entry); err != nil {
		return err
	}
	return d.sink.put(ctx, d.side(), []byte(side), "text/plain")
}

// showPicture puts the quick look beside the product. That of an earlier
// revision does not stay behind.
func (d *day) showPicture(ctx context.Context, p publish.Product, entry publish.Entry) error {
	if entry.QuickLook == "" {
		return d.sink.remove(ctx, d.picture())
	}
	return d.upload(ctx, d.picture(), p.Path+".png", minio.PutObjectOptions{ContentType: "image/png"})
}

// holds reports whether the product is there. The side object is the last that
// was written, so that with it the rest is there too.
func (d *day) holds(ctx context.Context, p publish.Product, side string) (bool, error) {
	text, err := d.sink.get(ctx, d.side())
	if err != nil || string(text) != side {
		return false, err
	}
	info, err := d.sink.client.StatObject(ctx, d.sink.cfg.Bucket, d.product, minio.StatObjectOptions{})
	if absent(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at %s: %w", d.product, err)
	}
	return info.Size == p.Size && info.UserMetadata["Sha256"] == p.SHA256, nil
}

// withdraw removes the side object and the manifest entry of the present
// revision.
func (d *day) withdraw(ctx context.Context, granule string) error {
	if there, known := d.manifest.Entry(granule); known && there.Live() {
		there.Absent, there.QuickLook = true, ""
		m, _ := d.manifest.Add(there)
		if err := d.write(ctx, m); err != nil {
			return err
		}
	}
	return d.sink.remove(ctx, d.side())
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

func (d *day) side() string    { return d.product + ".sha256" }
func (d *day) picture() string { return strings.TrimSuffix(d.product, ".nc") + ".png" }
