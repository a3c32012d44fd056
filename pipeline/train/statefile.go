package train

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"lacuna/pipeline/nn"
)

// An encoded state is a line of JSON, the four vectors of the state in little
// endian, and the SHA-256 of both.

// stateFormat is the first word of it.
const stateFormat = "lacuna training state 1"

// maxHeaderBytes bounds the line of JSON: a thousand weights take 100 kB.
const maxHeaderBytes = 16 << 20

// stateHeader names the weights of the vectors.
type stateHeader struct {
	Format string   `json:"format"`
	Step   int      `json:"step"`
	Names  []string `json:"names"`
	Dims   [][]int  `json:"dims"`
}

// encode writes the state of a network with this layout.
func (st *State) encode(w io.Writer, layout *nn.Layout) error {
	h := stateHeader{Format: stateFormat, Step: st.Step}
	for _, p := range layout.Params {
		h.Names, h.Dims = append(h.Names, p.Name), append(h.Dims, p.Dims)
	}
	line, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("encode training state: %w", err)
	}
	sum := sha256.New()
	both := io.MultiWriter(w, sum)
	if _, err := both.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write training state: %w", err)
	}
	for _, v := range st.vectors() {
		if len(*v) != layout.Size {
			return fmt.Errorf("write training state: %d numbers, the network has %d", len(*v), layout.Size)
		}
		if err := binary.Write(both, binary.LittleEndian, *v); err != nil {
			return fmt.Errorf("write training state: %w", err)
		}
	}
	if _, err := w.Write(sum.Sum(nil)); err != nil {
		return fmt.Errorf("write training state: %w", err)
	}
	return nil
}

// decodeState reads a state that encode wrote, bit for bit. A state of another
// network is an error that names the first weight that differs.
func decodeState(r io.Reader, layout *nn.Layout) (*State, error) {
	sum := sha256.New()
	in := bufio.NewReader(io.LimitReader(r, maxHeaderBytes+stateKinds*4*int64(layout.Size)+sha256.Size))
	line, err := readLine(in)
	if err != nil {
		return nil, fmt.Errorf("read training state: %w", err)
	}
	sum.Write(line)
	var h stateHeader
	if err := json.Unmarshal(line, &h); err != nil || h.Format != stateFormat {
		return nil, errors.New("read training state: not a training state of this version")
	}
	if h.Step < 0 || len(h.Names) != len(h.Dims) {
		return nil, errors.New("read training state: malformed header")
	}
	if err := layout.Check(h.Names, h.Dims); err != nil {
		return nil, fmt.Errorf("read training state of another network: %w", err)
	}
	st := &State{Step: h.Step}
	body := io.TeeReader(in, sum)
	for _, v := range st.vectors() {
		*v = make([]float32, layout.Size)
		if err := binary.Read(body, binary.LittleEndian, *v); err != nil {
			return nil, fmt.Errorf("read training state: %w", err)
		}
	}
	var want [sha256.Size]byte
	if _, err := io.ReadFull(in, want[:]); err != nil {
		return nil, fmt.Errorf("read training state: %w", err)
	}
	if !bytes.Equal(sum.Sum(nil), want[:]) {
		return nil, errors.New("read training state: checksum does not match, the file is damaged")
	}
	return st, nil
}

// readLine reads up to and with the first newline, and no more than a header
// can have.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for len(line) < maxHeaderBytes {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if err == nil {
			return line, nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("header is longer than %d bytes", maxHeaderBytes)
}
