package service

import (
	"bytes"
	"errors"
	"testing"

	"lacuna/fetch"

	"github.com/vbauerster/mpb/v8"
)

// A bar must never keep the command from ending, however the fetch went.
func TestBarsEndHoweverTheFetchWent(t *testing.T) {
	one := fetch.Object{Name: "a.nc", Size: 100}
	two := fetch.Object{Name: "b.nc", Size: 50}
	both := []fetch.Action{{Object: one}, {Object: two}}
	for name, fetched := range map[string]func(p fetch.Progress){
		"listing failed": func(fetch.Progress) {},
		"nothing is new": func(p fetch.Progress) { p.Begin(nil) },
		"all came": func(p fetch.Progress) {
			p.Begin(both)
			p.Bytes(one, 100)
			p.Done(one, nil)
			p.Bytes(two, 50)
			p.Done(two, nil)
		},
		"broken off": func(p fetch.Progress) { p.Begin(both); p.Bytes(one, 7) },
		"one failed": func(p fetch.Progress) {
			p.Begin(both)
			p.Bytes(one, 7)
			p.Done(one, errors.New("cut"))
			p.Done(two, nil)
		},
		"looked at twice": func(p fetch.Progress) {
			p.Begin(both)
			p.Done(one, nil)
			p.Begin(both[:1])
			p.Bytes(one, 100)
			p.Done(one, nil)
		},
	} {
		t.Run(name, func(*testing.T) {
			bars := &fetchBars{pool: mpb.New(mpb.WithOutput(&bytes.Buffer{}))}
			fetched(bars.dataset("chl"))
			fetched(bars.dataset("sst"))
			bars.finish()
		})
	}
	if newFetchBars(&bytes.Buffer{}).dataset("chl") != nil {
		t.Error("there is a bar where there is no terminal")
	}
}
