package modelstore

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"
)

func TestUnpackedVersionReadsLikeTheStoredOne(t *testing.T) {
	store := New(t.TempDir(), time.Now)
	card := Card{Kind: "starter", Dataset: "chlorophyll", Variable: "CHL", Created: time.Date(2026, 11, 15, 0, 0, 0, 0, time.UTC)}
	v, err := store.Write(t.Context(), card, map[string]io.Reader{ImputerFile: bytes.NewReader([]byte("weights")), CalibrationFile: bytes.NewReader([]byte("{}"))})
	if err != nil {
		t.Fatal(err)
	}
	var tarball bytes.Buffer
	if err := store.Export(t.Context(), v.ID, &tarball); err != nil {
		t.Fatal(err)
	}
	got, err := Unpack(t.Context(), bytes.NewReader(tarball.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if got.ID != v.ID || got.Bytes() != v.Bytes() || got.Card.Variable != "CHL" || !got.Has(ImputerFile) || got.Has(MembersFile) {
		t.Errorf("unpacked %s with %d bytes, stored %s with %d", got.ID, got.Bytes(), v.ID, v.Bytes())
	}
	if data, err := got.ReadFile(ImputerFile); err != nil || string(data) != "weights" {
		t.Errorf("ReadFile = %q, %v", data, err)
	}
	if _, err := got.ReadFile(MembersFile); err == nil {
		t.Error("a file that the version does not have was read")
	}
	if _, err := got.Path(ImputerFile); err == nil {
		t.Error("a version in memory has a path")
	}
}

func TestUnpackRefusesAChangedByte(t *testing.T) {
	store := New(t.TempDir(), time.Now)
	v, err := store.Write(t.Context(), Card{Dataset: "sst"}, map[string]io.Reader{ImputerFile: bytes.NewReader([]byte("weights"))})
	if err != nil {
		t.Fatal(err)
	}
	var tarball bytes.Buffer
	if err := store.Export(t.Context(), v.ID, &tarball); err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Replace(tarball.Bytes(), []byte("weights"), []byte("weighty"), 1)
	_, err = Unpack(t.Context(), bytes.NewReader(damaged))
	var bad *BadArchive
	if !errors.As(err, &bad) {
		t.Errorf("Unpack = %v, want a *BadArchive", err)
	}
}
