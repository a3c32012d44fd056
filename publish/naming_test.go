package publish

import (
	"strings"
	"testing"
	"time"
)

func TestATemplateNamesAProduct(t *testing.T) {
	n := Naming{
		Dataset: "med-sst", Granule: "20240229_sst", Time: time.Date(2024, 2, 29, 12, 30, 5, 0, time.UTC), Revision: 3, Mode: Delayed,
		Institution: "C.N.R. Roma", SSTType: "SSTfnd",
	}
	for template, want := range map[Template]string{
		"{granule}_l4": "20240229_sst_l4.nc",
		"{date}{time}-{institution}-L4_GHRSST-{sst_type}-{product}-{mode}-v02.1-fv{revision:02}.0.nc": "20240229123005-CNRRoma-L4_GHRSST-SSTfnd-med_sst-dt-v02.1-fv03.0.nc",
		"{year}{doy}_{dataset}_r{revision}": "2024060_med-sst_r3.nc",
		"{year}-{month}-{day}":              "2024-02-29.nc",
	} {
		if got := template.Name(n); got != want {
			t.Errorf("%s gives %s, want %s", template, got, want)
		}
		early := n
		early.Mode = ""
		if got := WithMode(template.Name(early), Delayed); got != want {
			t.Errorf("%s, with the mode afterwards, gives %s, want %s", template, got, want)
		}
	}
}

func TestATemplateThatCannotTellProductsApartIsRefused(t *testing.T) {
	for template, want := range map[Template]string{
		"{date}_r{revision}":            "",
		"{year}{doy}_r{revision:03}.nc": "",
		"{granule}_r{revision}":         "",
		"{year}{month}{day}v{revision}": "",
		"{dataset}_r{revision}":         "add {date}",
		"{day}_r{revision}":             "add {date}",
		"{month}{day}_r{revision}":      "2023-01-15 and 2024-01-15 the same name: add {date}",
		"{year}{month}_r{revision}":     "2023-01-15 and 2023-01-16 the same name: add {date}",
		"{date}_{dataset}":              "add {revision}",
		"{date}_{mode}":                 "add {revision}",
		"{date}_{revison}":              "has {revison}, must be one of {dataset}",
		"{date}_{revision:x}":           "width",
		"{year}/{date}_{revision}":      "slashes",
		".{date}_{revision}":            "begin with a dot",
		"{date}_{revision}_{":           "single braces",
		"":                              "must not be empty",
	} {
		err := template.Check()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want a message with %q", template, err, want)
		}
	}
}

func TestTwoDatasetsAreToldApart(t *testing.T) {
	for _, tt := range []struct {
		a, b Template
		want string
	}{
		{"{date}_{dataset}_r{revision}", "{date}_{dataset}_r{revision}", ""},
		{"{date}_chl_r{revision}", "{date}_sst_r{revision}", ""},
		{"{date}_r{revision}", "{date}_r{revision}", "of this dataset and of b the same name: add {dataset}"},
	} {
		err := Apart("a", "b", tt.a, tt.b)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s and %s: %v, want %q", tt.a, tt.b, err, tt.want)
		}
	}
}
