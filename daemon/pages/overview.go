package pages

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	"lacuna/daemon/operate"
	"lacuna/daemon/retrain"
	"lacuna/daemon/state"
	"lacuna/ledger"
	"lacuna/ops"
)

// Overview is how the service is, with or without a daemon that runs.
type Overview struct {
	Running bool   `json:"running"`
	Holder  string `json:"holder,omitempty"` // the process that runs, in words
	Page    string `json:"page,omitempty"`   // address of the status page; empty: it was not asked
	// Backfills are what operators have asked for and is not done yet.
	Backfills []operate.Backfill `json:"backfills"`
	Status    ops.Status         `json:"status"`
}

// overviewLimit is how long a daemon that runs is waited for: its answer is
// made from a few queries.
const overviewLimit = 5 * time.Second

// A daemon that starts needs a moment for a ledger that others can read: it is
// given two seconds.
const (
	startPause = 100 * time.Millisecond
	startTries = 20
)

// Overview returns how the service is: as the daemon that runs tells, else as
// its books do. Without a daemon the problems of archives and sinks are those
// that the ledger knows of.
func (p Pages) Overview(ctx context.Context) (Overview, error) {
	o := Overview{Backfills: []operate.Backfill{}}
	for _, set := range p.Settings.Datasets {
		var b operate.Backfill
		if known, err := state.Load(p.Settings.State.Backfill(set.Name), &b); known && err == nil {
			o.Backfills = append(o.Backfills, b)
		}
	}
	o.Holder, o.Running = ledger.Holder(p.Settings.State.Ledger())
	if o.Running {
		page := "http://" + p.Listen + "/"
		if s, err := AskStatus(ctx, page); err == nil {
			o.Page, o.Status = page, s
			return o, nil
		}
	} else {
		o.Holder = ""
	}
	scratch, err := os.MkdirTemp("", "lacuna-status-")
	if err != nil {
		return o, fmt.Errorf("status: %w", err)
	}
	defer os.RemoveAll(scratch)
	book, err := p.Join(ctx, scratch)
	for tries := 0; err != nil && o.Running && tries < startTries && ctx.Err() == nil; tries++ {
		time.Sleep(startPause) // it has just been started and is about to lay its ledger out
		book, err = p.Join(ctx, scratch)
	}
	if err != nil {
		return o, err
	}
	defer book.Close()
	o.Status, err = p.Status(book)(ctx)
	o.Status.Started = time.Time{} // nobody has started anything
	return o, err
}

// AskStatus asks a daemon for its status.
func AskStatus(ctx context.Context, page string) (ops.Status, error) {
	var s ops.Status
	ctx, cancel := context.WithTimeout(ctx, overviewLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, page+"status.json", nil)
	if err != nil {
		return s, err
	}
	client := &http.Client{Transport: &http.Transport{DialContext: (&net.Dialer{}).DialContext}} // no proxy stands before our own machine
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	if err != nil {
		return s, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return s, errors.New(response.Status)
	}
	return s, json.NewDecoder(response.Body).Decode(&s)
}

// assess adds to a status what operators are to look at.
func (p Pages) assess(s *ops.Status) {
	s.Ledger = ops.Ledger{Bytes: ledger.Size(p.Settings.State.Ledger()), Rebuilt: ledger.LastDamage(p.Settings.State.Ledger())}
	s.Hung = p.Live.Hung()
	stalled := slices.ContainsFunc(s.Datasets, func(row ops.Dataset) bool { return row.Stalled })
	s.Ready = s.Ready && s.Hung == "" && !stalled
	for i := range s.Datasets {
		row := &s.Datasets[i]
		row.Unfinished, row.TrainFailed = p.Troubles.Of(row.Name), retrain.Failure(p.Settings.State.Training(row.Name))
	}
	s.Alarms = ops.Alarms(*s, p.Limits)
}
