package ncfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"lacuna/internal/zarr"
)

// Sniff checks the first bytes and the size of a file and returns a
// *BadGranule for one that is not worth a child: empty, no NetCDF, or shorter
// than its header says.
func Sniff(f io.ReaderAt, size int64) error {
	if size == 0 {
		return Bad("it is empty", "the download was probably cut off: "+Again)
	}
	head := make([]byte, min(size, 1024))
	if _, err := f.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the first bytes: %w", err)
	}
	if len(head) >= 4 && string(head[:3]) == "CDF" && (head[3] == 1 || head[3] == 2 || head[3] == 5) {
		return sniffClassic(f, size)
	}
	if bytes.HasPrefix(head, []byte(zipMagic)) {
		if _, err := zarr.OpenZip(f, size); err == nil {
			return nil
		}
	}
	at, ok, err := findHDF5(f, size)
	if err != nil {
		return fmt.Errorf("look for a superblock: %w", err)
	}
	if ok {
		return sniffHDF5(f, at, size)
	}
	what, remedy := recognise(head)
	return Bad("it is "+what+", not NetCDF", remedy)
}

func sniffClassic(f io.ReaderAt, size int64) error {
	want, err := classicSize(io.NewSectionReader(f, 0, size))
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return Bad(fmt.Sprintf("it is truncated: it ends after %d bytes, within its header", size), Again)
	case errors.Is(err, errClassicHeader):
		return Bad("it is damaged: "+err.Error(), Again)
	case err != nil:
		return fmt.Errorf("read the header: %w", err)
	case want > size:
		return Bad(fmt.Sprintf("it is truncated or its dimensions are absurd: its header describes %d bytes, the file has %d", want, size), Again)
	}
	return nil
}

const hdf5Magic = "\x89HDF\r\n\x1a\n"

// findHDF5 returns where the superblock lies: at the start, or behind a user
// block of 512 bytes times a power of two. A disk that cannot be read says nothing
// about the file.
func findHDF5(f io.ReaderAt, size int64) (at int64, ok bool, err error) {
	buf := make([]byte, len(hdf5Magic))
	for at < size {
		_, err := f.ReadAt(buf, at)
		switch {
		case errors.Is(err, io.EOF):
			return 0, false, nil
		case err != nil:
			return 0, false, err
		case string(buf) == hdf5Magic:
			return at, true, nil
		}
		at = max(512, 2*at)
	}
	return 0, false, nil
}

// sniffHDF5 compares the end of file that the superblock names with the size.
// Versions 0 and 1 keep it at byte 40 and 44, versions 2 and 3 at byte 28,
// where addresses have eight bytes.
func sniffHDF5(f io.ReaderAt, at, size int64) error {
	var block [52]byte
	n, err := f.ReadAt(block[:], at)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the superblock: %w", err)
	}
	if n < len(block) {
		return Bad(fmt.Sprintf("it is truncated: it has only %d bytes", size), Again)
	}
	var addressBytes byte
	var end int
	switch block[8] {
	case 0:
		addressBytes, end = block[13], 40
	case 1:
		addressBytes, end = block[13], 44
	case 2, 3:
		addressBytes, end = block[9], 28
	}
	if addressBytes != 8 {
		return nil // an unknown version is left to netCDF-C
	}
	if want := binary.LittleEndian.Uint64(block[end:]); want > uint64(size) {
		return Bad(fmt.Sprintf("it is truncated: it has %d bytes of %d", size, want), Again)
	}
	return nil
}

// recognise names the kind of a file that is not NetCDF, and the remedy.
func recognise(head []byte) (what, remedy string) {
	convert := "convert it to NetCDF first"
	for _, k := range []struct{ magic, what, remedy string }{
		{"\x1f\x8b", "compressed with gzip", "unpack it with gunzip"},
		{"BZh", "compressed with bzip2", "unpack it with bunzip2"},
		{"PK\x03\x04", "a ZIP archive", "unpack it with unzip"},
		{"\x0e\x03\x13\x01", "HDF4", convert},
		{"GRIB", "GRIB", convert},
		{"II*\x00", "a TIFF image", convert},
		{"MM\x00*", "a TIFF image", convert},
		{"version https://git-lfs", "a Git LFS pointer", "fetch the file itself with git lfs pull"},
	} {
		if bytes.HasPrefix(head, []byte(k.magic)) {
			return k.what, k.remedy
		}
	}
	serverError := "the server probably sent an error page: " + Again
	text := bytes.ToLower(bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n"))
	switch {
	case bytes.HasPrefix(text, []byte("<!doctype html")), bytes.HasPrefix(text, []byte("<html")):
		return "an HTML page", serverError
	case bytes.HasPrefix(text, []byte("<")):
		return "an XML or HTML document", serverError
	case bytes.HasPrefix(text, []byte("{")):
		return "a JSON document", serverError
	}
	return fmt.Sprintf("something that begins with %.12q", head), Again
}
