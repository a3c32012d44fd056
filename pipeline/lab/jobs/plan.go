package jobs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"lacuna/pipeline/impute"
	"lacuna/pipeline/lab/tables"
)

// A job is a table to be made of a packed series. What it does not say is as
// package tables has it.
type job struct {
	Name     string          `json:"name"`
	Data     string          `json:"data"`     // packed series; empty: a Gaussian sea
	Gaussian int             `json:"gaussian"` // days of the sea
	Prior    string          `json:"prior"`    // ONNX file of a mask prior; empty: trained where needed
	Size     string          `json:"size"`     // of networks
	Side     int             `json:"side"`     // of windows, in cells; 0: 64
	Mode     impute.Mode     `json:"mode"`
	Table    string          `json:"table"` // by name, or
	Rows     []tables.Row    `json:"rows"`  // one with a name alone is that of all tables
	Pictures bool            `json:"pictures"`
	Settings json.RawMessage `json:"settings"` // parts of tables.Settings

	// What else may be asked of the first row's network.
	SpeedSteps int  `json:"speed_steps"` // of timed training, in place of a table
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

// complete adds what the job does not say.
func (j *job) complete(gpu bool) error {
	if j.Name == "" || (j.Data == "") == (j.Gaussian == 0) {
		return errors.New("it needs a name, and data or gaussian")
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
	s = s.With(tables.Budget{}) // what depends on other settings
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
