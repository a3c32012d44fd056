package retrain

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"

	"lacuna/pipeline/version"
)

// Kinds of events.
const (
	EventStart    = "start"
	EventProgress = "progress"
	EventDone     = "done"
	EventStopped  = "stopped" // interrupted: the same command resumes it
	EventFailed   = "failed"
)

// States of a new version, and of a training that made none.
const (
	StatePromoted  = "promoted"
	StateRefused   = "refused"   // it did not win
	StateUnjudged  = "unjudged"  // nobody could tell whether it is better
	StateWaiting   = "waiting"   // it won and waits for an operator
	StateWritten   = "written"   // no promotion was asked for
	StateFailed    = "failed"    // there is no version
	StateCancelled = "cancelled" // there is none, because an operator ended the training
)

// Event is a line that a training or measuring process writes to its parent.
type Event struct {
	Event string `json:"event"`

	// Fields of a progress event.
	Phase       string   `json:"phase,omitempty"`
	Step        int      `json:"step,omitempty"`
	Steps       int      `json:"steps,omitempty"`
	Loss        float64  `json:"loss,omitempty"`
	Score       *float64 `json:"held_out_score,omitempty"`
	LeftSeconds *float64 `json:"left_seconds,omitempty"` // rest of the phase

	// Fields of a start event.
	Dataset     string `json:"dataset,omitempty"`
	Checkpoints string `json:"checkpoints,omitempty"`
	Resumed     bool   `json:"resumed,omitempty"`
	Engine      string `json:"engine,omitempty"` // in a failed event: the one that cannot be opened

	// Fields of a done event about a version; a stopped and a failed event have
	// Reasons too.
	Version  string   `json:"version,omitempty"`
	State    string   `json:"state,omitempty"`
	Won      bool     `json:"won,omitempty"`
	Parent   string   `json:"parent,omitempty"`
	Champion string   `json:"champion,omitempty"` // version that it was judged against
	Reasons  []string `json:"reasons,omitempty"`

	Drift *version.Drift `json:"drift,omitempty"` // in a done event, where drift was measured
}

// WriteEvent writes an event as a line.
func WriteEvent(w io.Writer, e Event) error {
	line := any(e)
	if e.Version != "" {
		type fields Event
		line = struct { // false is written too
			fields
			Won      bool     `json:"won"`
			Parent   string   `json:"parent,omitempty"`
			Champion string   `json:"champion,omitempty"`
			Reasons  []string `json:"reasons"`
		}{fields(e), e.Won, e.Parent, e.Champion, e.Reasons}
	}
	if err := json.NewEncoder(w).Encode(line); err != nil {
		return fmt.Errorf("write the event %s: %w", e.Event, err)
	}
	return nil
}

// ReadEvents reads events to the end, calls each with every one unless it is
// nil, and returns the last. Other lines are skipped: a library may write to
// the same pipe.
func ReadEvents(r io.Reader, each func(Event)) Event {
	var last Event
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20) // longest line: a refusal with all its reasons has some kilobytes
	for lines.Scan() {
		var e Event
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.Event == "" {
			continue
		}
		last = e
		if each != nil {
			each(e)
		}
	}
	return last
}
