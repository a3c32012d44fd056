package service

import (
	"bytes"
	"encoding/json"
	"testing"
	"text/tabwriter"
	"time"

	"lacuna/daemon/books"
	"lacuna/daemon/operate"
	"lacuna/daemon/pages"
	"lacuna/internal/golden"
	"lacuna/ops"
)

// busyOverview is a service with something to tell of everything.
func busyOverview() pages.Overview {
	now := time.Date(2024, 5, 20, 12, 0, 0, 0, time.UTC)
	s := ops.Status{
		Version: "0.1.0", Started: now.Add(-26 * time.Hour), Now: now, Ready: true,
		Datasets: []ops.Dataset{
			{
				Name: "blk-chl", Title: "Black Sea chlorophyll", Method: "model imputer-7", Champion: "imputer-7", LastGranule: "2024/05/20240519_chl.nc",
				LastDay: now.Add(-36 * time.Hour), LastArrival: now.Add(-90 * time.Second), NewestField: now.Add(-36 * time.Hour),
				States: []ops.StateCount{{State: "fetched", Granules: 2}, {State: "announced", Granules: 40}, {State: "quarantined", Granules: 1}},
				Queue:  2, LastPoll: now.Add(-time.Minute), Breaker: "closed", Backfill: "blk-chl 2023-05-21..2024-04-21: 12 of 40 products made again, 28 to fill, 0 set aside, about 4 min left",
				Skill:    &ops.Skill{Day: now.Add(-36 * time.Hour), Kind: "overlay", Method: "imputer-7", MSE: 0.125, Bias: 0.01, Within90: 0.9, Pixels: 4000},
				Training: "being trained (imputer, step 3 of 9): 30 new granules since the last training", Train: &ops.Training{
					State: "training", Begun: now.Add(-time.Hour), Since: now.Add(-time.Hour), Progress: 0.5, Phase: "imputer", Schedule: "every Sunday at 02:00 UTC",
					Next: now.AddDate(0, 0, 6), Window: "22:00-06:00", Seen: []string{"30 new granules"}, Refusals: 1,
					Last: &ops.Outcome{State: "refused", Ended: now.AddDate(0, 0, -7), Version: "imputer-8", Why: "30 new granules", Reasons: []string{"against: more error"}},
				},
			},
			{Name: "med-sst", Method: "optimal interpolation in space and time", Problem: "archive away", States: []ops.StateCount{}},
		},
		Products: []ops.Product{}, Quarantine: []ops.Quarantined{},
		Sinks:  []ops.Sink{{Name: "disk"}, {Name: "kafka:lacuna", Waiting: 3, Bytes: 3000, Oldest: now.Add(-7 * time.Hour), Aside: 1}},
		Disks:  []ops.Disk{{Folder: "state", FreeBytes: 50 << 30}},
		Ledger: ops.Ledger{Bytes: 1 << 20},
	}
	s.Alarms = ops.Alarms(s, ops.DefaultHookConfig().Limits)
	return pages.Overview{Running: true, Holder: "process 4711", Page: "http://127.0.0.1:8087/", Status: s, Backfills: []operate.Backfill{
		{Dataset: "blk-chl", From: now.AddDate(-1, 0, 0), To: now.AddDate(0, -1, 0), Next: now.AddDate(0, -6, 0), Asked: now},
	}}
}

// People read this on a screen, programs the JSON: neither changes unseen.
func TestWhatOperatorsReadIsAPromise(t *testing.T) {
	var table bytes.Buffer
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	printOverview(w, busyOverview())
	w.Flush()
	golden.Compare(t, "operate/status.txt", table.Bytes())

	at := time.Date(2024, 5, 20, 12, 0, 0, 0, time.UTC)
	fill := operate.Backfill{Dataset: "sea", From: at, To: at, Next: at, Asked: at}
	shapes := map[string]any{
		"status": busyOverview(),
		"why": []operate.Story{{
			Dataset: "sea", Granule: "a.nc", Days: []string{"2024-05-20"}, State: "announced", ToDo: "Nothing.",
			Lines: []operate.StoryLine{{At: at, Text: "Revision 1: seen on the archive."}},
		}},
		"train status": []operate.Training{{
			Dataset: "sea", State: "training", Words: "being trained", Why: "no model serves yet", Begun: at, Until: at, Since: at, Phase: "imputer", Step: 3, Steps: 9,
			LeftSeconds: new(float64), Schedule: "every day at 02:00 UTC", Next: at, Window: "22:00-06:00", Seen: []string{"30 new granules"}, NoGPU: "no device", Failure: "no memory",
		}},
		"train pause": []operate.Steered{{Dataset: "sea", Order: operate.PauseTraining, Changed: true, Words: "the training of sea is paused"}},
		"quarantine":  []operate.Aside{{Dataset: "sea", Granule: "a.nc", Revision: 1, Reason: "bad", Since: at, File: "f", Bytes: 7, SHA256: "00"}},
		"retry":       []operate.Retried{{Dataset: "sea", Granule: "a.nc", Revision: 1, Problem: "no bytes"}},
		"redo":        []operate.Redone{{Dataset: "sea", Granule: "a.nc", Revision: 2, Note: "it was about to be made anyway"}},
		"grid": []operate.GridStatus{{
			Dataset: "sea", Grid: "40×60", Since: at, Why: "a.nc is the first", Settled: true, Agree: 5, Needed: 5, Pin: "{}", Pinned: "{}",
			Others: []operate.GridCount{{Grid: "41×60", Granules: 1}}, Changes: []operate.GridChange{{At: at, Grid: "40×60", Why: "a.nc is the first"}},
		}},
		"grid reset": operate.GridReset{Dataset: "sea", Grid: "40×60", Again: 2, Why: "it was odd"},
		"backfill":   operate.BackfillNews{Backfill: fill, ByDaemon: true, Granules: 4, Waiting: 1, Products: 2, SetAside: 1, Left: 12.5, Rate: 480, Took: 60},
		"estimate":   operate.Estimate{Products: 90, Each: 8.25, Seconds: 742.5, Measured: 60},
		"rebuild":    books.Rebuilt{Away: "f", Granules: 6, Products: 3, SetAside: 2, Waiting: 1, Lost: 1, Orphans: 1},
		"check":      operate.Finding{What: "ledger", OK: false, Text: "damaged", ToDo: "restart"},
	}
	text, err := json.MarshalIndent(shapes, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "operate/shapes.json", append(text, '\n'))
}
