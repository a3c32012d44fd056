package daemon

import (
	"strings"
	"testing"

	"lacuna/daemon/operate"
)

func TestThePinnedGridIsTheOnlyOne(t *testing.T) {
	oneByOne(t)
	d := newDays(t)
	d.deliver(t, "g")
	d.b.once(t)
	named := d.grid(t).Pin
	d.deliver(t, "ooo")
	d.b.once(t)
	d.want(t, "appp") // outvoted: three granules have the other grid
	cfg, err := parseConfig("lacuna.yaml", []byte("datasets:\n  - name: sea\n    archive: {dir: "+d.b.archive()+"}\n    grid: "+named+"\n"))
	if err != nil {
		t.Fatalf("%s, as it is shown, is not taken: %v", named, err)
	}
	d.b.cfg.Datasets[0].Grid = cfg.Datasets[0].Grid
	d.b.once(t)
	d.want(t, "appp") // no granule with the pinned grid has come
	d.deliver(t, "g")
	d.b.once(t)
	d.want(t, "paaap")
	d.deliver(t, "oooooo")
	d.b.once(t)
	d.want(t, "paaapaaaaaa")
	s := d.grid(t)
	if s.Why != "the configuration names it" || !s.Settled || s.Pinned != named {
		t.Errorf("the grid is %+v", s)
	}
	d.b.operate(t, func(o *operate.Operations) error {
		aside, err := o.Quarantine(t.Context(), "sea")
		if len(aside) != 9 || !strings.Contains(aside[0].Reason, "is configured as") {
			t.Errorf("set aside: %+v", aside)
		}
		return err
	})
}
