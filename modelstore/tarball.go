package modelstore

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// Export writes a version as one tar file: a folder with the name of the
// version, the card first. The same version gives the same bytes everywhere.
// Files are checked as they are read, so a damaged version ends in an error,
// and never in a tar file that looks complete.
func (s *Store) Export(ctx context.Context, id string, w io.Writer) error {
	v, err := s.Peek(id)
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	card, err := readAtMost(filepath.Join(v.dir, CardFile), maxCardBytes)
	if err != nil {
		return fmt.Errorf("export: %w", v.bad(CardFile, err))
	}
	archive := tar.NewWriter(w)
	if err := exportFile(archive, path.Join(id, CardFile), int64(len(card))); err != nil {
		return fmt.Errorf("export %s: %w", id, err)
	}
	if _, err := archive.Write(card); err != nil {
		return fmt.Errorf("export %s: %w", id, err)
	}
	for _, f := range v.Card.Files {
		if err := exportFile(archive, path.Join(id, f.Name), f.Bytes); err != nil {
			return fmt.Errorf("export %s: %w", id, err)
		}
		var writeErr error // failure of the tar file, not of the version
		err := v.check(f, writerFunc(func(p []byte) (n int, err error) {
			if err = ctx.Err(); err == nil {
				n, err = archive.Write(p)
			}
			writeErr = err
			return n, err
		}))
		if writeErr != nil {
			return fmt.Errorf("export %s: write tar file: %w", id, writeErr)
		}
		if err != nil {
			return fmt.Errorf("export: %w", err)
		}
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("export %s: %w", id, err)
	}
	return nil
}

// exportFile begins an entry that tells nothing of this machine or moment.
func exportFile(archive *tar.Writer, name string, size int64) error {
	return archive.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: name, Size: size, Mode: readOnlyFile,
		ModTime: time.Unix(0, 0).UTC(), Format: tar.FormatPAX,
	})
}

// BadArchive says why a tar file is not an export of a version.
type BadArchive struct {
	Entry string // name in the tar file; empty: the file as a whole
	Wrong string
}

func (e *BadArchive) Error() string {
	if e.Entry == "" {
		return "not an export of a model version: " + e.Wrong
	}
	return fmt.Sprintf("not an export of a model version: entry %q: %s", e.Entry, e.Wrong)
}

// Import adds the version in a tar file that Export wrote. The tar file is not
// trusted: anything but the files of one card, in their sizes and hashes, is
// refused with a *BadArchive, and nothing of it stays.
func (s *Store) Import(ctx context.Context, r io.Reader) (*Version, error) {
	archive := tar.NewReader(until(ctx, r))
	id, card, data, err := importCard(archive)
	if err != nil {
		return nil, fmt.Errorf("import: %w", err)
	}
	staged, err := s.stage(ctx)
	if err != nil {
		return nil, fmt.Errorf("import: %w", err)
	}
	defer staged.discard()
	if err := importFiles(ctx, staged, archive, id, card.Files); err != nil {
		return nil, fmt.Errorf("import: %w", s.explain(err))
	}
	v, err := s.place(ctx, staged, data)
	if err != nil {
		return nil, fmt.Errorf("import: %w", err)
	}
	return v, nil
}

// importCard reads the first entry, which names the version.
func importCard(archive *tar.Reader) (id string, card Card, data []byte, err error) {
	header, err := archive.Next()
	if err != nil {
		return "", card, nil, &BadArchive{Wrong: "not a readable tar file: " + err.Error()}
	}
	id, name, _ := strings.Cut(header.Name, "/")
	switch {
	case header.Typeflag != tar.TypeReg:
		return "", card, nil, &BadArchive{header.Name, "not a regular file"}
	case !validID(id) || name != CardFile:
		return "", card, nil, &BadArchive{header.Name, "the first entry must be VERSION/" + CardFile}
	case header.Size > maxCardBytes:
		return "", card, nil, &BadArchive{header.Name, fmt.Sprintf("%d bytes, a card has at most %d", header.Size, maxCardBytes)}
	}
	if data, err = io.ReadAll(archive); err != nil {
		return "", card, nil, &BadArchive{header.Name, err.Error()}
	}
	card, err = DecodeCard(data)
	if err == nil && versionID(card, data) != id {
		err = fmt.Errorf("it belongs to version %s", versionID(card, data))
	}
	if err != nil {
		return "", card, nil, &BadArchive{header.Name, err.Error()}
	}
	return id, card, data, nil
}

// intake receives the files of a version that is being imported.
type intake interface {
	add(ctx context.Context, name string, r io.Reader) (File, error)
}

// importFiles takes the rest of the entries, which must be the files that the
// card lists, and no others.
func importFiles(ctx context.Context, to intake, archive *tar.Reader, id string, files []File) error {
	for _, f := range files {
		if err := importFile(ctx, to, archive, path.Join(id, f.Name), f); err != nil {
			return err
		}
	}
	if header, err := archive.Next(); !errors.Is(err, io.EOF) {
		return extraEntry(header, err)
	}
	return nil
}

// importFile takes the next entry, which must be the file that the card lists.
func importFile(ctx context.Context, to intake, archive *tar.Reader, name string, want File) error {
	header, err := archive.Next()
	switch {
	case errors.Is(err, io.EOF):
		return &BadArchive{name, "missing"}
	case err != nil:
		return &BadArchive{name, err.Error()}
	case header.Name != name:
		return &BadArchive{header.Name, "the card lists " + want.Name + " in its place"}
	case header.Typeflag != tar.TypeReg:
		return &BadArchive{header.Name, "not a regular file"}
	case header.Size != want.Bytes:
		return &BadArchive{header.Name, fmt.Sprintf("%d bytes, the card says %d", header.Size, want.Bytes)}
	}
	got, err := to.add(ctx, want.Name, archive)
	var onDisk *fs.PathError
	switch {
	case errors.As(err, &onDisk), ctx.Err() != nil:
		return err
	case err != nil:
		return &BadArchive{header.Name, err.Error()}
	case got != want:
		return &BadArchive{header.Name, fmt.Sprintf("sha256 %s…, the card says %s…", got.SHA256[:idDigits], want.SHA256[:idDigits])}
	}
	return nil
}

func extraEntry(header *tar.Header, err error) error {
	if err != nil {
		return &BadArchive{Wrong: err.Error()}
	}
	return &BadArchive{header.Name, "the card does not list it"}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
