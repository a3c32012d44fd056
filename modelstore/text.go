package modelstore

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"lacuna/internal/figure"
)

// Text describes the card for people.
func (c Card) Text() string {
	t := newText()
	t.line("kind", "%s, for dataset %s", orUnknown(c.Kind), c.Dataset)
	t.line("variable", "%s%s, transform %s, mean %.4g, deviation %.4g", orUnknown(c.Variable), brackets(c.Units),
		orElse(c.Transform, "none"), c.Normalisation.Mean, c.Normalisation.Std)
	t.line("created", "%s by Lacuna %s", c.Created.UTC().Format(time.RFC3339), orUnknown(c.Lacuna))
	t.line("parent", "%s", orElse(c.Parent, "none: trained from scratch"))
	t.note("note", c.Note)
	if c.Schema > CardSchema {
		t.note("schema", fmt.Sprintf("%d, of a newer Lacuna: what it added is not shown here", c.Schema))
	}
	c.textData(t)
	c.textNetworks(t)
	c.textScores(t)
	c.textTraining(t)
	for _, name := range slices.Sorted(maps.Keys(c.Settings)) {
		t.line("settings", "%s: %s", name, compact(c.Settings[name]))
	}
	for _, f := range c.Files {
		t.line("file", "%s, %s, sha256 %s…", f.Name, figure.Bytes(f.Bytes), f.SHA256[:min(len(f.SHA256), idDigits)])
	}
	return t.String()
}

func (c Card) textData(t *text) {
	if n := len(c.Data.Granules); n > 0 || !c.Data.From.IsZero() {
		t.line("data", "%d granules from %s to %s, each with its sha256 in the card", n, day(c.Data.From), day(c.Data.To))
	}
	if n := len(c.Data.Beside); n > 0 {
		t.line("beside", "%d granules of other datasets were learned from as well", n)
	}
	if c.Split.TrainDays > 0 || c.Split.Known() {
		t.line("split", "%s", c.Split.text())
	}
}

func (c Card) textNetworks(t *text) {
	for _, n := range c.Networks {
		t.line("network", "%s: %s %s, %s parameters", n.File, n.Size, n.Backbone, figure.Count(n.Parameters))
	}
	if e := c.Elsewhere; e != nil {
		t.line("elsewhere", "on %d seas that such networks never saw, %.2f ± %.2f of the way from optimal interpolation was best", e.Seas, e.Share, e.Spread)
	}
	if c.Guidance != 0 {
		t.line("guidance", "%.4g, found automatically", c.Guidance)
	}
	if c.Calibration != (Calibration{}) {
		t.line("calibration", "%s%s", c.Calibration.File, comma(c.Calibration.Note))
	}
}

// textScores shows all sides beside each other.
func (c Card) textScores(t *text) {
	names := map[string]bool{}
	for name := range c.Scores.Challenger {
		names[name] = true
	}
	for name := range c.Scores.Champion {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		line := name + ": " + score(c.Scores.Challenger, name)
		if _, ok := c.Scores.Champion[name]; ok {
			line += ", the champion then " + score(c.Scores.Champion, name)
		}
		if _, ok := c.Scores.Interpolation[name]; ok {
			line += ", optimal interpolation " + score(c.Scores.Interpolation, name)
		}
		t.line("score", "%s", line)
	}
	t.note("scored on", c.Scores.On)
}

func (c Card) textTraining(t *text) {
	if c.Training.Seconds > 0 || c.Training.Steps > 0 {
		t.line("training", "%d steps in %s%s", c.Training.Steps, figure.Seconds(c.Training.Seconds), comma(c.Training.Hardware))
	}
	var phases []string
	for _, name := range slices.Sorted(maps.Keys(c.Training.Phases)) {
		phases = append(phases, fmt.Sprintf("%s %.0f s", name, c.Training.Phases[name]))
	}
	if len(phases) > 0 {
		t.line("phases", "%s", strings.Join(phases, ", "))
	}
	if c.Training.PeakMemoryBytes > 0 {
		t.line("memory", "%s at the peak%s", figure.Bytes(c.Training.PeakMemoryBytes), onDevice(c.Training.PeakDeviceBytes))
	}
	if c.Engine.Name != "" {
		t.line("engine", "%s%s", c.Engine.Name, comma(c.Engine.Device))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Engine.Libraries)) {
		t.line("library", "%s %s", name, c.Engine.Libraries[name])
	}
	for _, name := range slices.Sorted(maps.Keys(c.Seeds)) {
		t.line("seed", "%s: %d", name, c.Seeds[name])
	}
}

// text is a page of named lines.
type text struct {
	b strings.Builder
	w *tabwriter.Writer
}

func newText() *text {
	t := &text{}
	const nameColumns = len("calibration") + 2 // the longest, so that pages line up
	t.w = tabwriter.NewWriter(&t.b, nameColumns, 0, 2, ' ', 0)
	return t
}

func (t *text) line(name, format string, args ...any) {
	fmt.Fprintf(t.w, "%s\t%s\n", name, Printable(fmt.Sprintf(format, args...)))
}

func (t *text) note(name, value string) {
	if value != "" {
		t.line(name, "%s", value)
	}
}

func (t *text) String() string {
	t.w.Flush() // to a strings.Builder, which takes everything
	return t.b.String()
}

// Printable returns s without the characters that move the cursor of a
// terminal: the text of a card or a log may come from elsewhere.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) {
			return ' '
		}
		return r
	}, s)
}

func score(scores map[string]float64, name string) string {
	v, ok := scores[name]
	if !ok {
		return "unknown"
	}
	return fmt.Sprintf("%.5g", v)
}

// compact writes a section of settings on one line, cut where it is long.
func compact(raw json.RawMessage) string {
	const columns = 200 // the card has all of it
	s := strings.Join(strings.Fields(string(raw)), " ")
	if len(s) > columns {
		s = strings.ToValidUTF8(s[:columns], "") + "…"
	}
	return s
}

func day(t time.Time) string {
	if t.IsZero() {
		return "unknown"
	}
	return t.UTC().Format(time.DateOnly)
}

func brackets(s string) string {
	if s == "" {
		return ""
	}
	return " [" + s + "]"
}

func comma(s string) string {
	if s == "" {
		return ""
	}
	return ", " + s
}

func orUnknown(s string) string { return orElse(s, "unknown") }

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// onDevice returns the peak memory of a graphics card in words.
func onDevice(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return fmt.Sprintf(", %s of the graphics card", figure.Bytes(bytes))
}
