package tables

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"

	"lacuna/pipeline/field"
)

// A Sample is what a row answered to the case that pictures show, with all that
// a picture needs: records of several runs make one sheet of it.
type Sample struct {
	Case    int        `json:"case"`    // number among the overlays
	Caption string     `json:"caption"` // place, day and the rule of choice
	Grid    field.Grid `json:"grid"`
	Log10   bool       `json:"log10"` // values are decimal logarithms
	Sea     Cells      `json:"sea"`
	Visible Cells      `json:"visible"`
	Scored  Cells      `json:"scored"`
	Truth   Values     `json:"truth"`
	Filled  Values     `json:"filled"`
}

// sample returns the sample of an entry. Only first seeds have one: pictures
// show no others.
func (r *run) sample(e entry) (*Sample, error) {
	if e.seed != 1 {
		return nil, nil
	}
	p, err := r.reconstruction(e)
	if err != nil {
		return nil, err
	}
	return &Sample{
		Case: r.median, Caption: p.Caption, Grid: p.Grid, Log10: p.Log10,
		Sea: Cells(p.Sea), Visible: Cells(p.Visible), Scored: Cells(p.Scored), Truth: p.Truth, Filled: p.Filled,
	}, nil
}

// Cells is a mask that is written as a word of zeros and ones, a fifth of what
// JSON makes of it.
type Cells []bool

// MarshalJSON implements json.Marshaler.
func (c Cells) MarshalJSON() ([]byte, error) {
	word := make([]byte, len(c))
	for i, on := range c {
		word[i] = '0'
		if on {
			word[i] = '1'
		}
	}
	return json.Marshal(string(word))
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *Cells) UnmarshalJSON(data []byte) error {
	var word string
	if err := json.Unmarshal(data, &word); err != nil {
		return err
	}
	*c = make(Cells, len(word))
	for i := range word {
		(*c)[i] = word[i] == '1'
	}
	return nil
}

// Values is a map, written in base64: JSON has no NaN, and twice the length.
type Values []float32

// MarshalJSON implements json.Marshaler.
func (v Values) MarshalJSON() ([]byte, error) {
	data := make([]byte, 0, 4*len(v))
	for _, x := range v {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
	}
	return json.Marshal(base64.StdEncoding.EncodeToString(data))
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *Values) UnmarshalJSON(text []byte) error {
	var data []byte // JSON has bytes in base64
	if err := json.Unmarshal(text, &data); err != nil {
		return err
	}
	if len(data)%4 != 0 {
		return fmt.Errorf("a map of %d bytes is cut off", len(data))
	}
	*v = make(Values, len(data)/4)
	for i := range *v {
		(*v)[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return nil
}
