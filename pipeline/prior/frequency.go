package prior

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"

	"lacuna/pipeline/samples"
)

// Frequency is how often each cell of a grid is observed, over the mean of the
// sea: a map of where it is cloudy. It tells a network that sees only a window
// where that window lies.
type Frequency struct {
	Height, Width int
	Steps         []uint8 // in frequencySteps a unit
}

// frequencySteps quantises the map: a hundredth of a mean frequency of 0.1 is
// finer than a year of days can tell, and 8 times the mean is the most.
const frequencySteps = 32

// FrequencyOf counts the days of data.
func FrequencyOf(data samples.Train) Frequency {
	grid, sea := data.Grid(), data.Sea()
	whole := samples.Window{Height: grid.Height(), Width: grid.Width()}
	counts := make([]float64, grid.Len())
	for day := range data.Days() {
		for c, v := range data.Cut(samples.Ref{Day: day, Window: whole}).Values {
			if v == v { // not NaN
				counts[c]++
			}
		}
	}
	sum := 0.0
	for _, n := range counts {
		sum += n // nothing is observed on land
	}
	mean := sum / float64(max(sea.Count(), 1))
	f := Frequency{Height: grid.Height(), Width: grid.Width(), Steps: make([]uint8, grid.Len())}
	for c, n := range counts {
		f.Steps[c] = uint8(min(math.Round(frequencySteps*n/max(mean, 1e-9)), math.MaxUint8))
	}
	return f
}

// SetFrequency gives the map to a prior that has it in its config. It is for the
// time before the model is shared.
func (m *Model) SetFrequency(f Frequency) { m.places = f }

// FitsGrid reports whether the prior may be used on a grid of so many cells: one
// that has learned a map of frequencies only on the grid of the map.
func (m *Model) FitsGrid(height, width int) bool {
	return !m.cfg.Frequency || m.places.Height == height && m.places.Width == width
}

// fill stores the frequency in the cells of a place, less one, in a plane of
// a padded size; 0 beyond the grid, unless there is sea: then the grid closes, and it is
// that of the other side.
func (f Frequency) fill(plane []float32, p Place, padded size) {
	for i := range p.Height {
		for j := range p.Width {
			row, col := p.Row+i, p.Col+j
			if p.Sea != nil && p.Sea[i*p.Width+j] {
				col = (col%f.Width + f.Width) % f.Width
			}
			if row >= 0 && col >= 0 && row < f.Height && col < f.Width {
				plane[i*padded.width+j] = float32(f.Steps[row*f.Width+col])/frequencySteps - 1
			}
		}
	}
}

// storedFrequency is the map in the metadata of a file.
type storedFrequency struct {
	Height int    `json:"height"`
	Width  int    `json:"width"`
	Steps  string `json:"steps"`
}

func (f Frequency) encode() (string, error) {
	text, err := json.Marshal(storedFrequency{f.Height, f.Width, base64.StdEncoding.EncodeToString(f.Steps)})
	return string(text), err
}

func decodeFrequency(text string) (Frequency, error) {
	var s storedFrequency
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return Frequency{}, err
	}
	steps, err := base64.StdEncoding.DecodeString(s.Steps)
	if err != nil {
		return Frequency{}, err
	}
	if s.Height < 0 || s.Width < 0 || len(steps) != s.Height*s.Width {
		return Frequency{}, fmt.Errorf("%d cells for a map of %dx%d", len(steps), s.Height, s.Width)
	}
	return Frequency{s.Height, s.Width, steps}, nil
}
