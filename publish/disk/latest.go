package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"lacuna/internal/durable"
	"lacuna/publish"
)

// The links of a dataset to its newest product, and to the members of that.
const (
	latestName        = "latest"
	latestMembersName = "latest_members"
)

// linkLatest points the links of a dataset at its newest product and its
// members, or removes them where there are none.
func (s Store) linkLatest(dataset, staging string) error {
	folder := filepath.Join(s.Root, dataset)
	newest, members, err := newestIn(folder)
	if err != nil {
		return err
	}
	// The link to the members goes before that to the product moves, so that
	// the two never lead to different days.
	if there, err := os.Readlink(filepath.Join(folder, latestMembersName)); err == nil && there != relative(folder, members) {
		if err := removeAll(filepath.Join(folder, latestMembersName)); err != nil {
			return err
		}
	}
	if err := linkTo(folder, latestName, newest, staging); err != nil {
		return err
	}
	return linkTo(folder, latestMembersName, members, staging)
}

// relative returns the way from a folder to a file below it.
func relative(folder, file string) string {
	way, err := filepath.Rel(folder, file)
	if err != nil {
		return ""
	}
	return way
}

// linkTo points a link in a folder at a file below it; without a file it removes
// the link.
func linkTo(folder, name, file, staging string) error {
	link := filepath.Join(folder, name)
	if file == "" {
		return removeAll(link)
	}
	target := relative(folder, file)
	if there, err := os.Readlink(link); err == nil && there == target {
		return nil
	}
	staged := filepath.Join(staging, name)
	if err := os.Symlink(target, staged); err != nil {
		return err
	}
	if err := os.Rename(staged, link); err != nil {
		return err
	}
	return durable.Sync(folder)
}

// newestIn returns the live product of a dataset with the latest time and its
// members, or nothing. It looks from the latest folder back, so that it reads one
// manifest as a rule.
func newestIn(dataset string) (product, members string, err error) {
	for folder, err := range backward(dataset) {
		if err != nil {
			return "", "", err
		}
		manifests, err := manifestsIn(folder)
		if err != nil {
			return "", "", err
		}
		for _, path := range slices.Backward(manifests) {
			m, err := loadManifest(path)
			if err != nil {
				return "", "", err
			}
			if e, ok := m.Newest(); ok {
				if e.Members != nil {
					members = filepath.Join(folder, e.Members.File)
				}
				return filepath.Join(folder, e.File), members, nil
			}
		}
	}
	return "", "", nil
}

// backward goes through the folders of products below that of a dataset, latest
// first, whatever template they have: their names begin with digits, and sort as
// their times do. One that has others in it comes after them.
func backward(dir string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) { walkBackward(dir, yield) }
}

func walkBackward(dir string, yield func(string, error) bool) (on bool) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return yield("", err)
	}
	for _, e := range slices.Backward(entries) {
		if !e.IsDir() || e.Name()[0] < '0' || e.Name()[0] > '9' {
			continue
		}
		below := filepath.Join(dir, e.Name())
		if !walkBackward(below, yield) || !yield(below, nil) {
			return false
		}
	}
	return true
}

// manifestsIn returns the manifests in a folder of products, by day.
func manifestsIn(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, e := range entries {
		if publish.IsManifest(e.Name()) {
			paths = append(paths, filepath.Join(folder, e.Name()))
		}
	}
	return paths, nil
}

// loadManifest reads a manifest; one that is not there is empty.
func loadManifest(path string) (publish.Manifest, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return publish.Manifest{}, nil
	}
	if err != nil {
		return publish.Manifest{}, err
	}
	m, err := publish.ParseManifest(text)
	if err != nil {
		return publish.Manifest{}, fmt.Errorf("%s: %w; remove it and replay the day", path, err)
	}
	return m, nil
}
