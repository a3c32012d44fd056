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
