package version

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"lacuna/pipeline/engine/enginetest"
)

func TestAShadowRefusesWhatIsWorseOnNewDays(t *testing.T) {
	good := firstModel(t)
	spoiled := maps.Clone(good.Parts)
	wrong := *good.Scaling
	wrong.Mean = slices.Clone(wrong.Mean)
	for i := range wrong.Mean { // a sensor that reads more than it did, and a version that does not know
		wrong.Mean[i] += 4 * float32(wrong.Std)
	}
	data, err := json.Marshal(wrong)
	if err != nil {
		t.Fatal(err)
	}
	spoiled[PartScaling] = data
	s := series(t)
	q := Shadow{Series: s, Since: s.Days[len(s.Days)-20].Time, Settings: shortSettings(), Backend: enginetest.Open(t)}
	for _, tt := range []struct {
		name                 string
		champion, challenger Parts
		want                 bool
	}{
		{"worse", good.Parts, spoiled, false},
		{"better", spoiled, good.Parts, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q.Champion, q.Challenger = tt.champion, tt.challenger
			r, err := q.Judge(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			reasons := strings.Join(r.Decision.Reasons, "\n")
			mark := map[bool]string{true: "ok: its mean square error", false: "against: its mean square error"}[tt.want]
			if !strings.Contains(reasons, mark) || !tt.want && r.Decision.Promote {
				t.Errorf("promote %v:\n%s", r.Decision.Promote, reasons)
			}
		})
	}
	q.Since = s.Days[len(s.Days)-1].Time
	if _, err := q.Judge(t.Context()); err == nil || !strings.Contains(err.Error(), "wait for more") {
		t.Errorf("one day was enough: %v", err)
	}
}
