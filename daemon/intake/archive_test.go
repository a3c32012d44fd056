package intake

import "testing"

func TestPlacesBecomeArchives(t *testing.T) {
	for place, want := range map[string]string{
		"archive":                                            "dir",
		"https://data.example.org/a/":                        "http",
		"ftp://ftp.example.org/pub/chl":                      "ftp",
		"s3://s3.example.org/b/p/q":                          "s3",
		"cmems_obs-oc_blk_bgc-plankton_nrt_l3-multi-1km_P1D": "cmems",
	} {
		a, err := At(place)
		if err != nil || a.Type != want {
			t.Errorf("%s is of type %q, %v; want %s", place, a.Type, err, want)
		}
		if err := a.Validate(); err != nil {
			t.Errorf("%s: %v", place, err)
		}
	}
	if a, err := At("s3://s3.example.org/b/p/q"); err != nil || a.S3.Bucket != "b" || a.S3.Prefix != "p/q" {
		t.Errorf("bucket %q, prefix %q, %v", a.S3.Bucket, a.S3.Prefix, err)
	}
	for _, bad := range []string{"s3://host", "gopher://host/x"} {
		if _, err := At(bad); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}
