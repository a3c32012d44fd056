package measure

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lacuna/daemon/cli"
	"lacuna/daemon/covariates"
	"lacuna/pipeline/classical"
	"lacuna/pipeline/covariate"
	"lacuna/pipeline/lab/tables"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/version"
)

// brought is what covariates bring: to optimal interpolation, and to versions by the name
// of their row.
type brought struct {
	covariate.Regression
	Networks map[string]covariate.Kept `json:"networks,omitempty"`

	rows []string // that have networks, in order
}

// addCovariates finds out what covariates bring, gives those that pay to the days of a
// table, and lets the versions among its rows see theirs. It returns nil without any.
func (f *evaluateFlags) addCovariates(ctx context.Context, job *tables.Job, stderr io.Writer) (*brought, error) {
	if !f.beside.Any() {
		return nil, nil
	}
	if _, err := f.beside.Join(ctx, &job.Series, stderr); err != nil {
		return nil, err
	}
	s, mode := job.Series, cmp.Or(job.Settings.Mode, job.Table.Mode)
	terms := version.TermsOf(s)
	if _, future := mode.Window(); future > 0 { // what a network never sees
		reader, err := cli.NewReader()
		if err != nil {
			return nil, err
		}
		beside := f.beside.Open(reader, stderr)
		times := make([]time.Time, len(s.Days))
		for i, d := range s.Days {
			times[i] = d.Time
		}
		answer, err := beside.Terms(ctx, covariates.Request{Grid: s.Grid, Sea: s.Sea, Times: times, Ahead: true})
		if err != nil {
			return nil, err
		}
		terms = answer.Terms
	}
	b := &brought{Networks: map[string]covariate.Kept{}}
	calendar := samples.Extend(job.Calendar, s.Days, job.Settings.Split)
	var err error
	job.Series, b.Regression, err = version.Explain(ctx, s, terms, calendar, classical.DefaultOI(s.Grid), mode)
	job.Done = func(r tables.Record) {
		if r.Covariates != nil {
			b.rows, b.Networks[r.Verdict.Method] = append(b.rows, r.Verdict.Method), *r.Covariates
		}
	}
	return b, err
}

// keep writes what was found out beside the results.
func (b *brought) keep(dir string) error {
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "covariates.json"), append(text, '\n'), 0o644) //nolint:gosec // results are for everybody
}

// markdown returns a table of what each covariate brings.
func (b *brought) markdown() string {
	var t strings.Builder
	t.WriteString("## Covariates\n\n")
	if b.Note != "" {
		fmt.Fprintf(&t, "%s%s.\n\n", strings.ToUpper(b.Note[:1]), b.Note[1:])
	} else {
		fmt.Fprintf(&t, "Of optimal interpolation fitted on %d days and chosen by %d; of a network as it was trained. What each saves of the squared error on held-out days:\n\n", b.Learn, b.Choose)
	}
	columns := append([]covariate.Kept{{Judged: b.Judged, Gain: b.Gain}}, make([]covariate.Kept, len(b.rows))...)
	fmt.Fprintf(&t, "| covariate | optimal interpolation |")
	for i, name := range b.rows {
		columns[1+i] = b.Networks[name]
		fmt.Fprintf(&t, " %s |", name)
	}
	t.WriteString("\n|---|" + strings.Repeat("---|", len(columns)) + "\n")
	for _, name := range names(columns) {
		fmt.Fprintf(&t, "| %s |", name)
		for _, c := range columns {
			said := "it does not know it"
			if i := slices.IndexFunc(c.Judged, func(v covariate.Verdict) bool { return v.Name == name }); i >= 0 {
				said = c.Judged[i].Said()
			}
			fmt.Fprintf(&t, " %s |", said)
		}
		t.WriteString("\n")
	}
	t.WriteString("| all that are used |")
	for _, c := range columns {
		if c.Gain != nil {
			fmt.Fprintf(&t, " %v |", *c.Gain)
		} else {
			t.WriteString(" |")
		}
	}
	return t.String() + "\n\n"
}

// names returns the covariates of columns, each once.
func names(columns []covariate.Kept) []string {
	var out []string
	for _, c := range columns {
		for _, v := range c.Judged {
			if !slices.Contains(out, v.Name) {
				out = append(out, v.Name)
			}
		}
	}
	return out
}
