package chaos

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"sync"
	"syscall"
	"time"

	"lacuna/publish/kafka"
)

// nemesis is one thing that goes wrong.
type nemesis struct {
	name   string
	long   bool // only in the long run
	models bool // it needs a model that serves
	alone  bool // nothing else strikes beside it
	// strike lets it go wrong, and returns what makes it good again: nil where that
	// is the service's own affair.
	strike func(context.Context, *campaign) (heal func() error, err error)
}

// nemeses returns all of them.
func nemeses() []nemesis {
	all := []nemesis{
		{name: "daemon killed", strike: signalled(daemonProcess, syscall.SIGKILL)},
		{name: "daemon killed in a delivery", strike: killedInDelivery},
		{name: "daemon stopped", strike: signalled(daemonProcess, syscall.SIGSTOP)},
		{name: "worker killed", strike: signalled(workerProcess, syscall.SIGKILL)},
		{name: "worker stopped", strike: signalled(workerProcess, syscall.SIGSTOP)},
		{name: "decoder killed", strike: decoder(syscall.SIGKILL)},
		{name: "decoder stopped", strike: decoder(syscall.SIGSTOP)},
		{name: "reload storm", strike: reloadStorm},
	}
	for _, disk := range []string{"state", "products", "models"} {
		all = append(all,
			nemesis{name: disk + " disk full", strike: failing(disk, fault{errno: syscall.ENOSPC})},
			nemesis{name: disk + " disk with errors", strike: failing(disk, fault{errno: syscall.EIO})},
			nemesis{name: disk + " disk with errors now and then", strike: failing(disk, fault{errno: syscall.EIO, oneIn: seldom})},
			nemesis{name: disk + " disk read-only", strike: failing(disk, fault{errno: syscall.EROFS})})
	}
	// Of a state that fails as a whole nothing can be written down either. Folders of it
	// are often on disks of their own.
	all = append(all,
		nemesis{name: "shared folder with errors", strike: failingMeanwhile(fault{errno: syscall.EIO, under: "dir/shared"})},
		nemesis{name: "shared folder full", strike: failingMeanwhile(fault{errno: syscall.ENOSPC, under: "dir/shared"})},
		nemesis{name: "spool with errors now and then", strike: failingMeanwhile(fault{errno: syscall.EIO, oneIn: seldom, under: "dir/spool"})})
	for _, t := range []trouble{drips, truncates, garbles, redirects, lessening, boasting, refusing, cutting} {
		all = append(all, nemesis{name: "archive " + string(t), strike: misleading(t)})
	}
	return append(all,
		nemesis{name: "broker paused", strike: brokerPaused},
		nemesis{name: "broker restarted", long: true, strike: brokerRestarted},
		nemesis{name: "events deleted", long: true, strike: topicLost((*broker).deleteTopic, kafka.EventsTopic(prefix))},
		nemesis{name: "events truncated", long: true, strike: topicLost((*broker).truncate, kafka.EventsTopic(prefix))},
		nemesis{name: "data truncated", long: true, strike: topicLost((*broker).truncate, kafka.DataTopic(prefix))},
		nemesis{name: "jobs deleted", long: true, strike: topicLost((*broker).deleteTopic, prefix+".jobs")},
		nemesis{name: "jobs truncated", long: true, strike: topicLost((*broker).truncate, prefix+".jobs")},
		nemesis{name: "results truncated", long: true, strike: topicLost((*broker).truncate, prefix+".results")},
		nemesis{name: "state restored from an older copy", strike: stateRestored},
		// Nothing can be wrong with a disk that is away at the same time.
		nemesis{name: "products unmounted", alone: true, strike: unmounted("products")},
		nemesis{name: "daemon started with products unmounted", alone: true, strike: startedWithoutProducts},
		nemesis{name: "standby on the same state", strike: secondDaemon(standby)},
		nemesis{name: "intruder on the same state", strike: secondDaemon(intruder)},
		// What else strikes may end the first daemon, and then another one may have its turn: once in a round nothing does.
		nemesis{name: "twin with a copy of the state", alone: true, strike: secondDaemon(twin)},
		nemesis{name: "stranger on the same products", strike: secondDaemon(stranger)},
		nemesis{name: "trainer killed", long: true, models: true, strike: trainer(syscall.SIGKILL)},
		nemesis{name: "trainer stopped", long: true, models: true, strike: trainer(syscall.SIGSTOP)},
		nemesis{name: "champion tampered with", long: true, models: true, strike: tampered(garble)},
		nemesis{name: "champion deleted", long: true, models: true, strike: tampered(os.RemoveAll)},
		nemesis{name: "a day ahead", strike: clockWrong("24h")},
		nemesis{name: "a day behind", strike: clockWrong("-24h")},
	)
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

// killedInDelivery kills the daemon while it uploads a product.
func killedInDelivery(ctx context.Context, c *campaign) (func() error, error) {
	struck := make(chan struct{})
	strike := func() { daemonProcess(c).signal(syscall.SIGKILL); close(struck) }
	c.archives.onDelivery.Store(&strike)
	_, err := c.producer.deliver(ctx)
	select {
	case <-struck:
	case <-time.After(2 * poll): // what strikes beside it may keep products back
	}
	return func() error { c.archives.onDelivery.Store(nil); return nil }, err
}

// seldom is how many operations of a disk that is about to break there are to one
// that fails. Of a disk on which everything fails a service can do nothing wrong: here
// a step fails, and the next one, which is to deal with that, does not.
const seldom = 12

// failing lets a disk fail.
func failing(name string, f fault) func(context.Context, *campaign) (func() error, error) {
	return func(_ context.Context, c *campaign) (func() error, error) {
		return func() error { return c.disks[name].fail(0) }, c.disks[name].become(f)
	}
}

// failingMeanwhile lets a part of the state fail while a granule comes and is to be
// filled.
func failingMeanwhile(f fault) func(context.Context, *campaign) (func() error, error) {
	return func(ctx context.Context, c *campaign) (func() error, error) {
		heal := func() error { return c.disks["state"].fail(0) }
		name, err := c.producer.deliver(ctx)
		if err := errors.Join(err, c.disks["state"].become(f)); err != nil {
			return heal, err
		}
		for deadline := time.Now().Add(poll + poll/4); time.Now().Before(deadline) && !c.takenUp(ctx, name); {
			time.Sleep(50 * time.Millisecond)
		}
		return heal, nil
	}
}

// takenUp reports whether the ledger has an object in every dataset.
func (c *campaign) takenUp(ctx context.Context, name string) bool {
	book, err := c.ledger(ctx)
	if err != nil {
		return false
	}
	defer book.Close()
	have, err := fates(ctx, book)
	for _, dataset := range datasets {
		if _, known := have[dataset+"/"+name]; !known {
			return false
		}
	}
	return err == nil
}

// decoder sends a signal to a process that decodes, if one does so soon.
func decoder(s syscall.Signal) func(context.Context, *campaign) (func() error, error) {
	return func(ctx context.Context, c *campaign) (func() error, error) {
		if _, err := c.producer.deliver(ctx); err != nil { // something to decode
			return nil, err
		}
		for deadline := time.Now().Add(poll + time.Second); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
			for _, p := range c.processes() {
				for _, pid := range p.children("decode") {
					if syscall.Kill(pid, s) == nil && s == syscall.SIGSTOP {
						return func() error { _ = syscall.Kill(pid, syscall.SIGCONT); return nil }, nil
					} else if s != syscall.SIGSTOP {
						return nil, nil
					}
				}
			}
		}
		c.missed++
		return nil, nil
	}
}

// reloadStorm asks the daemon again and again to read its configuration.
func reloadStorm(_ context.Context, c *campaign) (func() error, error) {
	for range 20 {
		c.daemon.signal(syscall.SIGHUP)
		time.Sleep(time.Duration(c.random.IntN(100)) * time.Millisecond)
	}
	return nil, nil
}

// misleading lets both archives, or one of them, mislead.
func misleading(t trouble) func(context.Context, *campaign) (func() error, error) {
	return func(ctx context.Context, c *campaign) (func() error, error) {
		which := c.random.IntN(3)
		if which != 0 {
			c.archives.onFTP.Store(t)
		}
		if which != 1 {
			c.archives.onS3.Store(t)
		}
		heal := func() error {
			c.archives.onFTP.Store(honest)
			c.archives.onS3.Store(honest)
			return nil
		}
		if t != cutting {
			return heal, nil
		}
		name, err := c.producer.deliver(ctx)
		if err != nil {
			return heal, err
		}
		for deadline := time.Now().Add(poll + poll/4); time.Now().Before(deadline) && !c.archives.halved(name); {
			time.Sleep(10 * time.Millisecond)
		}
		return heal, c.producer.correct(ctx, name)
	}
}

// brokerPaused stops the broker for a while.
func brokerPaused(_ context.Context, c *campaign) (func() error, error) {
	c.broker.resume = sync.OnceFunc(c.broker.pause())
	return func() error { c.broker.resume(); return nil }, nil
}

// brokerRestarted kills the broker, which leads every partition, and starts it again.
func brokerRestarted(_ context.Context, c *campaign) (func() error, error) {
	c.broker.restart()
	return nil, nil
}

// clockWrong sets the clock of daemon and workers.
func clockWrong(by string) func(context.Context, *campaign) (func() error, error) {
	return func(_ context.Context, c *campaign) (func() error, error) {
		if err := os.WriteFile(c.clock, []byte(by), 0o644); err != nil {
			return nil, err
		}
		return func() error { return os.RemoveAll(c.clock) }, nil // the other way of it may have struck too
	}
}

// lasts is how long something goes wrong: from a blink to longer than a session, and
// seldom long.
func lasts(random *rand.Rand) time.Duration {
	share := random.Float64()
	return 100*time.Millisecond + time.Duration(share*share*float64(4*time.Second))
}
