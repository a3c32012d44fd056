package chaos

import (
	"context"
	"math/rand/v2"
	"syscall"
	"time"
)

// nemesis is one thing that goes wrong.
type nemesis struct {
	name string
	long bool // only in the long run
	// strike lets it go wrong, and returns what makes it good again: nil where that
	// is the service's own affair.
	strike func(context.Context, *campaign) (heal func() error, err error)
}

// nemeses returns all of them.
func nemeses() []nemesis {
	return []nemesis{
		{name: "daemon killed", strike: signalled(daemonProcess, syscall.SIGKILL)},
		{name: "worker stopped", strike: signalled(workerProcess, syscall.SIGSTOP)},
		{name: "state disk full", strike: failing("state", syscall.ENOSPC)},
	}
}

func daemonProcess(c *campaign) *process { return c.daemon }
func workerProcess(c *campaign) *process { return c.workers[c.random.IntN(len(c.workers))] }

// signalled sends a signal to a process.
func signalled(which func(*campaign) *process, s syscall.Signal) func(context.Context, *campaign) (func() error, error) {
	return func(_ context.Context, c *campaign) (func() error, error) {
		p := which(c)
		p.signal(s)
		if s == syscall.SIGSTOP {
			return func() error { p.signal(syscall.SIGCONT); return nil }, nil
		}
		return nil, nil
	}
}

// failing lets a disk fail.
func failing(name string, errno syscall.Errno) func(context.Context, *campaign) (func() error, error) {
	return func(_ context.Context, c *campaign) (func() error, error) {
		c.disks[name].fail(errno)
		return func() error { c.disks[name].fail(0); return nil }, nil
	}
}

// lasts is how long something goes wrong: from a blink to longer than a session.
func lasts(random *rand.Rand) time.Duration {
	return time.Duration(200+random.IntN(4000)) * time.Millisecond
}
