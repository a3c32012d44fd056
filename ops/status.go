package ops

import "time"

// Status is the content of the status page and of status.json. The daemon fills
// it; this package only shows it.
type Status struct {
	Version    string        `json:"version"`
	Started    time.Time     `json:"started"`
	Now        time.Time     `json:"now"`   // time of the status; ages on the page count from here
	Ready      bool          `json:"ready"` // every stage runs and makes progress; readyz answers with it
	Datasets   []Dataset     `json:"datasets"`
	Products   []Product     `json:"products"`   // newest first
	Quarantine []Quarantined `json:"quarantine"` // newest first
	Sinks      []Sink        `json:"sinks"`
	Taken      []Taken       `json:"taken,omitempty"` // within the last day, newest first, at most a screenful
	Disks      []Disk        `json:"disks"`
	Alarms     []Alarm       `json:"alarms"`               // conditions that need an operator
	Hung       string        `json:"hung,omitempty"`       // the stage that is at work and sends no heartbeat
	Unreloaded string        `json:"unreloaded,omitempty"` // why the configuration in the file was not taken up at the last reload; empty: it was
	NoGPU      string        `json:"no_gpu,omitempty"`     // why models fill without the GPU that was asked for; empty: they do not
	Ledger     Ledger        `json:"ledger"`
	Fleet      *Fleet        `json:"fleet,omitempty"` // workers on other machines; nil: the daemon fills by itself
}

// Ledger is the file of the ledger.
type Ledger struct {
	Bytes   int64     `json:"bytes"`            // with its write-ahead log
	Rebuilt time.Time `json:"rebuilt,omitzero"` // when it was damaged and rebuilt from the files on disk
}

// Dataset is the state of one dataset.
type Dataset struct {
	Name        string       `json:"name"`
	Title       string       `json:"title,omitempty"`  // for people
	Method      string       `json:"method,omitempty"` // method or version that fills its gaps now
	LastGranule string       `json:"last_granule,omitempty"`
	LastDay     time.Time    `json:"last_day,omitzero"`      // time of sensing of that granule
	LastArrival time.Time    `json:"last_arrival,omitzero"`  // when that granule was spooled
	States      []StateCount `json:"states"`                 // in the order of the work
	Queue       int          `json:"queue"`                  // granules that wait to be filled
	AsideToday  int          `json:"aside_today,omitempty"`  // granules set aside within a day; Quarantine lists the newest of all datasets only
	Finished    bool         `json:"finished,omitempty"`     // nothing more is expected of its archive
	NewestField time.Time    `json:"newest_field,omitzero"`  // time of sensing of the newest field that was read
	Now         time.Time    `json:"now,omitzero"`           // time in a simulated sea, whose days pass faster; zero: that of the status
	StepSeconds float64      `json:"step_seconds,omitempty"` // usual time from one field to the next; 0: not known
	Due         time.Time    `json:"due,omitzero"`           // when the next field is late; zero: never
	LastPoll    time.Time    `json:"last_poll,omitzero"`     // when the archive was last seen whole
	Breaker     string       `json:"breaker,omitempty"`      // closed, open or probing; empty: the archive has none
	DiskFull    bool         `json:"disk_full,omitempty"`    // intake stands still until there is room
	Stalled     bool         `json:"stalled,omitempty"`      // its intake is at work and makes no progress
	Training    string       `json:"training,omitempty"`     // state of the training, in a sentence
	Train       *Training    `json:"train,omitempty"`        // the same with its parts; nil: nothing is trained
	Backfill    string       `json:"backfill,omitempty"`     // progress of the backfill, in a line; empty: none is under way
	Problem     string       `json:"problem,omitempty"`      // problem that needs an operator; empty: none
	Unfinished  string       `json:"unfinished,omitempty"`   // why granules are left unfinished, by the last attempt
	TrainFailed string       `json:"train_failed,omitempty"` // why the last training failed
	Champion    string       `json:"champion,omitempty"`     // version of the model that serves; empty: none
	Skill       *Skill       `json:"skill,omitempty"`        // the last score; nil: none
	RecentMSE   float64      `json:"recent_mse,omitempty"`   // typical of the last days, as in Skill; 0: not known
	CloudedOut  int          `json:"clouded_out,omitempty"`  // days of the last month whose granule holds no observation
	NoGranule   int          `json:"no_granule,omitempty"`   // days of the last month without a granule, filled
	Blank       int          `json:"blank,omitempty"`        // granules, where none of them ever held an observation; else 0
	NewVersion  string       `json:"new_version,omitempty"`  // versions of the data that no operator has decided on, in a sentence; empty: none
	Drift       string       `json:"drift,omitempty"`        // loss of skill, in a sentence; empty: none
	Sources     []Source     `json:"sources,omitempty"`      // where it has several archives
}

// Clock returns the time by which the dataset is late or not: that of its sea.
func (d Dataset) Clock(now time.Time) time.Time {
	if d.Now.IsZero() {
		return now
	}
	return d.Now
}

// Training is how the training of a dataset's model stands.
type Training struct {
	State    string    `json:"state"`              // idle, training, paused, resting, window, shadow or unfinished
	Begun    time.Time `json:"begun,omitzero"`     // of a training that is not finished
	Since    time.Time `json:"since,omitzero"`     // since when one is under way, paused, or due and waiting
	Progress float64   `json:"progress,omitempty"` // share of the phase that is done, 0..1
	Phase    string    `json:"phase,omitempty"`
	Schedule string    `json:"schedule"` // in words
	Next     time.Time `json:"next,omitzero"`
	Window   string    `json:"window,omitempty"` // time of the day in which trainings run; empty: all day
	Seen     []string  `json:"seen,omitempty"`   // what the triggers saw at the last look
	Refusals int       `json:"refusals,omitempty"`
	NoGPU    string    `json:"no_gpu,omitempty"` // why trainings run without the GPU that they had; empty: they do not
	Last     *Outcome  `json:"last,omitempty"`   // nil: none has ended
}

// Outcome is the end of a training.
type Outcome struct {
	State   string    `json:"state"` // promoted, refused, unjudged, waiting, written, failed or cancelled
	Ended   time.Time `json:"ended"`
	Version string    `json:"version,omitempty"`
	Why     string    `json:"why,omitempty"` // its trigger
	Reasons []string  `json:"reasons,omitempty"`
}

// Skill is the score of one filled day, on pixels that were held back.
type Skill struct {
	Day      time.Time `json:"day"`
	Kind     string    `json:"kind"`     // overlay: under the gaps of another day; revealed: by a later delivery
	Method   string    `json:"method"`   // method, or version of the model
	MSE      float64   `json:"mse"`      // in normalised units: 1 is as bad as the mean of the sea
	Bias     float64   `json:"bias"`     // in the same units
	Within90 float64   `json:"within90"` // share of the pixels inside the 90 % interval
	Pixels   int       `json:"pixels"`
}

// StateCount is the number of granules in a state.
type StateCount struct {
	State    string `json:"state"`
	Granules int    `json:"granules"`
}

// Product is one finished file.
type Product struct {
	Dataset        string    `json:"dataset"`
	Granule        string    `json:"granule"`
	Revision       int       `json:"revision"`
	Day            time.Time `json:"day,omitzero"`         // day of sensing
	Stored         time.Time `json:"stored"`               // when it was finished
	File           string    `json:"file"`                 // slash-separated, below the product folder
	QuickLook      string    `json:"quick_look,omitempty"` // a picture of it, likewise; empty: none
	Method         string    `json:"method,omitempty"`
	Input          string    `json:"input,omitempty"` // observed, clouded-out or no-granule
	ObservedBefore float64   `json:"observed_before"` // share of the sea with a value in the granule, 0..1
	FilledAfter    float64   `json:"filled_after"`    // share of the sea with a value in the product, 0..1
}

// Quarantined is a granule that was set aside, and why.
type Quarantined struct {
	Dataset string    `json:"dataset"`
	Granule string    `json:"granule"`
	Reason  string    `json:"reason"` // the fault and its remedy
	At      time.Time `json:"at"`
}

// Sink is the state of the deliveries to one sink.
type Sink struct {
	Name    string    `json:"name"`
	Waiting int       `json:"waiting"`
	Bytes   int64     `json:"bytes"`             // size of the waiting files
	Oldest  time.Time `json:"oldest,omitzero"`   // when the first of them was queued
	Aside   int       `json:"aside"`             // deliveries that were set aside
	Foreign string    `json:"foreign,omitempty"` // why nothing is delivered: the place belongs to another state; empty: it is ours
	// Found in the sink within a day: revisions with other bytes than this
	// state had for them, and revisions that it did not know.
	Conflicts int `json:"conflicts,omitempty"`
	Unknown   int `json:"unknown,omitempty"`
}

// Taken is a revision that a sink has and this state did not know, or knew with
// other bytes.
type Taken struct {
	Sink     string    `json:"sink"`
	Dataset  string    `json:"dataset"`
	Granule  string    `json:"granule"`
	Revision int       `json:"revision"`
	There    string    `json:"there,omitempty"` // sha256 of the bytes in the sink; empty: not known
	Ours     string    `json:"ours,omitempty"`  // sha256 of the bytes that this state had for the number; empty: none
	At       time.Time `json:"at"`
}

// Disk is the room on the disk of a folder.
type Disk struct {
	Folder    string `json:"folder"` // purpose of the folder, such as products
	FreeBytes int64  `json:"free_bytes"`
}
