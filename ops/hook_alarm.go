package ops

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"lacuna/internal/figure"
)

// Alarm is a condition that needs an operator.
type Alarm struct {
	Name    string `json:"name"`              // kind, such as lag
	Subject string `json:"subject,omitempty"` // the dataset, sink or folder it is about; empty: the service
	Summary string `json:"summary"`           // the condition in a sentence
	Remedy  string `json:"remedy"`            // the remedy in a sentence
}

// Key tells alarms apart: one that lasts has the same key while its summary
// changes.
func (a Alarm) Key() string { return a.Name + "/" + a.Subject }

// Limits are the figures of the status beyond which there is an alarm; 0: no
// limit.
type Limits struct {
	Lag         time.Duration `yaml:"lag"`           // age of the newest field of a dataset; more by as much as its step is longer than a day
	Backlog     time.Duration `yaml:"backlog"`       // age of the oldest delivery that waits for a sink
	SetAside    int           `yaml:"set_aside"`     // granules set aside within a day
	DiskFreeMiB int64         `yaml:"disk_free_mib"` // room on a disk

	TrainRefusals int           `yaml:"train_refusals"` // versions in a row that were trained and did not win
	TrainOverdue  time.Duration `yaml:"train_overdue"`  // time for which a training is under way, paused, or due and waiting
}

// Alarms returns the alarms of s, in the order of names and subjects.
func Alarms(s Status, l Limits) []Alarm {
	var all []Alarm
	add := func(on bool, a Alarm) {
		if on {
			all = append(all, a)
		}
	}
	for _, d := range s.Datasets {
		all = append(all, datasetAlarms(s, d, l)...)
	}
	for _, sink := range s.Sinks {
		age := s.Now.Sub(sink.Oldest)
		add(l.Backlog > 0 && !sink.Oldest.IsZero() && age > l.Backlog, Alarm{
			Name: "backlog", Subject: sink.Name,
			Summary: fmt.Sprintf("%d deliveries wait for %s, the oldest for %s", sink.Waiting, sink.Name, figure.Duration(age)),
			Remedy:  "'lacuna publish status' shows what the sink answers; what waits is delivered when it is back",
		})
		add(sink.Foreign != "", Alarm{
			Name: "owner", Subject: sink.Name,
			Summary: "nothing is delivered to " + sink.Name + ": " + sink.Foreign,
			Remedy:  "find out which of the two services should publish there and stop the other; what waits is delivered when the place is this state's",
		})
		all = append(all, takenAlarms(s, sink)...)
		add(sink.Aside > 0, Alarm{
			Name: "aside", Subject: sink.Name,
			Summary: fmt.Sprintf("%d deliveries to %s were set aside", sink.Aside, sink.Name),
			Remedy:  "'lacuna publish status' says why; mend it, then 'lacuna publish retry'",
		})
	}
	for _, disk := range s.Disks {
		const mib = 1 << 20
		add(l.DiskFreeMiB > 0 && disk.FreeBytes < l.DiskFreeMiB*mib, Alarm{
			Name: "disk", Subject: disk.Folder,
			Summary: fmt.Sprintf("%s are left on the disk of the %s folder", figure.Bytes(disk.FreeBytes), disk.Folder),
			Remedy:  "make room, or shorten publish.disk.keep_days; 'lacuna publish expired' shows what would go",
		})
	}
	add(s.Unreloaded != "", Alarm{
		Name: "config", Summary: "the old configuration goes on, since the one in the file was not taken up: " + s.Unreloaded,
		Remedy: "'lacuna check' says what is wrong in which line; mend it, then 'systemctl reload lacuna'",
	})
	add(s.NoGPU != "", Alarm{
		Name: "gpu", Summary: "gaps are filled on the processor, since the GPU is away: " + s.NoGPU,
		Remedy: "'lacuna engines' says whether it can be used; it is looked for every ten minutes. After a fault of the driver restart the service; set train.engine to ort where it is gone for good",
	})
	add(s.Hung != "", Alarm{
		Name: "hung", Summary: s.Hung + " is at work and shows no sign of life",
		Remedy: "the watchdog of systemd restarts the service; without one, restart it by hand and read the log around the last line of this stage",
	})
	all = append(all, fleetAlarms(s.Fleet)...)
	slices.SortFunc(all, func(a, b Alarm) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Subject, b.Subject))
	})
	return all
}

// takenAlarms returns alarms for revisions that a sink had with other bytes,
// and for those that this state did not know. Both are dealt with already; an
// operator should know that they occurred, and find the cause.
func takenAlarms(s Status, sink Sink) (all []Alarm) {
	latest := func(conflict bool) string {
		for _, t := range s.Taken {
			switch {
			case t.Sink != sink.Name || conflict != (t.Ours != ""):
			case conflict:
				return fmt.Sprintf(", the latest: %s of %s, revision %d, has sha256 %s there and had %s here",
					t.Granule, t.Dataset, t.Revision, cmp.Or(t.There, "that is not known"), t.Ours)
			default:
				return fmt.Sprintf(", the latest: %s of %s, revision %d", t.Granule, t.Dataset, t.Revision)
			}
		}
		return "" // the list is cut
	}
	if sink.Conflicts > 0 {
		all = append(all, Alarm{
			Name: "conflict", Subject: sink.Name,
			Summary: fmt.Sprintf("%d revisions had other bytes in %s within a day%s", sink.Conflicts, sink.Name, latest(true)),
			Remedy:  "the newer bytes get the next revision by themselves; find out whether the state was restored from an older copy, or whether two services publish there",
		})
	}
	if sink.Unknown > 0 {
		all = append(all, Alarm{
			Name: "restored", Subject: sink.Name,
			Summary: fmt.Sprintf("%d revisions in %s were found within a day that this state did not know%s", sink.Unknown, sink.Name, latest(false)),
			Remedy:  "they were adopted, and new revisions go above them; if the state was not restored from an older copy on purpose, find out who publishes there",
		})
	}
	return all
}

const day = 24 * time.Hour

// mostBlank is the number of granules without an observation, from the first one
// on, that can be weather. A dataset that has had one observation is read
// rightly, however many clouded days follow.
const mostBlank = 10

func datasetAlarms(s Status, d Dataset, l Limits) []Alarm {
	var all []Alarm
	add := func(on bool, a Alarm) {
		a.Subject = d.Name
		if on {
			all = append(all, a)
		}
	}
	now := d.Clock(s.Now)
	lag := now.Sub(d.NewestField)
	// The limit is that of a daily series; of a coarser one the newest field grows
	// as much older before the next is there.
	patience := l.Lag + max(d.step()-day, 0)
	add(l.Lag > 0 && !d.Finished && !d.NewestField.IsZero() && lag > patience, Alarm{
		Name: "lag", Summary: fmt.Sprintf("the newest field of %s is %s old", d.Name, figure.Duration(lag)),
		Remedy: "'lacuna plan --dataset " + d.Name + "' shows what the archive has; where it has nothing newer, ask the producer",
	})
	add(!d.Due.IsZero() && now.After(d.Due), Alarm{
		Name: "late", Summary: fmt.Sprintf("the field of %s that follows %s is late by %s", d.Name, d.NewestField.UTC().Format(time.RFC3339), figure.Duration(now.Sub(d.Due))),
		Remedy: "'lacuna plan --dataset " + d.Name + "' shows what the archive has; where it has nothing newer, ask the producer",
	})
	add(d.NewVersion != "", Alarm{
		Name: "version", Summary: "there is a new version of the data of " + d.Name + ": " + d.NewVersion,
		Remedy: "'lacuna trial show --dataset " + d.Name + "' compares it with the one in use; then 'lacuna trial accept --dataset " + d.Name + " --reason TEXT', or refuse in its place",
	})
	add(d.DiskFull, Alarm{
		Name: "intake", Summary: "intake of " + d.Name + " stands still: the disk is full",
		Remedy: "make room on the disk of state_dir; intake goes on by itself",
	})
	add(d.Problem != "" && !d.DiskFull, Alarm{
		Name: "archive", Summary: "the archive of " + d.Name + ": " + d.Problem,
		Remedy: "'lacuna check --online' tries the archive and its credentials and says what to do",
	})
	add(l.SetAside > 0 && d.AsideToday >= l.SetAside, Alarm{
		Name: "quarantine", Summary: fmt.Sprintf("%d granules of %s were set aside within a day", d.AsideToday, d.Name),
		Remedy: "'lacuna quarantine list --dataset " + d.Name + "' says why; after the cause is mended, 'lacuna quarantine retry --all --dataset " + d.Name + "'",
	})
	add(d.Blank >= mostBlank, Alarm{
		Name: "blank", Summary: fmt.Sprintf("none of the %d granules of %s holds an observation", d.Blank, d.Name),
		Remedy: "'lacuna inspect FILE' on one of them shows why; check variable, valid_range and quality of the dataset",
	})
	add(d.Unfinished != "", Alarm{
		Name: "fill", Summary: "granules of " + d.Name + " are left unfinished: " + d.Unfinished,
		Remedy: "mend what the message names; they are tried again at every poll",
	})
	add(d.Drift != "", Alarm{
		Name: "skill", Summary: "the skill of " + d.Name + " has drifted: " + d.Drift,
		Remedy: "look at the recent products; 'lacuna models list --dataset " + d.Name + "' and 'lacuna models rollback --dataset " + d.Name + "' where a new model is the cause",
	})
	add(d.TrainFailed != "", Alarm{
		Name: "training", Summary: "training of " + d.Name + " fails: " + d.TrainFailed,
		Remedy: "the champion serves on; the log of the service has what the training said",
	})
	all = append(all, sourceAlarms(s, d)...)
	if d.Train != nil {
		all = append(all, trainingAlarms(s.Now, d.Name, *d.Train, l)...)
	}
	return all
}

// trainingAlarms returns the alarms of trainings that do not fail, and lead to
// nothing.
func trainingAlarms(now time.Time, dataset string, t Training, l Limits) []Alarm {
	var all []Alarm
	add := func(on bool, a Alarm) {
		a.Subject = dataset
		if on {
			all = append(all, a)
		}
	}
	last := ""
	if t.Last != nil && len(t.Last.Reasons) > 0 {
		last = ", the last: " + markOf(t.Last.Reasons[0]).Text
	}
	add(l.TrainRefusals > 0 && t.Refusals >= l.TrainRefusals, Alarm{
		Name: "refused", Summary: fmt.Sprintf("%d versions of the model of %s in a row did not win%s", t.Refusals, dataset, last),
		Remedy: "the champion serves on; 'lacuna train status' has the figures: where it has little left to learn, train less often (train.schedule, train.new_granules)",
	})
	add(l.TrainOverdue > 0 && !t.Since.IsZero() && now.Sub(t.Since) > l.TrainOverdue, Alarm{
		Name: "overdue", Summary: fmt.Sprintf("a training of %s is %s since %s", dataset, t.waits(), t.Since.UTC().Format("2006-01-02 15:04")),
		Remedy: "'lacuna train status' says what it waits for: resume it, cancel it, or give it more time (train.budget, train.window)",
	})
	add(t.NoGPU != "", Alarm{
		Name: "gpu", Summary: "trainings of " + dataset + " have lost their GPU: " + t.NoGPU,
		Remedy: "'lacuna engines' says why it cannot be used; set train.engine to ort where it is gone for good",
	})
	return all
}

// waits says what a training is at, after the word is.
func (t Training) waits() string {
	switch t.State {
	case "paused":
		return "paused"
	case "window":
		return "due and waiting for its time of the day,"
	}
	return "not finished"
}

// step returns the usual time from one field of the dataset to the next.
func (d Dataset) step() time.Duration { return time.Duration(d.StepSeconds * float64(time.Second)) }
