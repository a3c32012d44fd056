package daemon

import (
	"testing"
	"time"
)

// Every field comes 26 hours after its time; the alarm begins half a day after that
// of the one that is missing, and ends with it.
func TestAFieldThatIsLaterThanUsualIsAnAlarm(t *testing.T) {
	oneByOne(t)
	const fields, day, delay = 13, 24 * time.Hour, 26 * time.Hour
	r := newRolling(t, fields)
	r.cfg.Alarms.Lag = 0
	start := time.Date(2024, 1, 3, 12, 0, 0, 0, time.UTC)
	arrive := func(i int, at time.Time) {
		put(t, r.archive(), r.world.Granule(r.days[i]).At(start.Add(time.Duration(i)*day)))
		r.now = at
		r.pass(t, 0)
	}
	late := func(at time.Time) bool {
		t.Helper()
		d := r.daemon(t)
		d.parts.Now = func() time.Time { return at }
		v, err := d.Overview(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range v.Status.Alarms {
			if a.Name == "late" {
				return true
			}
		}
		return false
	}
	const last = fields - 1
	for i := range last {
		arrive(i, start.Add(time.Duration(i)*day+delay))
		if i == 3 && late(r.now.Add(9*day)) {
			t.Error("four fields are no rhythm")
		}
	}
	due := start.Add(last*day + delay)
	if late(due.Add(11 * time.Hour)) {
		t.Error("the alarm begins too soon")
	}
	if !late(due.Add(13 * time.Hour)) {
		t.Error("a field that is half a day later than any before it is no alarm")
	}
	r.cfg.Datasets[0].Archive.Expect.Usual = false
	if late(due.Add(13 * time.Hour)) {
		t.Error("expect.usual is off, and the alarm is there")
	}
	r.cfg.Datasets[0].Archive.Expect.Usual = true
	arrive(last, due.Add(14*time.Hour))
	if late(r.now) {
		t.Error("the field has come, and the alarm is still there")
	}
}
