package zarr

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"lacuna/internal/durable"
)

// folder keeps objects as files. Those that are being written are in a hidden
// folder of their own.
type folder struct{ root string }

const staging = ".staging"

func (f folder) path(key string) string { return filepath.Join(f.root, filepath.FromSlash(key)) }

// check tests that the folder can be written to.
func (f folder) check(context.Context) error {
	if err := os.MkdirAll(f.path(staging), 0o755); err != nil {
		return fmt.Errorf("make the folder of Zarr stores: %w; name another, or let the service write there", err)
	}
	return nil
}

// Get implements objects.
func (f folder) Get(ctx context.Context, key string) ([]byte, error) {
	content, err := os.ReadFile(f.path(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ctx.Err()
	}
	return content, errors.Join(err, ctx.Err())
}

// Put implements objects.
func (f folder) Put(ctx context.Context, key string, content []byte, _ string) (err error) {
	target := f.path(key)
	if err := errors.Join(ctx.Err(), durable.MakeFolders(filepath.Dir(target)), os.MkdirAll(f.path(staging), 0o755)); err != nil {
		return err
	}
	// The name is fixed, so that a crash leaves one file, not one each.
	temp, err := os.Create(filepath.Join(f.path(staging), strings.ReplaceAll(key, "/", "!")))
	if err != nil {
		return err
	}
	_, err = temp.Write(content)
	if err := errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	if err := os.Rename(temp.Name(), target); err != nil {
		return err
	}
	return durable.Sync(filepath.Dir(target))
}

// Remove implements objects.
func (f folder) Remove(ctx context.Context, key string) error {
	err := errors.Join(ctx.Err(), os.Remove(f.path(key)))
	if errors.Is(err, fs.ErrNotExist) {
		return ctx.Err()
	}
	if err != nil {
		return err
	}
	return durable.Sync(filepath.Dir(f.path(key)))
}

// Move implements objects.
func (f folder) Move(ctx context.Context, from, to string) error {
	if _, err := os.Stat(f.path(from)); errors.Is(err, fs.ErrNotExist) {
		return ctx.Err()
	}
	if err := errors.Join(ctx.Err(), durable.MakeFolders(filepath.Dir(f.path(to)))); err != nil {
		return err
	}
	if err := os.Rename(f.path(from), f.path(to)); err != nil {
		return err
	}
	return errors.Join(durable.Sync(filepath.Dir(f.path(to))), durable.Sync(filepath.Dir(f.path(from))))
}

// List implements objects.
func (f folder) List(ctx context.Context, prefix string, since time.Time, each func(key string) error) error {
	err := filepath.WalkDir(f.path(prefix), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return errors.Join(err, ctx.Err())
		}
		info, err := d.Info()
		if err != nil || info.ModTime().Before(since) {
			return err
		}
		key, err := filepath.Rel(f.root, path)
		if err != nil {
			return err
		}
		return each(filepath.ToSlash(key))
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
