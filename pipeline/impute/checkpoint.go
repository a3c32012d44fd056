package impute

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

	"github.com/google/renameio/v2"

	"lacuna/pipeline/train"
)

// A checkpoint file is a line of JSON, the best weights so far where it
// announces them, and the state of the optimizer.
type checkpointHeader struct {
	Kind   string      `json:"kind"`
	Step   int         `json:"step"` // steps done
	Config TrainConfig `json:"config"`
	Score  *float64    `json:"score,omitempty"` // of the result so far
	AtStep int         `json:"at_step"`
	Bad    int         `json:"bad"`  // scores since the best
	Best   int         `json:"best"` // number of best weights that follow
}

// CheckpointStep returns how many steps the run behind a checkpoint has done, 0
// where there is none. The lessons of a run that goes on begin with that number
// times its batch, which a Queue must know.
func CheckpointStep(path string) (int, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read checkpoint: %w", err)
	}
	defer func() { _ = f.Close() }() // only read
	var h checkpointHeader
	if err := json.NewDecoder(f).Decode(&h); err != nil {
		return 0, fmt.Errorf("read checkpoint %s: %w", path, err)
	}
	return h.Step, nil
}

// begin sets the step to its checkpoint, or to the start.
func (p *passage[N]) begin() error {
	if p.hooks.Checkpoint != "" {
		data, err := os.ReadFile(p.hooks.Checkpoint)
		switch {
		case err == nil:
			if err := p.restore(data); err != nil {
				return fmt.Errorf("go on from %s: %w", p.hooks.Checkpoint, err)
			}
			return nil
		case !errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("read checkpoint: %w", err)
		}
	}
	weights := p.hooks.From
	if weights == nil {
		weights = p.network.Layout().Init(p.cfg.Seed)
	}
	return p.step.Start(weights)
}

func (p *passage[N]) restore(data []byte) error {
	r := bufio.NewReader(bytes.NewReader(data))
	line, err := r.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read its header: %w", err)
	}
	var h checkpointHeader
	if err := json.Unmarshal(line, &h); err != nil {
		return fmt.Errorf("read its header: %w", err)
	}
	if h.Kind != p.kind || h.Config != p.identity() {
		return errors.New("it is of a run with other settings; remove it, or use the settings it was made with")
	}
	if h.Best > 0 {
		if h.Best != p.network.Layout().Size {
			return fmt.Errorf("%d best weights, the network has %d", h.Best, p.network.Layout().Size)
		}
		p.best = make([]float32, h.Best)
		if err := binary.Read(r, binary.LittleEndian, p.best); err != nil {
			return fmt.Errorf("read the best weights: %w", err)
		}
	}
	state, err := train.DecodeState(r, p.network.Layout())
	if err != nil {
		return err
	}
	p.done, p.bad, p.report.Score, p.report.ScoreStep = state.Step, h.Bad, h.Score, h.AtStep
	return p.step.Restore(state)
}

// identity is the config without what the result does not depend on.
func (p *passage[N]) identity() TrainConfig {
	c := p.cfg
	c.Workers, c.CacheMB = 0, 0
	return c
}

// save writes the checkpoint, whole or not at all.
func (p *passage[N]) save() error {
	if p.hooks.Checkpoint == "" {
		return nil
	}
	state, err := p.step.State()
	if err != nil {
		return fmt.Errorf("write checkpoint: %w", err)
	}
	var file bytes.Buffer
	h := checkpointHeader{
		Kind: p.kind, Step: state.Step, Config: p.identity(), Score: p.report.Score, AtStep: p.report.ScoreStep, Bad: p.bad, Best: len(p.best),
	}
	if err := errors.Join(json.NewEncoder(&file).Encode(h), p.encode(&file, state)); err != nil {
		return fmt.Errorf("write checkpoint: %w", err)
	}
	if err := renameio.WriteFile(p.hooks.Checkpoint, file.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write checkpoint: %w", err)
	}
	return nil
}

func (p *passage[N]) encode(w io.Writer, state *train.State) error {
	if err := binary.Write(w, binary.LittleEndian, p.best); err != nil {
		return err
	}
	return state.Encode(w, p.network.Layout())
}
