package input

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"lacuna/daemon/fill"
	"lacuna/modelstore"
	"lacuna/modelstore/starters"
)

// StarterName is the value of --model that names the starter of the variable.
const StarterName = "starter"

// Starter returns the starter of the dataset's quantity. Of packed days only the
// variable is known, where a flag names it.
func (d Dataset) Starter(ctx context.Context) (*modelstore.Version, error) {
	all, err := starters.List(ctx)
	if err != nil {
		return nil, err
	}
	if d.Sample.Source.Variable != "" {
		v, why := fill.StarterFor(all, d.Sample)
		if v == nil {
			return nil, errors.New(why)
		}
		return v, nil
	}
	for _, v := range all {
		if strings.EqualFold(v.Card.Variable, d.Variable) && v.Card.Transform == d.Series.Transform.String() {
			return v, nil
		}
	}
	var known []string
	for _, v := range all {
		known = append(known, fmt.Sprintf("%s in the space %s", v.Card.Variable, v.Card.Transform))
	}
	return nil, fmt.Errorf("packed days do not say what they are of: say it with --var; there are starters for %s", strings.Join(known, " and for "))
}

// IsStarter reports whether flags name the starter of the variable.
func (m Model) IsStarter() bool { return m.name == StarterName }

// OpenVersion opens the engine and loads a version.
func (m Model) OpenVersion(v *modelstore.Version, stderr io.Writer) (*Filler, error) {
	f := &Filler{stderr: stderr, Version: v}
	device, err := f.device(m.engine)
	if err == nil {
		f.Model, err = fill.LoadModel(v, device)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
