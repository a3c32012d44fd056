package jobs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/lab/tables"
)

// A job is a table to be made of a packed series. Settings that it leaves out
// have the defaults of package tables.
type job struct {
	Name     string          `json:"name"`
	Data     string          `json:"data"`     // packed series; empty: a Gaussian sea
	Beside   []string        `json:"beside"`   // packed series that networks learn from besides
	Gaussian int             `json:"gaussian"` // days of the sea
	Prior    string          `json:"prior"`    // ONNX file of a mask prior; empty: trained where needed
	Size     string          `json:"size"`     // size of networks
	Side     int             `json:"side"`     // side of windows in cells; 0: 64
	Mode     impute.Mode     `json:"mode"`
	Table    string          `json:"table"` // name of a table; empty: Rows
	Rows     []tables.Row    `json:"rows"`  // a row with nothing but a name is taken from package tables
	Pictures bool            `json:"pictures"`
	Settings json.RawMessage `json:"settings"` // parts of tables.Settings

	// Other tasks for the first row's network.
	SpeedSteps int  `json:"speed_steps"` // steps of a timed training, in place of a table
	Classify   bool `json:"classify"`    // train P(query | context) in place of a table

	table    tables.Table
	settings tables.Settings
}

// readPlan reads a list of jobs, strictly.
func readPlan(path string, gpu bool) ([]job, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var plan []job
	if err := strict(data, &plan); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	names := map[string]bool{}
	for i := range plan {
		if err := plan[i].complete(gpu); err != nil {
			return nil, fmt.Errorf("read %s: job %d %s: %w", path, i+1, plan[i].Name, err)
		}
		if names[plan[i].Name] {
			return nil, fmt.Errorf("read %s: two jobs are called %q", path, plan[i].Name)
		}
		names[plan[i].Name] = true
	}
	return plan, nil
}

// only returns the jobs of a plan whose names are listed, in the order of the plan; an
// empty list: all of them.
func only(plan []job, list string) ([]job, error) {
	if list == "" {
		return plan, nil
	}
	asked := strings.Split(list, ",")
	var kept []job
	var known []string
	for _, j := range plan {
		known = append(known, j.Name)
		if slices.Contains(asked, j.Name) {
			kept = append(kept, j)
		}
	}
	for _, name := range asked {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("-only names %q, and the jobs of the plan are %s", name, strings.Join(known, ", "))
		}
	}
	return kept, nil
}

// complete adds the defaults.
func (j *job) complete(gpu bool) error {
	if j.Name == "" || (j.Data == "") == (j.Gaussian == 0) {
		return errors.New("set a name, and data or gaussian")
	}
	known := tables.Methods()
	for i, r := range j.Rows {
		if at := slices.IndexFunc(known, func(k tables.Row) bool { return k.Name == r.Name }); r.By == "" && at >= 0 {
			j.Rows[i] = known[at]
		}
	}
	j.table = tables.Table{Name: j.Name, About: "Rows as the plan has them.", Mode: j.Mode, Rows: j.Rows}
	if j.Table != "" {
		var err error
		if j.table, err = tables.Of(j.Table); err != nil {
			return err
		}
		j.table.Name = j.Name
	}
	if j.Mode == "" {
		j.Mode = j.table.Mode
	}
	s := tables.Default(j.Size, gpu).With(tables.Budget{Side: j.Side, Mode: j.Mode})
	if len(j.Settings) > 0 {
		if err := strict(j.Settings, &s); err != nil {
			return err
		}
	}
	s = s.With(tables.Budget{}) // derives dependent settings
	if len(j.Settings) > 0 {
		if err := strict(j.Settings, &s); err != nil {
			return err
		}
	}
	j.settings = s
	return errors.Join(j.table.Validate(), s.Validate())
}

func strict(text []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(to)
}
