package ops

import (
	"maps"
	"slices"
	"time"
)

// The states of a message.
const (
	firing   = "firing"
	resolved = "resolved"
)

// notice is the record of the messages about an alarm.
type notice struct {
	Alarm Alarm     `json:"alarm"`
	Since time.Time `json:"since"`
	Last  time.Time `json:"last"`  // time of the last message
	Times int       `json:"times"` // messages since it began
}

// due returns the messages to send now, in the order of keys: alarms that have
// begun, that have lasted for repeat since the last message, and that are over.
func due(now time.Time, current []Alarm, told map[string]notice, repeat time.Duration) []Message {
	var all []Message
	lasts := map[string]bool{}
	for _, a := range current {
		before, known := told[a.Key()]
		lasts[a.Key()] = true
		m := Message{State: firing, Alarm: a, Since: now, At: now}
		if known {
			m.Since, m.Repeat = before.Since, before.Times
		}
		if !known || repeat > 0 && now.Sub(before.Last) >= repeat {
			all = append(all, m)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(told)) {
		if before := told[key]; !lasts[key] {
			all = append(all, Message{State: resolved, Alarm: before.Alarm, Since: before.Since, At: now, Repeat: before.Times})
		}
	}
	return all
}

// note records that m was sent.
func note(told map[string]notice, m Message) {
	if m.State == resolved {
		delete(told, m.Key())
		return
	}
	told[m.Key()] = notice{Alarm: m.Alarm, Since: m.Since, Last: m.At, Times: m.Repeat + 1}
}
