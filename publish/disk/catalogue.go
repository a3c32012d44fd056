package disk

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"lacuna/publish"
	"lacuna/publish/stac"
)

// showItem writes the item of the product, as the side files are written: after
// it, and taken away before it is replaced.
func (w *work) showItem(entry publish.Entry) error {
	text, err := stac.Item(w.manifest.Dataset, entry)
	if err != nil {
		return err
	}
	return writeChanged(w.staging, w.item(), text)
}

func (w *work) item() string { return stac.ItemName(w.visible) }

// catalogue brings the catalogue up to date after the products of a folder have
// changed: that of the folder, of the dataset and of the store.
func (s Store) catalogue(dataset, folder, staging string, added *publish.Product) error {
	items, err := itemsIn(folder)
	if err != nil {
		return err
	}
	name, err := filepath.Rel(filepath.Join(s.Root, dataset), folder)
	if err != nil {
		return err
	}
	name = filepath.ToSlash(name)
	text, err := stac.Folder(dataset, name, items)
	if err != nil {
		return err
	}
	if len(items) == 0 {
		err = removeAll(filepath.Join(folder, stac.CatalogName))
	} else {
		err = writeChanged(staging, filepath.Join(folder, stac.CatalogName), text)
	}
	if err != nil {
		return err
	}
	if err := s.describe(dataset, name, staging, added); err != nil {
		return err
	}
	return s.listDatasets(staging)
}

// describe writes the collection of a dataset. With a product that was added to a
// folder the present one is extended; else it is made anew from the manifests.
func (s Store) describe(dataset, folder, staging string, added *publish.Product) error {
	path := filepath.Join(s.Root, dataset, stac.CollectionName)
	there, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	c := stac.ParseCollection(dataset, there)
	if added != nil && len(c.Folders) > 0 {
		c = c.Add(folder, added.Time, added.BBox)
	} else if c, err = s.collection(dataset); err != nil {
		return err
	}
	if len(c.Folders) == 0 {
		return removeAll(path)
	}
	text, err := c.Encode()
	if err != nil {
		return err
	}
	return writeChanged(staging, path, text)
}

// collection describes a dataset from the manifests of the folders that have a
// catalogue.
func (s Store) collection(dataset string) (stac.Collection, error) {
	c := stac.Collection{Dataset: dataset}
	root := filepath.Join(s.Root, dataset)
	for folder, err := range backward(root) {
		if err != nil {
			return c, err
		}
		if _, err := os.Stat(filepath.Join(folder, stac.CatalogName)); err != nil {
			continue
		}
		manifests, err := manifestsIn(folder)
		if err != nil {
			return c, err
		}
		for _, path := range manifests {
			m, err := loadManifest(path)
			if err != nil {
				return c, err
			}
			for _, e := range m.Products {
				if e.Live() {
					c = c.Add(filepath.ToSlash(relative(root, folder)), e.Time, e.BBox)
				}
			}
		}
	}
	return c, nil
}

// listDatasets writes the root of the catalogue.
func (s Store) listDatasets(staging string) error {
	entries, err := os.ReadDir(s.Root)
	if err != nil {
		return err
	}
	var names []string
	for _, e := range entries {
		if _, err := os.Stat(filepath.Join(s.Root, e.Name(), stac.CollectionName)); err == nil {
			names = append(names, e.Name())
		}
	}
	if len(names) == 0 {
		return removeAll(filepath.Join(s.Root, stac.CatalogName))
	}
	text, err := stac.Root(names)
	if err != nil {
		return err
	}
	return writeChanged(staging, filepath.Join(s.Root, stac.CatalogName), text)
}

// itemsIn returns the names of the items of a folder.
func itemsIn(folder string) (names []string, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.Type().IsRegular() && stac.IsItem(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// writeChanged is writeFile where the file has another content.
func writeChanged(staging, path string, content []byte) error {
	if there, err := os.ReadFile(path); err == nil && bytes.Equal(there, content) {
		return nil
	}
	return writeFile(staging, path, content)
}
