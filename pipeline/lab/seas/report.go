package seas

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"lacuna/internal/durable"
	"lacuna/pipeline/impute"
)

// The bar that a network for strangers has to meet on seas that it never saw.
const (
	worstAllowed  = 0.01  // MSE above that of optimal interpolation, on any sea
	meanWanted    = -0.03 // mean over the seas
	coverageLeast = 0.87
	coverageMost  = 0.93
)

// report writes the records as lines of JSON and as a table.
func (l *lab) report(all []record) error {
	var lines bytes.Buffer
	enc := json.NewEncoder(&lines)
	for _, r := range all {
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	if err := durable.WriteFile(filepath.Join(l.output, "results.jsonl"), lines.Bytes(), 0o644); err != nil {
		return err
	}
	return durable.WriteFile(filepath.Join(l.output, "results.md"), []byte(markdown(all)), 0o644)
}

// markdown returns the tables of records.
func markdown(all []record) string {
	var b strings.Builder
	for _, mode := range []impute.Mode{impute.Past, impute.Delayed} {
		var own []record
		for _, r := range all {
			if r.Mode == mode {
				own = append(own, r)
			}
		}
		if len(own) == 0 {
			continue
		}
		fmt.Fprintf(&b, "## %s, windows of %d\n\n", mode, own[0].Side)
		b.WriteString("| left out | judged on | days | overlays | method | MSE | against OI | CRPS | against OI | covers 90 % |\n|---|---|---|---|---|---|---|---|---|---|\n")
		for _, r := range own {
			for _, m := range r.Rows {
				fmt.Fprintf(&b, "| %s | %s | %d | %d | %s | %.4f | %s | %.4f | %s | %s |\n",
					r.Left, r.Sea, r.Days, r.Overlays, m.name(), m.MSE, m.ByMSE, m.CRPS, m.ByCRPS, m.coverage())
			}
		}
		writeCurves(&b, own)
		for _, method := range []string{methodServed, methodTrusted} {
			if bar := barOf(own, method); bar.seas > 0 {
				b.WriteString(bar.String() + "\n")
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

func (m row) name() string {
	if m.Method == methodNetwork {
		return fmt.Sprintf("%s %d", m.Method, m.Seed)
	}
	return m.Method
}

// coverage writes the coverage with its interval.
func (m row) coverage() string {
	if m.CoverageIn == nil {
		return fmt.Sprintf("%.3f", m.Coverage)
	}
	return fmt.Sprintf("%.3f [%.3f, %.3f]", m.Coverage, m.CoverageIn.Low, m.CoverageIn.High)
}

// String writes a difference in per cent with its interval.
func (d *difference) String() string {
	switch {
	case d == nil:
		return ""
	case d.Interval == nil:
		return fmt.Sprintf("%+.1f %%", 100*d.Relative)
	}
	return fmt.Sprintf("%+.1f %% [%+.1f, %+.1f]", 100*d.Relative, 100*d.Interval.Low, 100*d.Interval.High)
}

// writeCurves writes the trust curves: the change of MSE by how far the network is
// followed.
func writeCurves(b *strings.Builder, all []record) {
	b.WriteString("\n| followed by |")
	for _, p := range all[0].Curve {
		fmt.Fprintf(b, " %.1f |", p.Share)
	}
	b.WriteString(" learned share |\n|---|" + strings.Repeat("---|", len(all[0].Curve)+1) + "\n")
	for _, r := range all {
		fmt.Fprintf(b, "| %s |", r.Sea)
		for _, p := range r.Curve {
			fmt.Fprintf(b, " %+.1f %% |", 100*p.Relative)
		}
		fmt.Fprintf(b, " %.2f |\n", r.Share)
	}
	b.WriteString("\n")
}

// A bar is how a method stands to what is wanted of it.
type bar struct {
	method      string
	seas        int
	mean, worst float64 // change of MSE
	at          string  // sea of the worst
	least, most float64 // coverage
}

// barOf returns the bar of a method over the records of a mode that are of a sea
// which was left out.
func barOf(all []record, method string) bar {
	b := bar{method: method, worst: -1, least: 1}
	for _, r := range all {
		for _, m := range r.Rows {
			if m.Method != method || r.Left != r.Sea {
				continue
			}
			b.seas++
			b.mean += m.ByMSE.Relative
			if m.ByMSE.Relative > b.worst {
				b.worst, b.at = m.ByMSE.Relative, r.Sea
			}
			b.least, b.most = min(b.least, m.Coverage), max(b.most, m.Coverage)
		}
	}
	b.mean /= float64(max(b.seas, 1))
	return b
}

// met reports whether the bar is met.
func (b bar) met() bool {
	return b.seas > 0 && b.worst <= worstAllowed && b.mean <= meanWanted && b.least >= coverageLeast && b.most <= coverageMost
}

// String writes the bar as a sentence.
func (b bar) String() string {
	verdict := "not met"
	if b.met() {
		verdict = "met"
	}
	return fmt.Sprintf("- %s: mean over %d seas %+.1f %%, worst %+.1f %% (%s), coverage %.3f to %.3f: the bar is %s",
		b.method, b.seas, 100*b.mean, 100*b.worst, b.at, b.least, b.most, verdict)
}
