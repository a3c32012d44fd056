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
	"lacuna/daemon/state"
	"lacuna/ledger"
	"lacuna/ops"
)

// Overview is the state of the service, with or without a running daemon.
type Overview struct {
	Running bool   `json:"running"`
	Holder  string `json:"holder,omitempty"` // the running process, in words
	Page    string `json:"page,omitempty"`   // address of the status page; empty: it was not used
	// Backfills are the requested backfills that are not done yet.
	Backfills []operate.Backfill `json:"backfills"`
	Status    ops.Status         `json:"status"`
}

// overviewLimit bounds the wait for the answer of a running daemon, which takes
// it a few queries.
const overviewLimit = 5 * time.Second

// A daemon that has just been started needs a moment to create its ledger: it is
// given two seconds.
const (
	startPause = 100 * time.Millisecond
	startTries = 20
)

// Overview returns the state of the service: from the status page of a running
// daemon, else from the ledger, which knows only some of the problems of archives
// and sinks.
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
		time.Sleep(startPause) // the daemon has just been started and is about to create its ledger
		book, err = p.Join(ctx, scratch)
	}
	if err != nil {
		return o, err
	}
	defer book.Close()
	look, err := book.Look(ctx) // which reads several datasets at a time
	if err != nil {
		return o, err
	}
	defer look.Close()
	o.Status, err = p.Status(look)(ctx)
	o.Status.Started = time.Time{} // no daemon runs
	return o, err
}

// AskStatus fetches the status from the page of a daemon.
func AskStatus(ctx context.Context, page string) (ops.Status, error) {
	var s ops.Status
	ctx, cancel := context.WithTimeout(ctx, overviewLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, page+"status.json", nil)
	if err != nil {
		return s, err
	}
	client := &http.Client{Transport: &http.Transport{DialContext: (&net.Dialer{}).DialContext}} // without a proxy: the page is on this machine
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

// assess adds the ledger, hung stages, the troubles of datasets and the alarms to
// a status, and withdraws its readiness where a stage hangs or an archive stalls.
func (p Pages) assess(s *ops.Status) {
	s.Ledger = ops.Ledger{Bytes: ledger.Size(p.Settings.State.Ledger()), Rebuilt: ledger.LastDamage(p.Settings.State.Ledger())}
	s.Hung, s.NoGPU, s.Unreloaded = p.Live.Hung(), p.Live.Away(), p.Live.Unreloaded()
	stalled := slices.ContainsFunc(s.Datasets, func(row ops.Dataset) bool { return row.Stalled })
	s.Ready = s.Ready && s.Hung == "" && !stalled
	for i := range s.Datasets {
		row := &s.Datasets[i]
		row.Unfinished = p.Troubles.Of(row.Name)
	}
	s.Alarms = ops.Alarms(*s, p.Limits)
}

// noteBackfill adds the progress of a dataset's backfill.
func (p Pages) noteBackfill(ctx context.Context, book *ledger.Ledger, row *ops.Dataset) error {
	var b operate.Backfill
	if known, err := state.Load(p.Settings.State.Backfill(row.Name), &b); err != nil || !known {
		return nil // the backfill itself reports a request that cannot be read
	}
	news, err := operate.New(p.Settings, book, p.Now).BackfillNews(ctx, b)
	if err == nil {
		row.Backfill = news.String()
	}
	return err
}
