package covariates

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"lacuna/pipeline/covariate"
)

// Trace returns which files are there that may have maps for times, for covariates by
// their names: another text says that one of them has come, has changed or is gone.
// Nothing is decoded. A file of which nobody knows the day without opening it, such as a
// single one for all days, counts only for what lacks a map: it grows every day.
func (c *Covariates) Trace(ctx context.Context, times []time.Time, ahead bool) (func(names string, lacks bool) string, error) {
	c.begin()
	type trail struct{ dated, other string }
	trails := map[string]trail{}
	for _, cfg := range c.List {
		if cfg.Static == covariate.DayOfYear || cfg.Static == covariate.DistanceToCoast {
			continue
		}
		sources, err := c.files(ctx, cfg, Request{Times: times, Ahead: ahead})
		if err != nil {
			return nil, err
		}
		var t trail
		for _, s := range sources {
			info, err := os.Stat(s.Path)
			if err != nil {
				continue // gone since it was listed
			}
			text := fmt.Sprintf("%s %d %d\n", s.Path, info.Size(), info.ModTime().UnixNano())
			switch day, known := dayInName(s.Path); {
			case cfg.Dataset != "" || cfg.Daily():
				t.dated += text
			case !known:
				t.other += text
			case near(day, times, cfg.MaxAge(), ahead):
				t.dated += text
			}
		}
		trails[cfg.Name] = t
	}
	return func(names string, lacks bool) string {
		var out strings.Builder
		for _, cfg := range c.List {
			for _, name := range strings.Split(names, ", ") {
				if name != cfg.Name && !strings.HasPrefix(name, cfg.Name+".") {
					continue
				}
				out.WriteString(trails[cfg.Name].dated)
				if lacks {
					out.WriteString(trails[cfg.Name].other)
				}
				break
			}
		}
		return out.String()
	}, nil
}

var digits = regexp.MustCompile(`(?:19|20)[0-9]{6}`)

// dayInName returns the date in the name of a file, such as 20240504.
func dayInName(path string) (time.Time, bool) {
	at, err := time.Parse("20060102", digits.FindString(filepath.Base(path)))
	return at, err == nil
}

// near reports whether the map of a day may be used for one of the times.
func near(at time.Time, times []time.Time, most time.Duration, ahead bool) bool {
	for _, t := range times {
		if covariate.Nearest([]time.Time{at}, t, most, ahead) == 0 {
			return true
		}
	}
	return false
}
