package daemon

import (
	"context"
	"errors"
	"time"
)

// probeLimit is how long the sandbox may take to be tried: a child starts in a
// tenth of a second, on a machine that is overloaded in several.
const probeLimit = 20 * time.Second

// tellIsolation tries the sandbox of the decoding child once and says in the
// log what keeps a hostile granule in it. A kernel that lacks part of it is
// worth a warning and no reason to stop: granules that refer to other files are
// refused all the same.
func (d *Daemon) tellIsolation(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	switch walls, err := d.reader.Isolation(ctx); {
	case err != nil:
		if !errors.Is(ctx.Err(), context.Canceled) {
			d.log.Warn("sandbox of the decoding child not tried", "err", err)
		}
	case walls.Tight():
		d.log.Debug("decoding child", "sandbox", walls.String())
	default:
		d.log.Warn("the decoding child is not fully confined: use a kernel with Landlock (5.13 or newer) and seccomp", "sandbox", walls.String())
	}
}
