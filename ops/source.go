package ops

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"lacuna/internal/figure"
)

// Source is the state of one of several sources of a dataset.
type Source struct {
	Name        string    `json:"name"`
	NewestField time.Time `json:"newest_field,omitzero"` // zero: none has come
	LastPoll    time.Time `json:"last_poll,omitzero"`    // when its archive was last seen whole
	Problem     string    `json:"problem,omitempty"`     // why its archive cannot be polled; empty: it can
	// SilentSeconds is the age of its newest field from which on it is silent; 0:
	// never.
	SilentSeconds float64  `json:"silent_seconds,omitempty"`
	Bias          float64  `json:"bias"`            // against the first source, in the space of the product's uncertainty
	Error         *float64 `json:"error,omitempty"` // standard error, likewise; nil: not known
	Days          float64  `json:"days"`            // days that both are fitted from
}

// silentFor returns for how long a source has brought nothing, since the service
// started where it never has, and whether that is too long.
func (s Source) silentFor(now, started time.Time) (time.Duration, bool) {
	since := s.NewestField
	if since.IsZero() {
		since = started
	}
	age := now.Sub(since)
	return age, s.SilentSeconds > 0 && age.Seconds() > s.SilentSeconds
}

// sourceAlarms returns the alarms of the sources of a dataset: the others go on, so
// no day is lost, and nobody would notice.
func sourceAlarms(s Status, d Dataset) (all []Alarm) {
	now := d.Clock(s.Now)
	for _, source := range d.Sources {
		subject := d.Name + "." + source.Name
		behind := source.NewestField.IsZero() || d.NewestField.Sub(source.NewestField) >= day // else the dataset itself lags, which is another alarm
		if age, silent := source.silentFor(now, s.Started); silent && behind {
			summary := fmt.Sprintf("source %s of %s is silent: its newest field is %s old", source.Name, d.Name, figure.Duration(age))
			if source.NewestField.IsZero() {
				summary = fmt.Sprintf("source %s of %s is silent: it has brought nothing since the start, %s ago", source.Name, d.Name, figure.Duration(age))
			}
			all = append(all, Alarm{
				Name: "source", Subject: subject, Summary: summary,
				Remedy: "the days go on from the other sources; 'lacuna plan' shows what the archive has: ask its producer, or take the source out of the configuration",
			})
		}
		if source.Problem != "" {
			all = append(all, Alarm{
				Name: "archive", Subject: subject, Summary: "the archive of source " + source.Name + " of " + d.Name + ": " + source.Problem,
				Remedy: "the days go on from the other sources; 'lacuna check --online' tries the archive and its credentials and says what to do",
			})
		}
	}
	return all
}

// sourceDescs are the metrics of sources.
type sourceDescs struct{ lag, silent, bias, err *prometheus.Desc }

func newSourceDescs(desc func(name, help string, labels ...string) *prometheus.Desc) sourceDescs {
	return sourceDescs{
		lag:    desc("source_lag_seconds", "Age of the newest field of a source of a dataset that has several.", "dataset", "source"),
		silent: desc("source_silent", "1 where a source of a dataset has brought nothing for longer than its limit.", "dataset", "source"),
		bias:   desc("source_bias", "Bias of a source against the first one of its dataset, in the space of the product's uncertainty.", "dataset", "source"),
		err:    desc("source_error", "Standard error of a source, likewise; absent where it is not known.", "dataset", "source"),
	}
}

func (c sourceDescs) all() []*prometheus.Desc {
	return []*prometheus.Desc{c.lag, c.silent, c.bias, c.err}
}

// collect shows the figures of the sources of a dataset.
func (c sourceDescs) collect(gauge func(*prometheus.Desc, float64, ...string), now, started time.Time, d Dataset) {
	for _, s := range d.Sources {
		if !s.NewestField.IsZero() {
			gauge(c.lag, age(d.Clock(now), s.NewestField), d.Name, s.Name)
		}
		_, silent := s.silentFor(d.Clock(now), started)
		gauge(c.silent, bit(silent), d.Name, s.Name)
		gauge(c.bias, s.Bias, d.Name, s.Name)
		if s.Error != nil {
			gauge(c.err, *s.Error, d.Name, s.Name)
		}
	}
}
