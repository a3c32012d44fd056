package daemon

import (
	"context"
	"errors"
	"time"
)

// probeLimit bounds the trial of the sandbox: a child starts in a tenth of a
// second, on an overloaded machine in several seconds.
const probeLimit = 20 * time.Second

// logIsolation tries the sandbox of the decoding child once and logs which of its
// walls the kernel provides. A missing wall is a warning and does not stop the
// service: granules that refer to other files are refused all the same.
func (d *Daemon) logIsolation(ctx context.Context) {
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
