package s3

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/minio/minio-go/v7"

	"lacuna/publish"
	"lacuna/publish/stac"
)

const (
	itemKind = "application/geo+json"
	jsonKind = "application/json"
)

func (d *day) item() string { return stac.ItemName(d.product) }

// showItem puts the item beside the product.
func (d *day) showItem(ctx context.Context, entry publish.Entry) error {
	text, err := stac.Item(d.manifest.Dataset, entry)
	if err != nil {
		return err
	}
	return d.sink.replace(ctx, d.item(), text, itemKind)
}

// catalogue brings the catalogue up to date after p was shown, or taken away: that
// of its folder, of its dataset and of the prefix.
func (d *day) catalogue(ctx context.Context, p publish.Product, shown bool) error {
	s, root := d.sink, path.Join(d.sink.cfg.Prefix, p.Dataset)
	items, err := s.itemsIn(ctx, d.folder)
	if err != nil {
		return err
	}
	folder := strings.TrimPrefix(d.folder, root+"/")
	text, err := stac.Folder(p.Dataset, folder, items)
	if err != nil {
		return err
	}
	if len(items) == 0 {
		text = nil
	}
	if err := s.replace(ctx, path.Join(d.folder, stac.CatalogName), text, jsonKind); err != nil {
		return err
	}
	there, err := s.get(ctx, path.Join(root, stac.CollectionName))
	if err != nil {
		return err
	}
	c := stac.ParseCollection(p.Dataset, there)
	if shown {
		c = c.Add(folder, p.Time, p.BBox)
	} else if c, err = s.collection(ctx, p.Dataset); err != nil {
		return err
	}
	if text, err = c.Encode(); err != nil {
		return err
	}
	if len(c.Folders) == 0 {
		return s.remove(ctx, path.Join(root, stac.CollectionName))
	}
	if err := s.replace(ctx, path.Join(root, stac.CollectionName), text, jsonKind); err != nil {
		return err
	}
	if there, err = s.get(ctx, path.Join(s.cfg.Prefix, stac.CatalogName)); err != nil {
		return err
	}
	if text, err = stac.WithDataset(there, p.Dataset); err != nil {
		return err
	}
	return s.replace(ctx, path.Join(s.cfg.Prefix, stac.CatalogName), text, jsonKind)
}

// replace writes a text where the object has another; nil removes it.
func (s *Sink) replace(ctx context.Context, key string, text []byte, kind string) error {
	if text == nil {
		return s.remove(ctx, key)
	}
	there, err := s.get(ctx, key)
	if err != nil || bytes.Equal(there, text) {
		return err
	}
	return s.put(ctx, key, text, kind)
}

// itemsIn returns the names of the items of a folder.
func (s *Sink) itemsIn(ctx context.Context, folder string) (names []string, err error) {
	for o := range s.client.ListObjects(ctx, s.cfg.Bucket, minio.ListObjectsOptions{Prefix: folder + "/", Recursive: true}) {
		if o.Err != nil {
			return nil, fmt.Errorf("list %s: %w", folder, o.Err)
		}
		if name := path.Base(o.Key); stac.IsItem(name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// collection describes a dataset from its manifests, after a product was taken
// away.
func (s *Sink) collection(ctx context.Context, dataset string) (stac.Collection, error) {
	c := stac.Collection{Dataset: dataset}
	prefix := path.Join(s.cfg.Prefix, dataset) + "/"
	for o := range s.client.ListObjects(ctx, s.cfg.Bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
		if o.Err != nil {
			return c, fmt.Errorf("list %s: %w", dataset, o.Err)
		}
		if !publish.IsManifest(o.Key) {
			continue
		}
		m, err := s.manifest(ctx, o.Key)
		if err != nil {
			return c, err
		}
		for _, e := range m.Products {
			if e.Live() {
				c = c.Add(strings.TrimPrefix(path.Dir(o.Key), strings.TrimSuffix(prefix, "/")+"/"), e.Time, e.BBox)
			}
		}
	}
	return c, nil
}
