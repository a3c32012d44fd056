package operate

import (
	"strings"
	"testing"
)

func TestDaysRangesAndNamesAreReadAlike(t *testing.T) {
	for _, tt := range []struct {
		name, args, from, to string
		want                 string // as String writes it; "!" and a part of the error
	}{
		{name: "nothing"},
		{name: "a day", args: "2024-04-09", want: "2024-04-09"},
		{name: "a range", args: "2024-04-01..2024-04-30", want: "2024-04-01..2024-04-30"},
		{name: "an open end", args: "2024-04-01..", want: "2024-04-01.."},
		{name: "an open beginning", args: "..2024-04-30", want: "..2024-04-30"},
		{name: "a name with a day in it", args: "2024/04/20240409_chl.nc", want: "2024/04/20240409_chl.nc"},
		{name: "a name with two dots", args: "chl..nc", want: "chl..nc"},
		{name: "all together", args: "a.nc 2024-04-09 2024-05-01..2024-05-03", want: "a.nc 2024-04-09 2024-05-01..2024-05-03"},
		{name: "flags", from: "2024-04-01", to: "2024-04-30", want: "2024-04-01..2024-04-30"},
		{name: "one flag", from: "2024-04-01", want: "2024-04-01.."},
		{name: "a flag that is no day", from: "april", want: "!a day is like"},
		{name: "a day that is none", args: "2024-13-09", want: "!a day is like"},
		{name: "half a range", args: "2024-04-01..april", want: "!a day is like"},
		{name: "the wrong order", args: "2024-04-30..2024-04-01", want: "!not before the first"},
		{name: "an empty word", args: "..", want: "!neither a day"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Select("sea", strings.Fields(tt.args), tt.from, tt.to)
			if fault, wrong := strings.CutPrefix(tt.want, "!"); wrong {
				if err == nil || !strings.Contains(err.Error(), fault) {
					t.Errorf("Select() = %v, %v, want an error with %q", got, err, fault)
				}
				return
			}
			if err != nil || got.String() != tt.want || got.IsZero() != (tt.want == "") {
				t.Errorf("Select() = %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}
