package ops

import (
	"bytes"
	"context"
	"encoding/csv"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// gpuCollector exports the use of the machine's GPUs, from nvidia-smi. A
// machine without it has no such figures.
type gpuCollector struct {
	program string // path of nvidia-smi
	now     func() time.Time

	busy, used, total *prometheus.Desc

	mu   sync.Mutex // guards the fields below: scrapes share a reading
	seen []gpuUse
	at   time.Time
}

// gpuUse is the use of one GPU.
type gpuUse struct {
	index             string
	busy, used, total float64 // share of the time 0..1, bytes, bytes
}

// gpuRest is the validity of a reading: nvidia-smi takes up to a second.
const gpuRest = 10 * time.Second

// newGPUCollector returns the figures of the GPUs; nil where there is no
// nvidia-smi that may be started.
func newGPUCollector(m Machine, now func() time.Time) *gpuCollector {
	program, err := m.program("nvidia-smi")
	if err != nil {
		return nil
	}
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("lacuna_gpu_"+name, help, []string{"gpu"}, nil)
	}
	return &gpuCollector{
		program: program, now: now,
		busy:  desc("busy_ratio", "Share of the last moments in which a GPU was at work, for whoever."),
		used:  desc("memory_used_bytes", "Memory of a GPU that is taken, by whomever."),
		total: desc("memory_bytes", "Memory of a GPU."),
	}
}

// Describe implements prometheus.Collector.
func (c *gpuCollector) Describe(out chan<- *prometheus.Desc) {
	out <- c.busy
	out <- c.used
	out <- c.total
}

// Collect implements prometheus.Collector.
func (c *gpuCollector) Collect(out chan<- prometheus.Metric) {
	for _, g := range c.look() {
		for desc, v := range map[*prometheus.Desc]float64{c.busy: g.busy, c.used: g.used, c.total: g.total} {
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v, g.index)
		}
	}
}

// look runs nvidia-smi, unless the last reading is fresh. A failure gives no
// figures.
func (c *gpuCollector) look() []gpuUse {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now().Sub(c.at) < gpuRest {
		return c.seen
	}
	ctx, cancel := context.WithTimeout(context.Background(), statusLimit)
	defer cancel()
	out, err := exec.CommandContext(ctx, c.program,
		"--query-gpu=index,utilization.gpu,memory.used,memory.total", "--format=csv,noheader,nounits").Output()
	c.seen, c.at = nil, c.now()
	if err == nil {
		c.seen = parseGPUs(out)
	}
	return c.seen
}

// parseGPUs reads lines like "0, 37, 1024, 81559": a number, percent, MiB, MiB.
// A GPU without a figure ("[N/A]") is left out.
func parseGPUs(out []byte) []gpuUse {
	const mib = 1 << 20
	rows := csv.NewReader(bytes.NewReader(out))
	rows.FieldsPerRecord, rows.TrimLeadingSpace = -1, true
	lines, _ := rows.ReadAll() // the lines before a fault
	var all []gpuUse
	for _, line := range lines {
		if len(line) != 4 {
			continue
		}
		percent, err1 := strconv.ParseFloat(strings.TrimSpace(line[1]), 64)
		used, err2 := strconv.ParseFloat(strings.TrimSpace(line[2]), 64)
		total, err3 := strconv.ParseFloat(strings.TrimSpace(line[3]), 64)
		if err1 == nil && err2 == nil && err3 == nil {
			all = append(all, gpuUse{index: strings.TrimSpace(line[0]), busy: percent / 100, used: used * mib, total: total * mib})
		}
	}
	return all
}
