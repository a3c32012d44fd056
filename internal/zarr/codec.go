package zarr

import (
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"compress/zlib"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// inflater undoes a codec that makes bytes from bytes. Most is the largest
// allowed result.
type inflater struct {
	name   string
	decode func(stored []byte, most int) ([]byte, error)
}

// inflaters are the codecs without settings that matter to a reader, by their
// names in either version.
func inflaters(name string) (inflater, bool) {
	decode, ok := map[string]func([]byte, int) ([]byte, error){
		"gzip":   ungzip,
		"zlib":   unzlib,
		"zstd":   unzstd,
		"lz4":    unlz4,
		"bz2":    unbz2,
		"blosc":  unblosc,
		"crc32c": uncrc32c,

		"numcodecs.zlib": unzlib,
		"numcodecs.gzip": ungzip,
		"numcodecs.zstd": unzstd,
		"numcodecs.lz4":  unlz4,
		"numcodecs.bz2":  unbz2,
	}[name]
	return inflater{name: name, decode: decode}, ok
}

func ungzip(stored []byte, most int) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(stored))
	if err != nil {
		return nil, err
	}
	return within(r, most)
}

func unzlib(stored []byte, most int) ([]byte, error) {
	r, err := zlib.NewReader(bytes.NewReader(stored))
	if err != nil {
		return nil, err
	}
	return within(r, most)
}

func unbz2(stored []byte, most int) ([]byte, error) {
	return within(bzip2.NewReader(bytes.NewReader(stored)), most)
}

func unzstd(stored []byte, most int) ([]byte, error) {
	r, err := zstd.NewReader(bytes.NewReader(stored), zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderMaxMemory(uint64(most)+1), zstd.WithDecoderMaxWindow(maxChunk))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return within(r, most)
}

// within reads all of r, and one byte more than most at the most, which the
// chain refuses.
func within(r io.Reader, most int) ([]byte, error) {
	return io.ReadAll(io.LimitReader(r, int64(most)+1))
}

// unlz4 undoes the lz4 of numcodecs: the length in four bytes, then one block.
func unlz4(stored []byte, most int) ([]byte, error) {
	if len(stored) < 4 {
		return nil, io.ErrUnexpectedEOF
	}
	n := int(binary.LittleEndian.Uint32(stored))
	if n > most {
		return nil, fmt.Errorf("it inflates to %d bytes, more than %d", n, most)
	}
	return lz4Block(stored[4:], n)
}

func lz4Block(stored []byte, n int) ([]byte, error) {
	out := make([]byte, n)
	got, err := lz4.UncompressBlock(stored, out)
	if err != nil {
		return nil, err
	}
	if got != n {
		return nil, fmt.Errorf("an lz4 block of %d bytes has %d", n, got)
	}
	return out, nil
}

// castagnoli is the polynomial of crc32c.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

func uncrc32c(stored []byte, _ int) ([]byte, error) {
	if len(stored) < 4 {
		return nil, io.ErrUnexpectedEOF
	}
	body := stored[:len(stored)-4]
	if crc32.Checksum(body, castagnoli()) != binary.LittleEndian.Uint32(stored[len(body):]) {
		return nil, errors.New("the checksum is wrong: the chunk is damaged")
	}
	return body, nil
}

// unshuffle undoes the byte shuffle of numcodecs with elements of size bytes.
func unshuffle(stored []byte, size int) []byte {
	out := make([]byte, len(stored))
	n := len(stored) / size
	for i := range size {
		for j := range n {
			out[j*size+i] = stored[i*n+j]
		}
	}
	copy(out[n*size:], stored[n*size:])
	return out
}

// EncodeChunk codes the numbers of a chunk, little endian and row-major, as
// Read undoes it. It knows bytes (little endian), gzip, zstd and crc32c.
func EncodeChunk(codecs []NamedCodec, numbers []byte) ([]byte, error) {
	out := numbers
	for _, c := range codecs {
		var set struct {
			Endian string `json:"endian"`
			Level  int    `json:"level"`
		}
		if len(c.Configuration) > 0 {
			if err := json.Unmarshal(c.Configuration, &set); err != nil {
				return nil, fmt.Errorf("codec %s: %w", c.Name, err)
			}
		}
		switch c.Name {
		case "bytes":
			if set.Endian == "big" {
				return nil, errors.New("codec bytes: big endian is not written")
			}
		case "gzip":
			var buf bytes.Buffer
			w, err := gzip.NewWriterLevel(&buf, set.Level)
			if err != nil {
				return nil, fmt.Errorf("codec gzip: %w", err)
			}
			if _, err := w.Write(out); err != nil {
				return nil, err
			}
			if err := w.Close(); err != nil {
				return nil, err
			}
			out = buf.Bytes()
		case "zstd":
			w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(set.Level)), zstd.WithEncoderConcurrency(1))
			if err != nil {
				return nil, fmt.Errorf("codec zstd: %w", err)
			}
			out = w.EncodeAll(out, nil)
			if err := w.Close(); err != nil {
				return nil, err
			}
		case "crc32c":
			out = binary.LittleEndian.AppendUint32(slices.Clone(out), crc32.Checksum(out, castagnoli()))
		default:
			return nil, fmt.Errorf("codec %s is not written", c.Name)
		}
	}
	return out, nil
}
