package modelstore

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
)

// Unpack returns the version in a tar file that Export wrote, in memory and in
// no store. It is checked as Import checks: anything but the files of one card,
// in their sizes and hashes, is a *BadArchive. Path is the only method of the
// version that fails.
func Unpack(ctx context.Context, r io.Reader) (*Version, error) {
	archive := tar.NewReader(until(ctx, r))
	id, card, _, err := importCard(archive)
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	contents := memory{}
	if err := importFiles(ctx, contents, archive, id, card.Files); err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	return &Version{ID: id, Card: card, contents: contents}, nil
}

// memory is the files of a version by name.
type memory map[string][]byte

// maxUnpackedBytes is the largest size of a version in memory: four times the
// largest network that is built here.
const maxUnpackedBytes = 1 << 30

func (m memory) add(_ context.Context, name string, r io.Reader) (File, error) {
	total := int64(0)
	for _, data := range m {
		total += int64(len(data))
	}
	data, err := io.ReadAll(io.LimitReader(r, maxUnpackedBytes-total+1))
	if err == nil && total+int64(len(data)) > maxUnpackedBytes {
		err = fmt.Errorf("the version has more than %d bytes", int64(maxUnpackedBytes))
	}
	if err != nil {
		return File{}, fmt.Errorf("file %s: %w", name, err)
	}
	m[name] = data
	return File{Name: name, Bytes: int64(len(data)), SHA256: hashOf(data)}, nil
}

// check compares a file with the card, as for a version on disk: a caller may
// have written into the bytes that ReadFile returned.
func (m memory) check(f File, w io.Writer) error {
	data, ok := m[f.Name]
	if !ok || int64(len(data)) != f.Bytes || hashOf(data) != f.SHA256 {
		return errors.New("changed in memory")
	}
	_, err := io.Copy(w, bytes.NewReader(data))
	return err
}
