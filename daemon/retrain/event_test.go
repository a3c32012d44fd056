package retrain

import (
	"bytes"
	"io"
	"reflect"
	"strings"
	"testing"

	"lacuna/pipeline/version"
)

// fullEvent returns an event of which no field is empty.
func fullEvent(t *testing.T) Event {
	t.Helper()
	number := 0.25
	e := Event{
		Event: EventDone, Phase: "imputer", Step: 3, Steps: 9, Loss: 0.5, Score: &number, LeftSeconds: &number,
		Dataset: "sea", Checkpoints: "training/sea-1", Resumed: true, Engine: "ort",
		Version: "v2", State: StatePromoted, Won: true, Parent: "v1", Champion: "v0", Reasons: []string{"better"},
		Drift: &version.Drift{Masks: &number, Values: &number},
	}
	for v, i := reflect.ValueOf(e), 0; i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			t.Fatalf("the test leaves %s empty", v.Type().Field(i).Name)
		}
	}
	return e
}

func TestEventsAreReadAsWritten(t *testing.T) {
	whole := fullEvent(t)
	versionless := whole
	versionless.Version = ""
	lost := Event{Event: EventDone, Version: "v2", State: StateRefused, Reasons: []string{"no better"}}
	var pipe bytes.Buffer
	want := []Event{whole, versionless, lost, {Event: EventStart}, {Event: EventStopped, Reasons: []string{"the time budget is spent"}}}
	for i, e := range want {
		if i == 2 {
			_, _ = io.WriteString(&pipe, "a library says hello\n{\"level\":\"info\"}\n\n")
		}
		if err := WriteEvent(&pipe, e); err != nil {
			t.Fatal(err)
		}
	}
	var got []Event
	last := ReadEvents(&pipe, func(e Event) { got = append(got, e) })
	if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(last, want[len(want)-1]) {
		t.Errorf("read %+v\nwrote %+v", got, want)
	}
}

// The lines are read by other programs too: field names, and the fields that
// are written when empty, stay as they are.
func TestLinesOfEventsStayAsTheyAre(t *testing.T) {
	score := 0.5
	for _, tt := range []struct {
		event Event
		want  string
	}{
		{
			Event{Event: EventStart, Dataset: "sea", Checkpoints: "c", Resumed: true, Engine: "ort"},
			`{"event":"start","dataset":"sea","checkpoints":"c","resumed":true,"engine":"ort"}`,
		},
		{
			Event{Event: EventProgress, Phase: "imputer", Step: 3, Steps: 9, Loss: 0.1, Score: &score, LeftSeconds: &score},
			`{"event":"progress","phase":"imputer","step":3,"steps":9,"loss":0.1,"held_out_score":0.5,"left_seconds":0.5}`,
		},
		{
			Event{Event: EventDone, Version: "v1", State: StateRefused, Parent: "v0", Champion: "v0", Reasons: []string{"no better"}},
			`{"event":"done","version":"v1","state":"refused","won":false,"parent":"v0","champion":"v0","reasons":["no better"]}`,
		},
		{Event{Event: EventStopped, Reasons: []string{"stopped"}}, `{"event":"stopped","reasons":["stopped"]}`},
		{Event{Event: EventDone, Drift: &version.Drift{Masks: &score}}, `{"event":"done","drift":{"masks":0.5}}`},
	} {
		var b strings.Builder
		if err := WriteEvent(&b, tt.event); err != nil || b.String() != tt.want+"\n" {
			t.Errorf("line %q, %v, want %q", b.String(), err, tt.want)
		}
	}
}
