package seamask

import (
	"bufio"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
)

// The code of the mask. Each row, from the north, is XORed with the row above
// it (the first with a row of land); what changes is written as run lengths,
// alternately of equal and of different cells, beginning with equal, as
// unsigned varints that add up to the width; all of it is deflated. Coasts
// wander slowly from row to row, so most rows take a few bytes.

// Pack writes rows of the mask, from the north and each of 21600 cells, in
// the code that is embedded; next returns the rows and then io.EOF. It is for
// the generator.
func Pack(w io.Writer, next func() ([]bool, error)) error {
	z, err := flate.NewWriter(w, flate.BestCompression)
	if err != nil {
		return err
	}
	above := make([]bool, cols)
	var code []byte
	for r := 0; ; r++ {
		row, err := next()
		if errors.Is(err, io.EOF) && r == rows {
			return z.Close()
		}
		if err != nil {
			return fmt.Errorf("row %d: %w", r, err)
		}
		if len(row) != cols || r >= rows {
			return fmt.Errorf("row %d of length %d does not fit a mask of %d x %d", r, len(row), rows, cols)
		}
		code = appendRuns(code[:0], above, row)
		if _, err := z.Write(code); err != nil {
			return err
		}
		copy(above, row)
	}
}

func appendRuns(code []byte, above, row []bool) []byte {
	differs, run := false, uint64(0)
	for c := range row {
		if (row[c] != above[c]) != differs {
			code = binary.AppendUvarint(code, run)
			differs, run = !differs, 0
		}
		run++
	}
	return binary.AppendUvarint(code, run)
}

// A decoder holds one row of the mask at a time.
type decoder struct {
	r   *bufio.Reader
	row bitmap
}

func newDecoder(r io.Reader) *decoder {
	return &decoder{r: bufio.NewReader(flate.NewReader(r))}
}

// nextRow moves to the next row, the northernmost at first.
func (d *decoder) nextRow() error {
	for c, differs := 0, false; c < cols; differs = !differs {
		n, err := binary.ReadUvarint(d.r)
		if err != nil {
			return err
		}
		if n > uint64(cols-c) {
			return fmt.Errorf("runs exceed the row by %d cells", n-uint64(cols-c))
		}
		if differs {
			d.row.flip(c, c+int(n))
		}
		c += int(n)
	}
	return nil
}

// A bitmap is one row of the mask: bit c%64 of word c/64 is set where column
// c is sea.
type bitmap [(cols + 63) / 64]uint64

// flip inverts the columns from first to end, excluded.
func (b *bitmap) flip(first, end int) {
	for w := first / 64; w*64 < end; w++ {
		b[w] ^= window(w, first, end)
	}
}

// count returns the number of sea columns from first to end, excluded.
func (b *bitmap) count(first, end int) int {
	n := 0
	for w := first / 64; w*64 < end; w++ {
		n += bits.OnesCount64(b[w] & window(w, first, end))
	}
	return n
}

// window returns the bits of word w that lie from first to end, excluded, of
// which at least one does.
func window(w, first, end int) uint64 {
	bits := ^uint64(0)
	if low := first - w*64; low > 0 {
		bits <<= low
	}
	if high := (w+1)*64 - end; high > 0 {
		bits &= ^uint64(0) >> high
	}
	return bits
}
