package modelstore

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func export(t testing.TB, s *Store, id string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := s.Export(t.Context(), id, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestExportIsImportedUnderTheSameName(t *testing.T) {
	from, to := newStore(t), newStore(t)
	v := write(t, from, "one")
	archive := export(t, from, v.ID)
	got, err := to.Import(t.Context(), bytes.NewReader(archive))
	if err != nil || got.ID != v.ID {
		t.Fatalf("Import() = %v, %v, want %s", got, err, v.ID)
	}
	if _, err := to.Load(v.ID); err != nil {
		t.Error(err)
	}
	if !bytes.Equal(archive, export(t, to, v.ID)) {
		t.Error("the same version exports to other bytes elsewhere")
	}
	if _, err := to.Import(t.Context(), bytes.NewReader(archive)); err != nil {
		t.Errorf("importing again: %v", err)
	}
}

func TestImportRestoresADamagedVersion(t *testing.T) {
	s := newStore(t)
	v := write(t, s, "one")
	archive := export(t, s, v.ID)
	promote(t, s, v)
	spoil(t, v)
	if _, err := s.LoadChampion("blk-chl"); err == nil {
		t.Fatal("a damaged champion serves")
	}
	if _, err := s.Import(t.Context(), bytes.NewReader(archive)); err != nil {
		t.Fatal(err)
	}
	if got := champion(t, s); got != v.ID {
		t.Errorf("champion is %s", got)
	}
}

func TestDamagedVersionIsNotExported(t *testing.T) {
	s := newStore(t)
	v := write(t, s, "one")
	spoil(t, v)
	var b bytes.Buffer
	var bad *BadVersion
	if err := s.Export(t.Context(), v.ID, &b); !errors.As(err, &bad) || bad.File != ImputerFile {
		t.Errorf("Export() = %v, want a BadVersion", err)
	}
	if _, err := newStore(t).Import(t.Context(), &b); err == nil {
		t.Error("the bytes written before the damage showed import as a version")
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestFullDiskIsNotTheVersionsFault(t *testing.T) {
	s := newStore(t)
	v := write(t, s, "one")
	var bad *BadVersion
	if err := s.Export(t.Context(), v.ID, fullDisk{}); err == nil || errors.As(err, &bad) {
		t.Errorf("Export() = %v, want an error about the tar file", err)
	}
}

// entry is a member of a tar file that a test takes apart.
type entry struct {
	tar.Header
	body []byte
}

func unpack(t testing.TB, archive []byte) []entry {
	t.Helper()
	var list []entry
	r := tar.NewReader(bytes.NewReader(archive))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, entry{*h, body})
	}
}

func pack(t testing.TB, list []entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range list {
		e.Size = int64(len(e.body))
		if e.Typeflag != tar.TypeReg {
			e.Size, e.body = 0, nil
		}
		if err := w.WriteHeader(&e.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(e.body); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestHostileArchiveIsRefusedAndLeavesNothing(t *testing.T) {
	source := newStore(t)
	v := write(t, source, "one")
	good := export(t, source, v.ID)
	const file = 2 // a file in the middle
	extra := entry{tar.Header{Typeflag: tar.TypeReg, Name: v.ID + "/extra.onnx", Mode: 0o644}, []byte("x")}
	tests := []struct {
		name string
		edit func(l []entry) []entry
		want string
	}{
		{"path out of the store", func(l []entry) []entry { l[file].Name = "../../../escaped"; return l }, "escaped"},
		{"absolute path", func(l []entry) []entry { l[file].Name = "/escaped"; return l }, "/escaped"},
		{"path through the version", func(l []entry) []entry { l[file].Name = v.ID + "/../../escaped"; return l }, "escaped"},
		{"symbolic link", func(l []entry) []entry {
			l[file].Typeflag = tar.TypeSymlink
			l[file].Linkname = "/etc/passwd"
			return l
		}, "not a regular file"},
		{"hard link", func(l []entry) []entry { l[file].Typeflag = tar.TypeLink; l[file].Linkname = "card.json"; return l }, "not a regular file"},
		{"device", func(l []entry) []entry { l[file].Typeflag = tar.TypeBlock; return l }, "not a regular file"},
		{"folder", func(l []entry) []entry { l[file].Typeflag = tar.TypeDir; return l }, "not a regular file"},
		{"card that is a link", func(l []entry) []entry { l[0].Typeflag = tar.TypeSymlink; return l }, "not a regular file"},
		{"changed file", func(l []entry) []entry { l[file].body[3] ^= 1; return l }, "sha256"},
		{"longer file", func(l []entry) []entry { l[file].body = append(l[file].body, 0); return l }, "bytes, the card says"},
		{"changed card", func(l []entry) []entry {
			l[0].body = bytes.Replace(l[0].body, []byte("unet"), []byte("tenu"), 1)
			return l
		}, "belongs to version"},
		{"card too large", func(l []entry) []entry { l[0].body = make([]byte, maxCardBytes+1); return l }, "a card has at most"},
		{"file missing", func(l []entry) []entry { return l[:len(l)-1] }, "missing"},
		{"file not listed", func(l []entry) []entry { return append(l, extra) }, "does not list"},
		{"file twice", func(l []entry) []entry { return append(l, l[len(l)-1]) }, "does not list"},
		{"another order", func(l []entry) []entry { l[1], l[2] = l[2], l[1]; return l }, "in its place"},
		{"no card", func(l []entry) []entry { return l[1:] }, "first entry"},
		{"empty", func([]entry) []entry { return nil }, "not a readable tar file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			refused(t, pack(t, tt.edit(unpack(t, good))), tt.want)
		})
	}
	t.Run("cut", func(t *testing.T) {
		for _, at := range []int{0, 100, 512, 1500, len(good) / 2, len(good) - 2000} {
			refused(t, good[:at], "")
		}
	})
	t.Run("page of a web server", func(t *testing.T) {
		refused(t, []byte(strings.Repeat("<html>404</html>", 100)), "not a readable tar file")
	})
}

// refused asserts that an archive is not imported, and that nothing of it is
// left inside or outside of the store.
func refused(t *testing.T, archive []byte, want string) {
	t.Helper()
	outside := t.TempDir()
	s := New(filepath.Join(outside, "a", "b", "store"), tickingClock())
	_, err := s.Import(t.Context(), bytes.NewReader(archive))
	var bad *BadArchive
	if !errors.As(err, &bad) || !strings.Contains(err.Error(), want) {
		t.Errorf("Import() = %v, want a BadArchive with %q", err, want)
	}
	if left := append(s.entries("versions"), s.entries("incoming")...); len(left) != 0 {
		t.Errorf("left %v", left)
	}
	if list, _ := os.ReadDir(outside); len(list) > 1 {
		t.Errorf("beside the store there is %v", list)
	}
}

func TestCardCannotPromiseMoreThanTheLimit(t *testing.T) {
	card := testCard("one")
	card.Schema, card.Created = CardSchema, day0
	for range 3 {
		card.Files = append(card.Files, File{Name: "f" + strings.Repeat("f", len(card.Files)), Bytes: maxVersionBytes / 2, SHA256: strings.Repeat("0", 64)})
	}
	if _, err := card.Encode(); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("Encode() = %v, want the limit", err)
	}
}
