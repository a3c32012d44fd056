package scenes

import (
	"context"
	"fmt"
	"io"
	"math"

	"lacuna/pipeline/field"
	"lacuna/pipeline/infer"
)

// Seams measures the traces of windows in filled scenes.
type Seams struct {
	Windows [2]int `json:"windows"` // sides, in cells
	Scenes  int    `json:"scenes"`
	// Gradient is the mean difference between neighbours at the borders of the
	// first windows over that elsewhere, divided by the same ratio for the scene
	// filled as a whole: 1 is no seam.
	Gradient        float64 `json:"gradient_ratio"`
	GradientMembers float64 `json:"gradient_ratio_members,omitempty"`
	// Differ is the difference of two tilings, and Spread the stated
	// uncertainty, both as root mean squares in the space of the transform.
	Differ float64 `json:"differ"`
	Spread float64 `json:"spread"`
}

// Seams fills scenes whole and in windows of two sizes.
func (c Config) Seams(ctx context.Context, sub Subject, windows [2]int, progress func(done, total int)) (Seams, error) {
	out := Seams{Windows: windows}
	list, _, err := c.scenes(sub)
	if err != nil {
		return out, err
	}
	whole := max(sub.Series.Grid.Height(), sub.Series.Grid.Width(), windows[0])
	var mean, member ratio
	var differ, spread, n float64
	for k, sc := range list {
		var said [3]infer.Analysis
		for i, window := range []int{whole, windows[0], windows[1]} {
			if said[i], err = fillIn(ctx, sub, sc, window); err != nil {
				return out, err
			}
		}
		b := newBorders(sub.Series.Grid, windows[0])
		b.filled = said[0].Flags
		tiled, other := transformed(sc, said[1].Value), transformed(sc, said[2].Value)
		mean.add(b, transformed(sc, said[0].Value), tiled)
		if all := said[0].Members; len(all) > 0 {
			member.add(b, transformed(sc, all[0]), transformed(sc, said[1].Members[0]))
		}
		for i, flags := range said[0].Flags {
			if flags == infer.Interpolated {
				d, sigma := float64(tiled[i]-other[i]), float64(said[0].Sigma[i])
				differ, spread, n = differ+d*d, spread+sigma*sigma, n+1
			}
		}
		out.Scenes++
		progress(k+1, len(list))
	}
	out.Gradient, out.GradientMembers = mean.value(), member.value()
	out.Differ, out.Spread = math.Sqrt(differ/n), math.Sqrt(spread/n)
	return out, nil
}

func fillIn(ctx context.Context, sub Subject, sc scene, window int) (infer.Analysis, error) {
	fill := sub.Fill
	fill.Network.WindowCells = window
	f, err := infer.New(fill, sub.Model)
	if err != nil {
		return infer.Analysis{}, err
	}
	all, err := f.Fill(ctx, sc.Scene, nil)
	if err != nil {
		return infer.Analysis{}, err
	}
	return all[0], nil
}

// borders are the lines of a grid along which seams would show.
type borders struct {
	width    int
	row, col []bool // within two cells of a border
	filled   []byte // flags of a scene: only filled cells count
}

func newBorders(g field.Grid, window int) borders {
	b := borders{width: g.Width(), row: make([]bool, g.Height()), col: make([]bool, g.Width())}
	rows, cols := infer.Borders(g, window)
	mark := func(near []bool, at []int) {
		for _, line := range at {
			for d := -2; d <= 1; d++ {
				if i := line + d; i >= 0 && i < len(near) {
					near[i] = true
				}
			}
		}
	}
	mark(b.row, rows)
	mark(b.col, cols)
	return b
}

func (b borders) both(i, j int) bool { return b.filled[i]&b.filled[j]&infer.Interpolated != 0 }

// A ratio is gradients at borders and elsewhere, of whole and of tiled scenes.
type ratio struct{ sum, n [2][2]float64 }

func (r *ratio) add(b borders, whole, tiled []float32) {
	for kind, m := range [2][]float32{whole, tiled} {
		for i := range m {
			row, col := i/b.width, i%b.width
			if col > 0 && b.both(i, i-1) {
				r.count(kind, b.col[col], m[i]-m[i-1])
			}
			if row > 0 && b.both(i, i-b.width) {
				r.count(kind, b.row[row], m[i]-m[i-b.width])
			}
		}
	}
}

func (r *ratio) count(kind int, border bool, d float32) {
	at := 0
	if border {
		at = 1
	}
	r.sum[kind][at] += math.Abs(float64(d))
	r.n[kind][at]++
}

// value returns 0 if nothing was added.
func (r *ratio) value() float64 {
	if r.n[1][1] == 0 {
		return 0
	}
	rough := func(kind int) float64 { return r.sum[kind][1] / r.n[kind][1] / (r.sum[kind][0] / r.n[kind][0]) }
	return rough(1) / rough(0)
}

// Print writes the report as a table.
func (s Seams) Print(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%d scenes whole, in windows of %d and of %d cells\ngradient at borders %.4f of that without", s.Scenes, s.Windows[0], s.Windows[1], s.Gradient)
	if err == nil && s.GradientMembers > 0 {
		_, err = fmt.Fprintf(w, ", of members %.4f", s.GradientMembers)
	}
	if err == nil {
		_, err = fmt.Fprintf(w, "\ntwo tilings differ by %.4f, the spread is %.4f: %.2f of it\n", s.Differ, s.Spread, s.Differ/s.Spread)
	}
	return err
}
