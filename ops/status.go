package ops

import "time"

// Status is what the page and status.json show. The daemon fills it; this
// package only shows it.
type Status struct {
	Version    string        `json:"version"`
	Started    time.Time     `json:"started"`
	Now        time.Time     `json:"now"`   // when this was true; ages on the page count from here
	Ready      bool          `json:"ready"` // every stage runs; readyz answers with it
	Datasets   []Dataset     `json:"datasets"`
	Products   []Product     `json:"products"`   // newest first
	Quarantine []Quarantined `json:"quarantine"` // newest first
	Sinks      []Sink        `json:"sinks"`
	Disks      []Disk        `json:"disks"`
}

// Dataset is one stream of granules and how far it has come.
type Dataset struct {
	Name        string       `json:"name"`
	Title       string       `json:"title,omitempty"`  // for people
	Method      string       `json:"method,omitempty"` // what fills its gaps now
	LastGranule string       `json:"last_granule,omitempty"`
	LastDay     time.Time    `json:"last_day,omitzero"`     // of sensing, of that granule
	LastArrival time.Time    `json:"last_arrival,omitzero"` // of that granule in the spool
	States      []StateCount `json:"states"`                // in the order of the work
	Queue       int          `json:"queue"`                 // granules that wait to be filled
	NewestField time.Time    `json:"newest_field,omitzero"` // of sensing, of the newest field that was read
	LastPoll    time.Time    `json:"last_poll,omitzero"`    // when the archive was last seen whole
	Breaker     string       `json:"breaker,omitempty"`     // closed, open or probing; empty: the archive has none
	DiskFull    bool         `json:"disk_full,omitempty"`   // intake stands still until there is room
	Training    string       `json:"training,omitempty"`    // what becomes of its model, for people
	Problem     string       `json:"problem,omitempty"`     // what an operator should look at; empty: nothing
}

// StateCount is how many granules are in a state.
type StateCount struct {
	State    string `json:"state"`
	Granules int    `json:"granules"`
}

// Product is one finished file.
type Product struct {
	Dataset        string    `json:"dataset"`
	Granule        string    `json:"granule"`
	Revision       int       `json:"revision"`
	Day            time.Time `json:"day,omitzero"`         // of sensing
	Stored         time.Time `json:"stored"`               // when it was finished
	File           string    `json:"file"`                 // slash-separated, below the product folder
	QuickLook      string    `json:"quick_look,omitempty"` // a picture of it, likewise; empty: none
	Method         string    `json:"method,omitempty"`
	ObservedBefore float64   `json:"observed_before"` // share of the sea with a value in the granule, 0..1
	FilledAfter    float64   `json:"filled_after"`    // share of the sea with a value in the product, 0..1
}

// Quarantined is a granule that was set aside, and why.
type Quarantined struct {
	Dataset string    `json:"dataset"`
	Granule string    `json:"granule"`
	Reason  string    `json:"reason"` // what is wrong and what to do
	At      time.Time `json:"at"`
}

// Sink is what waits for one receiver of products.
type Sink struct {
	Name    string    `json:"name"`
	Waiting int       `json:"waiting"`
	Bytes   int64     `json:"bytes"`           // of the files that wait
	Oldest  time.Time `json:"oldest,omitzero"` // when the first of them was queued
	Aside   int       `json:"aside"`           // that cannot be delivered as they are
}

// Disk is the room on the disk of a folder.
type Disk struct {
	Folder    string `json:"folder"` // what it is for, such as products
	FreeBytes int64  `json:"free_bytes"`
}
