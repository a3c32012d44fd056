package files

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"lacuna/daemon/cli"
	"lacuna/daemon/cli/input"
	"lacuna/daemon/fill"
	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"lacuna/internal/figure"
)

func inspectCommand() *cobra.Command {
	var options ingest.Options
	var asJSON bool
	c := &cobra.Command{
		Use:   "inspect FILE",
		Short: "show what Lacuna sees in a granule",
		Long: `Inspect reads a granule exactly as fill and the daemon do and shows what was
found: the variable, the grid, the times, how much of the sea was observed, what
quality control refused, what had to be assumed, and a coarse picture of the
field with the most observations.

Exit status: 0 readable, 1 not (with the reason), 2 usage.`,
		Example: "  lacuna inspect 20240312_chl.nc\n  lacuna inspect --json 20240312_chl.nc",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := options.Validate(); err != nil {
				return cli.Usage(err)
			}
			reader, err := cli.NewReader()
			if err != nil {
				return err
			}
			g, err := reader.Read(c.Context(), args[0], options)
			if err != nil {
				return err
			}
			sea, err := fill.SeaMask(c.Context(), fill.SeaAuto, reader, g, nil)
			if err != nil {
				return err
			}
			for i := range g.Fields {
				g.Fields[i].Sea = sea.Mask
			}
			if sea.Warning != "" {
				g.Notes = append(g.Notes, sea.Warning)
			}
			if asJSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(summarise(g, sea.Kind))
			}
			return printGranule(c.OutOrStdout(), g, sea.Kind)
		},
	}
	f := c.Flags()
	f.StringVar(&options.Product, "product", "", "product `NAME` that says how to read the file")
	f.StringVar(&options.Variable, "var", "", "`VARIABLE` to look at")
	input.AddPart(f, &options)
	f.StringArrayVar(&options.Quality, "quality", nil, "quality `RULE`, such as 'quality_level >= 4'; may be repeated")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// summary is a granule as inspect prints it.
type summary struct {
	File      string         `json:"file"`
	Format    string         `json:"format"`
	SHA256    string         `json:"sha256"`
	Variable  string         `json:"variable"`
	Units     string         `json:"units,omitempty"`
	Product   string         `json:"product,omitempty"`
	Transform string         `json:"transform"`
	Height    int            `json:"height"`
	Width     int            `json:"width"`
	Grid      string         `json:"grid"`
	SeaMask   string         `json:"sea_mask"` // file, builtin or learned
	Frames    []frameSummary `json:"frames"`
	Notes     []string       `json:"notes"`
}

type frameSummary struct {
	Time     time.Time `json:"time"`
	Observed int       `json:"observed"`
	Sea      int       `json:"sea"`
	Coverage float64   `json:"coverage"`
	Rejected int       `json:"rejected"`
	Min      *float64  `json:"min"` // null: nothing observed
	Mean     *float64  `json:"mean"`
	Max      *float64  `json:"max"`
}

func summarise(g ingest.Granule, seaMask string) summary {
	grid := g.Fields[0].Grid
	s := summary{
		File: g.Name, Format: g.Format, SHA256: g.SHA256, Variable: g.Source.Variable, Product: g.Product,
		Transform: g.Transform.String(), Height: grid.Height(), Width: grid.Width(), Grid: grid.String(),
		SeaMask: seaMask, Notes: g.Notes,
	}
	if seaMask == "granule" {
		s.SeaMask = "file" // that is inspected
	}
	if v, ok := g.Source.Var(g.Source.Variable); ok {
		for _, a := range v.Attrs {
			if text, isText := a.Value.(string); isText && a.Name == "units" {
				s.Units = text
			}
		}
	}
	for i, f := range g.Fields {
		observed, sea, share := f.Coverage()
		frame := frameSummary{Time: f.Time, Observed: observed, Sea: sea, Coverage: share}
		if g.Rejected != nil {
			frame.Rejected = g.Rejected[i].Count()
		}
		if st := field.Summarise(f.Values); st.N > 0 {
			frame.Min, frame.Mean, frame.Max = &st.Min, &st.Mean, &st.Max
		}
		s.Frames = append(s.Frames, frame)
	}
	return s
}

func printGranule(w io.Writer, g ingest.Granule, seaMask string) error {
	s := summarise(g, seaMask)
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-10s "+format+"\n", append([]any{name}, args...)...)
	}
	line("file", "%s (%s, sha256 %s…)", s.File, s.Format, s.SHA256[:12])
	line("variable", "%s [%s], %s", s.Variable, s.Units, cmp.Or(s.Product, "no known product"))
	line("transform", "%s", s.Transform)
	line("grid", "%s", s.Grid)
	first, last := s.Frames[0], s.Frames[len(s.Frames)-1]
	if len(s.Frames) == 1 {
		line("time", "%s", shortTime(first.Time))
	} else {
		line("times", "%d, from %s to %s", len(s.Frames), shortTime(first.Time), shortTime(last.Time))
	}
	best, observed, sea, rejected := 0, 0, 0, 0
	for i, f := range s.Frames {
		observed, sea, rejected = observed+f.Observed, sea+f.Sea, rejected+f.Rejected
		if f.Observed > s.Frames[best].Observed {
			best = i
		}
	}
	line("observed", "%.1f %% of %d sea cells (%s mask)", 100*float64(observed)/float64(max(sea, 1)), sea, s.SeaMask)
	line("rejected", "%d values refused by valid range or quality", rejected)
	for _, note := range s.Notes {
		line("note", "%s", note)
	}
	f := s.Frames[best]
	if f.Min != nil {
		fmt.Fprintf(&b, "\n%s, %s observed, %s from %.3g to %.3g, mean %.3g:\n", shortTime(f.Time), figure.Percent(f.Coverage), s.Variable, *f.Min, *f.Max, *f.Mean)
	}
	width, colour := pictureWidth(w)
	b.WriteString(sketch(g.Fields[best], g.Transform, width, colour))
	_, err := io.WriteString(w, b.String())
	return err
}

// pictureWidth returns how many columns a picture may take, and whether the
// terminal shows colours.
func pictureWidth(w io.Writer) (columns int, colour bool) {
	const plain = 72 // fits a page and a mail
	file, _ := w.(*os.File)
	if !cli.IsTerminal(w) {
		return plain, false
	}
	columns, _, err := term.GetSize(int(file.Fd()))
	if err != nil || columns < 20 {
		columns = plain
	}
	return min(columns, 120), os.Getenv("NO_COLOR") == ""
}

// A character cell of a terminal is about twice as high as wide.
const cellAspect = 2

// sketch draws f with characters, north up: blank for a gap, '#' for land (if
// known), and the shades .:-=+*%@ from the 2 to the 98 % quantile.
func sketch(f field.Field, t field.Transform, columns int, colour bool) string {
	h, w := f.Grid.Height(), f.Grid.Width()
	columns = min(columns, w)
	south, north, west, east := field.Grid{Lat: f.Grid.Lat, Lon: f.Grid.Lon}.Bounds() // of the picture, also of a bent grid
	stretch := math.Cos((south + north) / 2 * math.Pi / 180)
	rows := int(math.Round(float64(columns) * (north - south) / max((east-west)*stretch, 1e-9) / cellAspect))
	rows = min(max(rows, 4), 40, h)
	values := make([]float32, len(f.Values))
	t.Forward(values, f.Values)
	q := field.Quantiles(values, 0.02, 0.98)
	up, right := f.Grid.Lat[0] < f.Grid.Lat[h-1], f.Grid.Lon[0] <= f.Grid.Lon[w-1]
	var b strings.Builder
	for r := range rows {
		for c := range columns {
			r0, r1 := r*h/rows, max((r+1)*h/rows, r*h/rows+1)
			c0, c1 := c*w/columns, max((c+1)*w/columns, c*w/columns+1)
			if up {
				r0, r1 = h-r1, h-r0
			}
			if !right {
				c0, c1 = w-c1, w-c0
			}
			b.WriteString(glyph(blockMean(f, values, r0, r1, c0, c1), q[0], q[1], colour))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// landMark stands for a block without sea.
var landMark = math.Inf(1)

// blockMean returns the mean of the observations in a block of cells, NaN without
// any, landMark if the block is land.
func blockMean(f field.Field, values []float32, r0, r1, c0, c1 int) float64 {
	var sum float64
	var n, sea int
	for r := r0; r < r1; r++ {
		for c := c0; c < c1; c++ {
			i := r*f.Grid.Width() + c
			if f.Sea == nil || f.Sea[i] {
				sea++
			}
			if f.Observed(i) {
				sum += float64(values[i])
				n++
			}
		}
	}
	switch {
	case n > 0:
		return sum / float64(n)
	case sea == 0:
		return landMark
	}
	return math.NaN()
}

func glyph(v, low, high float64, colour bool) string {
	const shades = ".:-=+*%@"
	// The same eight steps from dark blue to yellow, of the 256-colour palette.
	colours := [...]int{17, 19, 26, 31, 36, 77, 148, 226}
	switch {
	case math.IsNaN(v):
		return " "
	case v == landMark:
		return "#"
	}
	step := int(float64(len(shades)) * (v - low) / max(high-low, 1e-12))
	step = min(max(step, 0), len(shades)-1)
	if colour {
		return fmt.Sprintf("\x1b[48;5;%dm \x1b[0m", colours[step])
	}
	return shades[step : step+1]
}
