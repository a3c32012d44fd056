package ops

import (
	"context"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// statusLimit bounds how long a scrape waits for the status; scrapers give up
// after ten seconds.
const statusLimit = 5 * time.Second

// statusCollector shows a Status as metrics.
type statusCollector struct {
	status func(context.Context) (Status, error)

	available, info, ready, started                                   *prometheus.Desc
	granules, queue, lag, finished, poll, breaker, problem, diskFloor *prometheus.Desc
	newVersion, late, step                                            *prometheus.Desc
	backlog, backlogBytes, backlogAge, aside, free                    *prometheus.Desc
	foreign, conflicts, unknown                                       *prometheus.Desc
	unfinished, trainFailed, drift, skillMSE, skillWithin90           *prometheus.Desc
	trainRefusals, trainWaiting, trainNoGPU, noGPU, unreloaded        *prometheus.Desc
	ledgerBytes, ledgerRebuilt, hung, unseen                          *prometheus.Desc
	fleet                                                             fleetCollector
	sources                                                           sourceDescs
}

func newStatusCollector(status func(context.Context) (Status, error)) *statusCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("lacuna_"+name, help, labels, nil)
	}
	return &statusCollector{
		status:    status,
		available: desc("status_available", "1 where the status could be read; the other figures of it are absent where not."),
		info:      desc("info", "1, with the version that runs.", "version"),
		ready:     desc("ready", "1 while every stage runs."),
		started:   desc("start_timestamp_seconds", "When the service started."),

		granules:  desc("granules", "Granules of a dataset in a state.", "dataset", "state"),
		queue:     desc("queue_granules", "Granules of a dataset that wait in the spool to be filled.", "dataset"),
		finished:  desc("archive_finished", "1 for a dataset of whose archive nothing more is expected.", "dataset"),
		lag:       desc("lag_seconds", "Age of the newest field of a dataset that was read; none of an archive that is finished.", "dataset"),
		step:      desc("step_seconds", "Usual time from one field of a dataset to the next; 0 where it is not known yet.", "dataset"),
		poll:      desc("last_poll_timestamp_seconds", "When the archive of a dataset was last seen whole.", "dataset"),
		breaker:   desc("archive_breaker", "1 for the phase that the circuit breaker of an archive is in.", "dataset", "phase"),
		problem:   desc("dataset_problem", "1 where somebody should look at a dataset; the status page says why.", "dataset"),
		diskFloor: desc("intake_stopped", "1 where intake stands still until the disk has room.", "dataset"),

		backlog:      desc("publish_backlog", "Deliveries that wait for a sink.", "sink"),
		backlogBytes: desc("publish_backlog_bytes", "Bytes of the files that wait for a sink.", "sink"),
		backlogAge:   desc("publish_oldest_seconds", "Age of the oldest delivery that waits for a sink; 0 where none does.", "sink"),
		aside:        desc("publish_aside", "Deliveries to a sink that were set aside.", "sink"),
		foreign:      desc("publish_foreign", "1 where nothing is delivered to a sink because its place is another state's.", "sink"),
		conflicts:    desc("publish_conflicts", "Revisions that a sink had with other bytes, found within a day.", "sink"),
		unknown:      desc("publish_unknown", "Revisions in a sink that this state did not know, found within a day.", "sink"),
		free:         desc("disk_free_bytes", "Room on the disk of a folder.", "folder"),

		unseen: desc("unseen_products", "Products of the last month of a dataset without an observation: its granule holds none (clouded-out), or the archive has no granule (no-granule).",
			"dataset", "input"),
		unfinished:    desc("fill_unfinished", "1 where granules of a dataset could not be filled for a reason of our own and are tried again.", "dataset"),
		newVersion:    desc("new_version", "1 where there is a new version of the data of a dataset that no operator has decided on.", "dataset"),
		late:          desc("late_seconds", "Time by which the next field of a dataset is late; 0 where it is not, or nothing says when it is due.", "dataset"),
		trainFailed:   desc("train_failed", "1 where the last training of a dataset failed.", "dataset"),
		trainRefusals: desc("train_refusals", "Versions of the model of a dataset in a row that were trained and did not win.", "dataset"),
		trainWaiting:  desc("train_waiting_seconds", "Time for which a training of a dataset has been under way, paused, or due and waiting; 0 where none is.", "dataset"),
		trainNoGPU:    desc("train_gpu_away", "1 where trainings of a dataset run without the GPU that they had.", "dataset"),
		drift:         desc("skill_drift", "1 where the skill of a dataset has got worse beyond noise.", "dataset"),
		skillMSE: desc("skill_mse", "Mean squared error of the last fill that was scored on pixels held back, in normalised units: "+
			"1 is as bad as the mean of the sea.", "dataset"),
		skillWithin90: desc("skill_within90_ratio", "Share of those pixels inside the 90 % interval.", "dataset"),
		ledgerBytes:   desc("ledger_bytes", "Size of the ledger."),
		ledgerRebuilt: desc("ledger_rebuilt_timestamp_seconds", "When the ledger was damaged and made anew; 0 where it never was."),
		unreloaded:    desc("config_refused", "1 where the configuration in the file was not taken up at the last reload."),
		noGPU:         desc("fill_gpu_away", "1 where gaps are filled on the processor, since the GPU that was asked for is away."),
		sources:       newSourceDescs(desc),
		hung:          desc("stage_hung", "1 where a stage is at work and shows no sign of life."),
		fleet:         newFleetCollector(desc),
	}
}

// Describe implements prometheus.Collector.
func (c *statusCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range append(slices.Concat(c.fleet.all(), c.sources.all()), []*prometheus.Desc{
		c.available, c.info, c.ready, c.started, c.granules, c.queue, c.lag, c.finished, c.step, c.poll, c.breaker, c.problem, c.diskFloor,
		c.backlog, c.backlogBytes, c.backlogAge, c.aside, c.free, c.foreign, c.conflicts, c.unknown, c.unfinished, c.newVersion, c.late, c.trainFailed, c.drift,
		c.trainRefusals, c.trainWaiting, c.trainNoGPU, c.skillMSE, c.skillWithin90, c.ledgerBytes, c.ledgerRebuilt, c.hung, c.noGPU, c.unreloaded, c.unseen,
	}...) {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *statusCollector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), statusLimit)
	defer cancel()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	s, err := c.status(ctx)
	gauge(c.available, bit(err == nil))
	if err != nil {
		return // the status page logs the reason
	}
	gauge(c.info, 1, s.Version)
	gauge(c.ready, bit(s.Ready))
	gauge(c.started, seconds(s.Started))
	for _, d := range s.Datasets {
		c.dataset(gauge, s.Now, d)
		c.sources.collect(gauge, s.Now, s.Started, d)
	}
	for _, sink := range s.Sinks {
		gauge(c.backlog, float64(sink.Waiting), sink.Name)
		gauge(c.backlogBytes, float64(sink.Bytes), sink.Name)
		gauge(c.backlogAge, age(s.Now, sink.Oldest), sink.Name)
		gauge(c.aside, float64(sink.Aside), sink.Name)
		gauge(c.foreign, bit(sink.Foreign != ""), sink.Name)
		gauge(c.conflicts, float64(sink.Conflicts), sink.Name)
		gauge(c.unknown, float64(sink.Unknown), sink.Name)
	}
	for _, d := range s.Disks {
		gauge(c.free, float64(d.FreeBytes), d.Folder)
	}
	gauge(c.ledgerBytes, float64(s.Ledger.Bytes))
	gauge(c.ledgerRebuilt, rebuilt(s.Ledger))
	gauge(c.hung, bit(s.Hung != ""))
	gauge(c.noGPU, bit(s.NoGPU != ""))
	gauge(c.unreloaded, bit(s.Unreloaded != ""))
	c.fleet.collect(gauge, func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}, s.Fleet)
}

// dataset shows the figures of one dataset.
func (c *statusCollector) dataset(gauge func(*prometheus.Desc, float64, ...string), now time.Time, d Dataset) {
	for _, state := range d.States {
		gauge(c.granules, float64(state.Granules), d.Name, state.State)
	}
	gauge(c.queue, float64(d.Queue), d.Name)
	gauge(c.finished, bit(d.Finished), d.Name)
	if !d.NewestField.IsZero() && !d.Finished {
		gauge(c.lag, age(d.Clock(now), d.NewestField), d.Name)
		gauge(c.step, d.StepSeconds, d.Name)
	}
	if !d.LastPoll.IsZero() {
		gauge(c.poll, seconds(d.LastPoll), d.Name)
	}
	if d.Breaker != "" {
		for _, phase := range []string{"closed", "open", "probing"} {
			gauge(c.breaker, bit(d.Breaker == phase), d.Name, phase)
		}
	}
	gauge(c.unseen, float64(d.CloudedOut), d.Name, string(DayCloudedOut))
	gauge(c.unseen, float64(d.NoGranule), d.Name, string(DayNoGranule))
	gauge(c.problem, bit(d.Problem != ""), d.Name)
	gauge(c.diskFloor, bit(d.DiskFull), d.Name)
	gauge(c.unfinished, bit(d.Unfinished != ""), d.Name)
	gauge(c.newVersion, bit(d.NewVersion != ""), d.Name)
	late := 0.0
	if now := d.Clock(now); !d.Due.IsZero() && now.After(d.Due) {
		late = now.Sub(d.Due).Seconds()
	}
	gauge(c.late, late, d.Name)
	gauge(c.trainFailed, bit(d.TrainFailed != ""), d.Name)
	if t := d.Train; t != nil {
		gauge(c.trainRefusals, float64(t.Refusals), d.Name)
		gauge(c.trainWaiting, age(now, t.Since), d.Name)
		gauge(c.trainNoGPU, bit(t.NoGPU != ""), d.Name)
	}
	gauge(c.drift, bit(d.Drift != ""), d.Name)
	if d.Skill != nil {
		gauge(c.skillMSE, d.Skill.MSE, d.Name)
		gauge(c.skillWithin90, d.Skill.Within90, d.Name)
	}
}

// rebuilt returns the time of the last rebuild of the ledger; 0: never.
func rebuilt(l Ledger) float64 {
	if l.Rebuilt.IsZero() {
		return 0
	}
	return seconds(l.Rebuilt)
}

func bit(on bool) float64 {
	if on {
		return 1
	}
	return 0
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// age returns the seconds since t; 0 where t is zero.
func age(now, t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return now.Sub(t).Seconds()
}
