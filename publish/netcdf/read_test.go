package netcdf

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestWhatWasWrittenIsReadBack(t *testing.T) {
	t.Parallel()
	for name, fixture := range fixtures {
		t.Run(name, func(t *testing.T) {
			want, err := fixture().File()
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "p.nc")
			if err := Write(path, want); err != nil {
				t.Fatal(err)
			}
			image, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Read(image)
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateNaNs()); diff != "" || err != nil {
				t.Errorf("Read() = %v (-want +got):\n%s", err, diff)
			}
			if _, err := Read(image[:len(image)/2]); err == nil {
				t.Error("half a file is read without an error")
			}
		})
	}
}

func TestTheTimesOfAFileAreThoseOfItsProduct(t *testing.T) {
	t.Parallel()
	for name, fixture := range fixtures {
		p := fixture()
		f, err := p.File()
		if err != nil {
			t.Fatal(err)
		}
		line, err := f.Timeline(p.Variable, p.Times[0])
		if diff := cmp.Diff(p.Times, line.Times); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
		for i, period := range line.Periods {
			if period[0].After(p.Times[i]) || !period[1].After(period[0]) || line.Times[i].After(period[1]) {
				t.Errorf("%s: field of %v covers %v", name, line.Times[i], period)
			}
		}
	}
}

func TestMonthsAndYearsOfTheCalendarAreCounted(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		units  string
		amount float64
		want   string
	}{
		{"months since 2018-01-01", 1, "2018-02-01"},
		{"months since 2018-01-01", 14, "2019-03-01"},
		{"months since 2018-01-01", -1, "2017-12-01"},
		{"years since 2018-01-01", 2, "2020-01-01"},
		{"days since 2018-01-01", 59, "2018-03-01"},
		{"weeks since 2018-01-01", -1, "2017-12-25"},
	} {
		if got := later(day(2018, 1, 1), tt.units, tt.amount).Format("2006-01-02"); got != tt.want {
			t.Errorf("%v %s: %s, want %s", tt.amount, tt.units, got, tt.want)
		}
	}
}
