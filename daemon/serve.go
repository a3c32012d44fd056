package daemon

import (
	"context"
	"errors"
	"os"
	"reflect"
	"strings"
)

// errReload is the cause of the end of a Daemon that another one follows.
var errReload = errors.New("a new configuration is taken up")

// Serve runs the service that load describes until ctx is cancelled, as
// Daemon.Run does. Every value of reload asks it to load the configuration
// again: a daemon with the new one follows when the old one has finished the
// granules in hand. The ledger connects the two, so nothing is lost or done
// twice.
//
// A new configuration that is bad, that cannot be run, or that needs a restart is
// logged, and the old one stays.
func Serve(ctx context.Context, load func() (Config, error), parts Parts, reload <-chan os.Signal) error {
	cfg, err := load()
	if err != nil {
		return err
	}
	d, err := New(cfg, parts)
	if err != nil {
		return err
	}
	var before *Daemon // the daemon that ran before d, until d has run
	for {
		next, err := d.runUntil(ctx, load, reload)
		var failed error
		switch {
		case err != nil && before != nil && !d.began.Load() && ctx.Err() == nil:
			parts.Log.Warn("the new configuration cannot be run, the old one is taken up again", "err", err)
			if next, failed = New(before.cfg, parts); failed != nil {
				return failed
			}
			next.refuse(err)
			before, d = nil, next
		case err != nil || next == nil:
			return err
		default:
			before, d = d, next
		}
	}
}

// runUntil runs d and returns the daemon that is to follow it; nil: none.
func (d *Daemon) runUntil(ctx context.Context, load func() (Config, error), reload <-chan os.Signal) (*Daemon, error) {
	run, end := context.WithCancelCause(ctx)
	defer end(nil)
	ended := make(chan error, 1)
	go func() { ended <- d.Run(run) }()
	for {
		select {
		case err := <-ended:
			return nil, err
		case <-reload:
		}
		next, err := d.successor(load)
		if err != nil {
			d.log.Warn("configuration not reloaded, the old one stays", "err", err)
		}
		d.refuse(err)
		if next == nil {
			continue
		}
		end(errReload)
		if err := <-ended; err != nil && (!errors.Is(err, errDrainTimeout) || ctx.Err() != nil) {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, nil
		}
		return next, nil
	}
}

// refuse notes why the configuration in the file is not the one that runs; nil:
// it is.
func (d *Daemon) refuse(err error) {
	if err == nil {
		d.refused.Store(nil)
		return
	}
	why := err.Error()
	d.refused.Store(&why)
}

// successor returns the daemon of the configuration as it is now; nil where
// nothing has changed.
func (d *Daemon) successor(load func() (Config, error)) (*Daemon, error) {
	cfg, err := load()
	if err != nil {
		return nil, err
	}
	changed := changedKeys(d.cfg, cfg)
	if len(changed) == 0 {
		d.log.Info("configuration reloaded, nothing has changed")
		return nil, nil
	}
	if cfg.StateDir != d.cfg.StateDir {
		return nil, errors.New("state_dir has changed, which needs a restart: the ledger and the spool have to be moved meanwhile")
	}
	next, err := New(cfg, d.parts)
	if err != nil {
		return nil, err
	}
	d.log.Info("configuration reloaded", "changed", strings.Join(changed, " "))
	return next, nil
}

// changedKeys returns the keys at the top of the file whose values differ.
func changedKeys(a, b Config) []string {
	var keys []string
	before, after := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range before.NumField() {
		if !reflect.DeepEqual(before.Field(i).Interface(), after.Field(i).Interface()) {
			name, _ := yamlName(before.Type().Field(i))
			keys = append(keys, name)
		}
	}
	return keys
}
