package impute

import "lacuna/pipeline/samples"

// A Turn is one of the eight ways to mirror a square: first north and south, then
// west and east are exchanged, then the two axes.
type Turn struct{ NorthSouth, WestEast, Transpose bool }

// Turns returns all of them, the first of which changes nothing.
func Turns() []Turn {
	var all []Turn
	for i := range 8 {
		all = append(all, Turn{i&1 != 0, i&2 != 0, i&4 != 0})
	}
	return all
}

// Turn mirrors all planes. Only a square image can be transposed.
func (m Image) Turn(t Turn) {
	cells := m.Height * m.Width
	for p := 0; p+cells <= len(m.Data); p += cells {
		plane := m.Data[p : p+cells]
		if t.NorthSouth {
			mirrorRows(plane, m.Width)
		}
		if t.WestEast {
			for row := range m.Height {
				mirrorRows(plane[row*m.Width:(row+1)*m.Width], 1)
			}
		}
		if t.Transpose {
			for row := range m.Height {
				for col := range row {
					a, b := row*m.Width+col, col*m.Width+row
					plane[a], plane[b] = plane[b], plane[a]
				}
			}
		}
	}
}

// mirrorRows exchanges the rows of a plane of the given width, first with last.
func mirrorRows(plane []float32, width int) {
	for i, j := 0, len(plane)-width; i < j; i, j = i+width, j-width {
		for k := range width {
			plane[i+k], plane[j+k] = plane[j+k], plane[i+k]
		}
	}
}

// Scale multiplies planes by a factor.
func (m Image) Scale(factor float32, planes ...int) {
	for _, i := range planes {
		for cell, v := range m.Plane(i) {
			m.Plane(i)[cell] = factor * v
		}
	}
}

// inverse returns the turn that undoes t.
func (t Turn) inverse() Turn {
	if t.Transpose {
		t.NorthSouth, t.WestEast = t.WestEast, t.NorthSouth
	}
	return t
}

// Turn returns the inputs of the mirror image of a window.
func (in Inputs) Turn(t Turn) Inputs {
	if t == (Turn{}) {
		return in
	}
	by := turner{t, in.Height, in.Width}
	composite := func(c samples.Composite) samples.Composite {
		return samples.Composite{Value: turn(by, c.Value), Freshness: turn(by, c.Freshness)}
	}
	out := in
	if t.Transpose {
		out.Height, out.Width = in.Width, in.Height
	}
	out.Values, out.Visible, out.Sea = turn(by, in.Values), turn(by, in.Visible), turn(by, in.Sea)
	out.Last, out.Next = composite(in.Last), composite(in.Next)
	out.Background, out.BackgroundSigma = turn(by, in.Background), turn(by, in.BackgroundSigma)
	out.Analysis, out.AnalysisSigma = turn(by, in.Analysis), turn(by, in.AnalysisSigma)
	out.Covariates = nil
	for _, m := range in.Covariates {
		out.Covariates = append(out.Covariates, turn(by, m))
	}
	return out
}

// A turner turns maps of height x width cells.
type turner struct {
	Turn
	height, width int
}

// turn returns the mirror image of a map.
func turn[T any](t turner, values []T) []T {
	if values == nil || t.Turn == (Turn{}) {
		return values
	}
	out := make([]T, len(values))
	for row := range t.height {
		for col := range t.width {
			r, c, width := row, col, t.width
			if t.NorthSouth {
				r = t.height - 1 - r
			}
			if t.WestEast {
				c = t.width - 1 - c
			}
			if t.Transpose {
				r, c, width = c, r, t.height
			}
			out[r*width+c] = values[row*t.width+col]
		}
	}
	return out
}
