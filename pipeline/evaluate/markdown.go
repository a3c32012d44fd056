package evaluate

import (
	"fmt"
	"strings"

	"lacuna/internal/figure"
	"lacuna/pipeline/skill"
)

// Markdown returns the tables in Markdown.
func (r Results) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s: %s, %s, %d×%d, %d overlays\n\n", r.Table, r.Dataset, r.Mode, r.Side, r.Side, r.Cases)
	r.scores(&b)
	r.truths(&b)
	r.masks(&b)
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "- %s\n", n)
	}
	return b.String()
}

// scores writes two tables: the errors of the map, and its calibration and texture.
func (r Results) scores(b *strings.Builder) {
	header(b, "method", "MSE", "against "+r.Reference, "gap MSE", "PSNR", "RMSE", "bias", "calls")
	for _, row := range r.Rows {
		mse := fmt.Sprintf("%.4f", row.MSE.Mean)
		if row.Seeds > 1 {
			mse += fmt.Sprintf(" ± %.4f (%d seeds)", row.MSE.Half, row.Seeds)
		}
		calls := "–"
		if row.Calls > 0 {
			calls = fmt.Sprint(row.Calls)
		}
		c := row.Scores
		line(b, row.Method, mse, difference(row.Difference), number(c.GapMSE, 4), number(c.PSNR, 2), significant(c.RMSEPhysical), significant(c.BiasPhysical), calls)
	}
	b.WriteString("\n")
	header(b, "method", "CRPS", "against "+r.Reference, "spread/skill", "90 % covers", "CBGD", "off 1 by", "resolved, cells")
	for _, row := range r.Rows {
		c, name := row.Scores, row.Method
		if row.SelfCalibrated {
			name += " (calibrated on itself)"
		}
		line(b, name, number(c.CRPS, 4), difference(row.CRPSDifference), number(c.SpreadSkill, 2), covers(c.Coverage90, row.CoverageIn),
			number(c.CBGD, 3), number(c.CBGDError, 3), number(c.Resolved, 1))
	}
	b.WriteString("\n")
}

// difference formats the difference from the reference, in bold where chance
// does not explain it.
func difference(d *skill.Difference) string {
	if d == nil {
		return "–"
	}
	text := fmt.Sprintf("%+.4f [%+.4f, %+.4f]", d.Mean, d.Interval.Low, d.Interval.High)
	base := d.Base
	if base == 0 && d.Relative != 0 { // a result of before it was kept
		base = d.Mean / d.Relative
	}
	if base > 0 {
		text = figure.ChangeWithin(d.Relative, d.Interval.Low/base, d.Interval.High/base)
	}
	if d.Interval.Low > 0 || d.Interval.High < 0 {
		return "**" + text + "**"
	}
	return text
}

func (r Results) truths(b *strings.Builder) {
	first := true
	for _, row := range r.Rows {
		t := row.Truth
		if t == nil {
			continue
		}
		if first {
			b.WriteString("Scored against the truth, under overlays and under the real clouds:\n\n")
			header(b, "method", "MSE under overlays", "MSE under real clouds", "difference")
			first = false
		}
		relative := "–"
		if t.Overlay > 0 {
			relative = figure.Change((t.Gaps - t.Overlay) / t.Overlay)
		}
		line(b, row.Method, within(t.Overlay, t.OverlayIn), within(t.Gaps, t.GapsIn), relative)
	}
	if !first {
		b.WriteString("\n")
	}
}

func (r Results) masks(b *strings.Builder) {
	first := true
	for _, row := range r.Rows {
		m := row.Masks
		if m == nil {
			continue
		}
		if first {
			b.WriteString("Masks of the strategy:\n\n")
			header(b, "method", "context share", "sd over draws", "draws")
			first = false
		}
		line(b, row.Method, fmt.Sprintf("%.3f", m.ContextShare), fmt.Sprintf("%.3f", m.SD), fmt.Sprint(m.Draws))
	}
	if !first {
		b.WriteString("\n")
	}
}

func header(b *strings.Builder, names ...string) {
	line(b, names...)
	b.WriteString(strings.Repeat("|---", len(names)) + "|\n")
}

func line(b *strings.Builder, cells ...string) {
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

func within(v float64, in *skill.Interval) string {
	if in == nil {
		return fmt.Sprintf("%.4f", v)
	}
	return fmt.Sprintf("%.4f [%.4f, %.4f]", v, in.Low, in.High)
}

func covers(share *float64, in *skill.Interval) string {
	if share == nil || in == nil {
		return number(share, 3)
	}
	return fmt.Sprintf("%.3f [%.3f, %.3f]", *share, in.Low, in.High)
}

func number(v *float64, digits int) string {
	if v == nil {
		return "–"
	}
	return fmt.Sprintf("%.*f", digits, *v)
}

// significant formats a number in physical units, whose size is not known
// beforehand.
func significant(v *float64) string {
	if v == nil {
		return "–"
	}
	return fmt.Sprintf("%.3g", *v)
}
