package covariates

import (
	"context"
	"fmt"
	"time"

	"lacuna/pipeline/covariate"
)

// Arguments returns the covariates as arguments of lacuna train, for days from one time to
// another, with their files one by one as they are now: the same arguments give the same
// maps for as long as these stay, here and on another machine. One that has no map yet is
// left out.
func (c *Covariates) Arguments(ctx context.Context, from, to time.Time) ([]string, error) {
	c.begin()
	r := Request{}
	for at := day(from); !at.After(to); at = at.Add(24 * time.Hour) {
		r.Times = append(r.Times, at)
	}
	var args []string
	for _, cfg := range c.List {
		text := cfg.Name + "=" + cfg.Static
		var files []string
		if cfg.Static == "" || cfg.Static == covariate.Bathymetry {
			sources, err := c.files(ctx, cfg, r)
			if err != nil {
				return nil, err
			}
			if len(sources) == 0 {
				continue
			}
			variable := cfg.Variable
			for _, s := range sources {
				files = append(files, "--covariate-file", cfg.Name+"="+s.Path)
				variable = s.Options.Variable
			}
			text = cfg.Name + "=" + cfg.File + cfg.Dataset + ":" + variable
			if cfg.Static != "" {
				text += "," + cfg.Static
			}
		}
		if cfg.Gradient {
			text += ",gradient"
		}
		if cfg.MaxAgeDays != covariate.DefaultConfig().MaxAgeDays {
			text += fmt.Sprintf(",max_age=%d", cfg.MaxAgeDays)
		}
		args = append(append(args, "--covariate", text), files...)
	}
	return args, nil
}
