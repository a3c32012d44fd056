// Command gen makes the built-in sea mask from the archive of
// global-land-mask:
//
//	go run ./gen globe_combined_mask_compressed.npz sea.bin
//
// A cell of 1/60 degree is sea if at least two of its four cells of 1/120
// degree are: channels and small bays stay open, which a gap filler needs,
// and the area of the sea grows by no more than the ties.
package main

import (
	"archive/zip"
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"strings"

	"lacuna/internal/durable"
	"lacuna/pipeline/seamask"
)

// The mask in the archive: cells of 1/120 degree, row 0 at 90 N, column 0 at
// 180 W, one byte each, 1 for ocean.
const (
	fineRows = 21600
	fineCols = 43200
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: gen MASK.npz OUT")
		os.Exit(2)
	}
	if err := generate(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func generate(npz, out string) error {
	archive, err := zip.OpenReader(npz)
	if err != nil {
		return fmt.Errorf("open mask archive: %w", err)
	}
	defer archive.Close()
	npy, err := archive.Open("mask.npy")
	if err != nil {
		return fmt.Errorf("open mask in %s: %w", npz, err)
	}
	defer npy.Close()
	r := bufio.NewReaderSize(npy, 1<<20)
	if err := skipHeader(r); err != nil {
		return fmt.Errorf("read header of mask.npy: %w", err)
	}
	f, err := durable.Pending(out, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = f.Cleanup() }() // without effect once the file is in place
	if err := seamask.Pack(f, halved(r)); err != nil {
		return fmt.Errorf("pack mask: %w", err)
	}
	return f.CloseAtomicallyReplace()
}

// skipHeader reads the header of a version 1 npy file and checks that it
// announces the array we know.
func skipHeader(r io.Reader) error {
	var start [10]byte // magic, version, length of the description
	if _, err := io.ReadFull(r, start[:]); err != nil {
		return err
	}
	if string(start[:8]) != "\x93NUMPY\x01\x00" {
		return fmt.Errorf("no npy file of version 1: %q", start[:8])
	}
	text := make([]byte, binary.LittleEndian.Uint16(start[8:]))
	if _, err := io.ReadFull(r, text); err != nil {
		return err
	}
	for _, want := range []string{"'|b1'", "'fortran_order': False", fmt.Sprintf("(%d, %d)", fineRows, fineCols)} {
		if !strings.Contains(string(text), want) {
			return fmt.Errorf("array is %s, want %s", text, want)
		}
	}
	return nil
}

// halved returns the rows of the fine mask at half its resolution.
func halved(r io.Reader) func() ([]bool, error) {
	pair := make([]byte, 2*fineCols)
	row := make([]bool, fineCols/2)
	return func() ([]bool, error) {
		if _, err := io.ReadFull(r, pair); err != nil {
			return nil, err
		}
		north, south := pair[:fineCols], pair[fineCols:]
		for c := range row {
			row[c] = north[2*c]+north[2*c+1]+south[2*c]+south[2*c+1] >= 2
		}
		return row, nil
	}
}
