package prior

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"lacuna/pipeline/nn"
	"lacuna/pipeline/train"
)

// bestHeader is the line that a checkpoint begins with.
type bestHeader struct {
	Step     int      `json:"step"`
	Worse    int      `json:"worse"`
	Distance *float64 `json:"distance"` // null: not evaluated yet
	Weights  int      `json:"weights"`
}

// Encode writes the checkpoint of a training with this model config: a line of
// JSON about the best weights, those weights, and the state.
func (c Checkpoint) Encode(w io.Writer, cfg Config) error {
	network, err := nn.New(cfg.network())
	if err != nil {
		return fmt.Errorf("write prior checkpoint: %w", err)
	}
	h := bestHeader{Step: c.Best.Step, Worse: c.Best.Worse, Weights: len(c.Best.Weights)}
	if !math.IsInf(c.Best.Distance, 0) {
		h.Distance = &c.Best.Distance
	}
	line, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("write prior checkpoint: %w", err)
	}
	if _, err := w.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write prior checkpoint: %w", err)
	}
	if err := binary.Write(w, binary.LittleEndian, c.Best.Weights); err != nil {
		return fmt.Errorf("write prior checkpoint: %w", err)
	}
	return c.State.Encode(w, network.Layout())
}

// DecodeCheckpoint reads what Encode wrote. A checkpoint of another network is
// an error.
func DecodeCheckpoint(r io.Reader, cfg Config) (*Checkpoint, error) {
	network, err := nn.New(cfg.network())
	if err != nil {
		return nil, fmt.Errorf("read prior checkpoint: %w", err)
	}
	in := bufio.NewReader(r)
	line, err := in.ReadSlice('\n') // at most the reader's buffer: the header is short
	if err != nil {
		return nil, fmt.Errorf("read prior checkpoint: %w", err)
	}
	var h bestHeader
	if err := json.Unmarshal(line, &h); err != nil {
		return nil, fmt.Errorf("read prior checkpoint: %w", err)
	}
	c := &Checkpoint{Best: Best{Step: h.Step, Worse: h.Worse, Distance: math.Inf(1)}}
	if h.Distance != nil {
		c.Best.Distance = *h.Distance
	}
	switch h.Weights {
	case 0:
	case network.Layout().Size:
		c.Best.Weights = make([]float32, h.Weights)
		if err := binary.Read(in, binary.LittleEndian, c.Best.Weights); err != nil {
			return nil, fmt.Errorf("read prior checkpoint: %w", err)
		}
	default:
		return nil, errors.New("read prior checkpoint: it is of another network")
	}
	if c.State, err = train.DecodeState(in, network.Layout()); err != nil {
		return nil, fmt.Errorf("read prior checkpoint: %w", err)
	}
	return c, nil
}
