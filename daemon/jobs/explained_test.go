package jobs

import (
	"reflect"
	"testing"
	"time"

	"lacuna/daemon/fill"
	"lacuna/pipeline/infer"
	"lacuna/publish/netcdf"
)

// What covariates explain reaches a worker to the bit, without any file of theirs.
func TestAWorkerKnowsWhatCovariatesExplain(t *testing.T) {
	folder := Folder{Storage: Dir(t.TempDir())}
	sent := fill.Explained{
		Names: "sst", Inputs: []netcdf.Input{{Name: "sst.nc", SHA256: "ab", Role: netcdf.RoleCovariate}}, Lacking: []string{"depth"},
		Drift: []infer.Drift{
			{Time: time.Date(2024, 5, 3, 12, 0, 0, 0, time.UTC), Values: []float32{0.1, -2.5, 1e-8}},
			{Time: time.Date(2024, 5, 4, 12, 0, 0, 0, time.UTC), Values: []float32{3, 4, 5}},
		},
		Unfit: []string{"wind"},
		Maps:  []infer.Covariate{{Time: time.Date(2024, 5, 4, 12, 0, 0, 0, time.UTC), Name: "sst", Units: "kelvin", Values: []float32{290.5, 7}}},
	}
	packed, err := folder.packExplained(sent)
	if err != nil {
		t.Fatal(err)
	}
	if needs := (Message{Explained: packed}).Objects(); len(needs) != 3 {
		t.Errorf("the job needs %v of the folder", needs)
	}
	if got, err := folder.unpackExplained(packed); err != nil || !reflect.DeepEqual(got, sent) {
		t.Errorf("sent %+v\n got %+v, %v", sent, got, err)
	}
	if packed, err := folder.packExplained(fill.Explained{}); packed != nil || err != nil {
		t.Errorf("a job without covariates has %+v, %v", packed, err)
	}
}
