package train

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"lacuna/internal/durable"
)

// A checkpoint is the state of a run. Its file is a line of JSON, the best
// weights so far where it announces them, and the state of the optimizer.
type checkpoint struct {
	header
	best  []float32 // nil: never scored
	state *State
}

type header struct {
	Kind   string          `json:"kind"`
	Step   int             `json:"step"`            // steps done
	Config json.RawMessage `json:"config"`          // the settings of the task
	Score  *float64        `json:"score,omitempty"` // score of the result so far
	AtStep int             `json:"at_step"`
	Bad    int             `json:"bad"`  // scores since the best
	Best   int             `json:"best"` // number of best weights that follow
	// Unscored says that the score of the last step is still to be asked.
	Unscored bool `json:"unscored,omitempty"`
}

// CheckpointStep returns how many steps the run behind a checkpoint has done, 0
// where there is none. The examples of a run that goes on begin with that number
// times its batch, which a filler that hands out a queue must know.
func CheckpointStep(path string) (int, error) {
	step := 0
	err := openCheckpoint(path, func(h header, _ io.Reader) error {
		step = h.Step
		return nil
	})
	return step, err
}

// readCheckpoint returns the checkpoint of a task, nil where there is none.
func readCheckpoint(path string, t Task) (c *checkpoint, err error) {
	err = openCheckpoint(path, func(h header, rest io.Reader) error {
		c = &checkpoint{header: h}
		return c.read(rest, t)
	})
	return c, err
}

// openCheckpoint calls read with the first line of a checkpoint and a reader of
// the rest, where there is one.
//
// A file without a kind is ignored: the mask prior had a format of its own
// once, and a job that was stopped then would fail for ever.
func openCheckpoint(path string, read func(h header, rest io.Reader) error) error {
	if path == "" {
		return nil
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read checkpoint: %w", err)
	}
	defer func() { _ = f.Close() }() // only read
	in := bufio.NewReader(f)
	line, err := readLine(in)
	if err != nil {
		return fmt.Errorf("read checkpoint %s: %w", path, err)
	}
	var h header
	if err := json.Unmarshal(line, &h); err != nil {
		return fmt.Errorf("read checkpoint %s: %w", path, err)
	}
	if h.Kind == "" {
		return nil
	}
	if err := read(h, in); err != nil {
		return fmt.Errorf("go on from checkpoint %s: %w", path, err)
	}
	return nil
}

func (c *checkpoint) read(r io.Reader, t Task) error {
	settings, err := json.Marshal(t.Settings)
	if err != nil {
		return fmt.Errorf("settings of the task: %w", err)
	}
	if c.Kind != t.Kind || !bytes.Equal(c.Config, settings) {
		return errors.New("it is of a run with other settings; remove it, or use the settings it was made with")
	}
	if c.Best > 0 {
		if c.Best != t.Layout.Size {
			return fmt.Errorf("%d best weights, the network has %d", c.Best, t.Layout.Size)
		}
		c.best = make([]float32, c.Best)
		if err := binary.Read(r, binary.LittleEndian, c.best); err != nil {
			return fmt.Errorf("read the best weights: %w", err)
		}
	}
	c.state, err = decodeState(r, t.Layout)
	return err
}

// write writes the checkpoint of a task, whole or not at all.
func (c *checkpoint) write(path string, t Task) error {
	settings, err := json.Marshal(t.Settings)
	if err != nil {
		return fmt.Errorf("write checkpoint: settings of the task: %w", err)
	}
	c.Kind, c.Config, c.Best = t.Kind, settings, len(c.best)
	var file bytes.Buffer
	err = errors.Join(
		json.NewEncoder(&file).Encode(c.header),
		binary.Write(&file, binary.LittleEndian, c.best),
		c.state.encode(&file, t.Layout),
	)
	if err == nil {
		err = durable.WriteFile(path, file.Bytes(), 0o644)
	}
	if err != nil {
		return fmt.Errorf("write checkpoint: %w", err)
	}
	return nil
}
