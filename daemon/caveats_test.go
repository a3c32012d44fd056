package daemon

import (
	"strings"
	"testing"

	"lacuna/pipeline/infer"
)

func TestADatasetSaysWhatItsSettingsTakeFromAModel(t *testing.T) {
	for name, tt := range map[string]struct {
		edit func(*Dataset)
		want string // part of the only caveat; empty: there is none
	}{
		"the defaults":         {func(*Dataset) {}, ""},
		"in near-real-time":    {func(d *Dataset) { d.Fill.FutureDays = 0 }, ""},
		"another window":       {func(d *Dataset) { d.Fill.PastDays = 10 }, "10 days back and 10 days ahead: they were measured with 30 days back and 0 or 10 ahead"},
		"no model has a part":  {func(d *Dataset) { d.Fill.PastDays, d.Fill.Method, d.DailySkill = 10, "oi", false }, ""},
		"no day is scored":     {func(d *Dataset) { d.DailySkill = false }, "daily_skill is off"},
		"its own model serves": {func(d *Dataset) { d.Fill.Method, d.DailySkill = infer.MethodModel, false }, ""},
	} {
		d := DefaultDataset()
		tt.edit(&d)
		got := strings.Join(d.Caveats(), "\n")
		if !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
