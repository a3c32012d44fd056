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
	EventStopped  = "stopped" // not over: the same command goes on
)

// States of a version that was made, and of a training that made none.
const (
	StatePromoted = "promoted"
	StateRefused  = "refused" // it did not win
	StateWaiting  = "waiting" // it won and waits for a person
	StateWritten  = "written" // nobody asked for a promotion
	StateFailed   = "failed"  // there is no version
)

// Event is a line that a process that trains or measures writes to whoever
// started it.
type Event struct {
	Event string `json:"event"`

	// Of progress.
	Phase       string   `json:"phase,omitempty"`
	Step        int      `json:"step,omitempty"`
	Steps       int      `json:"steps,omitempty"`
	Loss        float64  `json:"loss,omitempty"`
	Score       *float64 `json:"held_out_score,omitempty"`
	LeftSeconds *float64 `json:"left_seconds,omitempty"` // of the phase

	// Of start.
	Dataset     string `json:"dataset,omitempty"`
	Checkpoints string `json:"checkpoints,omitempty"`
	Resumed     bool   `json:"resumed,omitempty"`

	// Of done, where a version was made or judged. Reasons are of stopped too.
	Version  string   `json:"version,omitempty"`
	State    string   `json:"state,omitempty"`
	Won      bool     `json:"won,omitempty"`
	Parent   string   `json:"parent,omitempty"`
	Champion string   `json:"champion,omitempty"` // that it was judged against
	Reasons  []string `json:"reasons,omitempty"`

	Drift *version.Drift `json:"drift,omitempty"` // of done, where that was measured
}

// WriteEvent writes an event as a line.
func WriteEvent(w io.Writer, e Event) error {
	line := any(e)
	if e.Version != "" {
		type fields Event
		line = struct { // of a version that lost it is said, not left out
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

// ReadEvents reads events to the end, calls hear for each unless it is nil, and
// returns the last. What is not an event is left out: a library may write to the
// same pipe.
func ReadEvents(r io.Reader, hear func(Event)) Event {
	var last Event
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20) // reasons of a refusal fit well
	for lines.Scan() {
		var e Event
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.Event == "" {
			continue
		}
		last = e
		if hear != nil {
			hear(e)
		}
	}
	return last
}
