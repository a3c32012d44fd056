package ops

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics are the metrics for Prometheus. Figures of the Status are read from
// there at a scrape; durations and shares are recorded as they happen. Labels
// are the names of datasets, states, sinks, stages and folders, which the
// configuration bounds: never the name of a granule.
//
// A nil *Metrics discards every record.
type Metrics struct {
	registry *prometheus.Registry
	took     *prometheus.HistogramVec
	coverage *prometheus.GaugeVec
	refused  *prometheus.GaugeVec
}

// Stage is a part of the work on one granule.
type Stage string

// The stages, in the order of the work.
const (
	Decode  Stage = "decode"  // from the file to fields, with their neighbours
	Analyse Stage = "analyse" // from fields to filled fields
	Store   Stage = "store"   // from filled fields to a file
)

// stageSeconds are the bounds of the histograms: decoding takes tenths of a
// second, the analysis of a large basin minutes.
func stageSeconds() []float64 { return prometheus.ExponentialBucketsRange(0.05, 1800, 12) }

// newMetrics returns the metrics of a service whose status is status.
func newMetrics(status func(context.Context) (Status, error), machine Machine) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "lacuna_stage_duration_seconds", Help: "Time that a stage took for a granule.", Buckets: stageSeconds(),
		}, []string{"dataset", "stage"}),
		coverage: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "lacuna_coverage_ratio", Help: "Share of the sea with a value in the last granule (before) and in its product (after).",
		}, []string{"dataset", "when"}),
		refused: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "lacuna_refused_pixels", Help: "Observed pixels of the last granule that a test refused; none for a test that is off.",
		}, []string{"dataset", "test"}),
	}
	m.registry.MustRegister(m.took, m.coverage, m.refused, newStatusCollector(status),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if gpus := newGPUCollector(machine, time.Now); gpus != nil {
		m.registry.MustRegister(gpus)
	}
	return m
}

// Took records the duration of a stage for a granule.
func (m *Metrics) Took(dataset string, stage Stage, d time.Duration) {
	if m != nil {
		m.took.WithLabelValues(dataset, string(stage)).Observe(d.Seconds())
	}
}

// Covered records the shares of the sea with a value before and after a granule
// was filled, 0..1.
func (m *Metrics) Covered(dataset string, before, after float64) {
	if m != nil {
		m.coverage.WithLabelValues(dataset, "before").Set(before)
		m.coverage.WithLabelValues(dataset, "after").Set(after)
	}
}

// Refused records how many observed pixels of a granule a test refused.
func (m *Metrics) Refused(dataset, test string, pixels int) {
	if m != nil {
		m.refused.WithLabelValues(dataset, test).Set(float64(pixels))
	}
}

// beside returns a handler that answers /metrics, and other paths as next
// does.
func (m *Metrics) beside(next http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", readOnly(secured(promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))))
	mux.Handle("/", next)
	return mux
}
