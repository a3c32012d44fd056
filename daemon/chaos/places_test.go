package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"lacuna/daemon/outbox"
	"lacuna/ledger"
	"lacuna/publish/kafka"

	"github.com/twmb/franz-go/pkg/kerr"
)

// topicLost deletes a topic or what is in it. Where receivers have lost events, an
// operator sends them again afterwards, as the handbook says: those of the last weeks.
func topicLost(how func(*broker, context.Context, string) error, topic string) func(context.Context, *campaign) (func() error, error) {
	return func(ctx context.Context, c *campaign) (func() error, error) {
		if c.broker.resume != nil { // nothing can be deleted from a broker that another nemesis has stopped
			c.broker.resume()
		}
		if err := c.broker.harvest(ctx); err != nil {
			return nil, err
		}
		if topic == kafka.EventsTopic(prefix) || topic == kafka.DataTopic(prefix) {
			c.orders = append(c.orders, func() error {
				return c.eventually(ctx, "publish", "replay", "--topic", prefix, "--from", c.producer.lately())
			})
		}
		err := how(c.broker, ctx, topic)
		if errors.Is(err, kerr.UnknownTopicOrPartition) { // another nemesis has deleted it
			c.missed++
			err = nil
		}
		return nil, err
	}
}

// eventually runs an operator's command until it succeeds: something else may be
// wrong at the same time.
func (c *campaign) eventually(ctx context.Context, args ...string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	for ctx.Err() == nil {
		if err = c.command(args...); err == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
	return err
}

// stateRestored takes a copy of the state, lets the service go on, and restores the
// copy: products were made and announced of which the state knows nothing then.
func stateRestored(ctx context.Context, c *campaign) (func() error, error) {
	state, kept := c.disks["state"], c.path("kept")
	err := c.paused(func() error { return errors.Join(os.RemoveAll(kept), copyTree(state.behind, kept)) })
	for range 3 {
		if err == nil {
			_, err = c.producer.deliver(ctx)
		}
	}
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(2 * poll); time.Now().Before(deadline) && len(c.behind(ctx, c.producer)) > 0; {
		time.Sleep(100 * time.Millisecond)
	}
	return func() error {
		return c.paused(func() error {
			state.remove()
			return errors.Join(os.RemoveAll(state.behind), copyTree(kept, state.behind), state.mount())
		})
	}, nil
}

// paused does something while neither daemon nor workers run: they all use the state.
func (c *campaign) paused(do func() error) error {
	for _, p := range c.processes() {
		p.hold()
	}
	defer func() {
		for _, p := range c.processes() {
			p.release()
		}
	}()
	return do()
}

func copyTree(from, to string) error {
	if said, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("copy %s: %w: %s", from, err, said)
	}
	return nil
}

// unmounted takes a mount away from under the service, and brings it back. What was
// written below the mount meanwhile is gone from sight then.
func unmounted(name string) func(context.Context, *campaign) (func() error, error) {
	return func(_ context.Context, c *campaign) (func() error, error) {
		d := c.disks[name]
		return func() error { d.server.Process.Kill(); _ = d.server.Wait(); return d.mount() }, d.detach()
	}
}

// startedWithoutProducts kills the daemon when its products are not mounted: it begins
// with the bare folder below.
func startedWithoutProducts(ctx context.Context, c *campaign) (func() error, error) {
	heal, err := unmounted("products")(ctx, c)
	daemonProcess(c).signal(syscall.SIGKILL)
	return heal, err
}

// Ways in which a second daemon shares what is the first one's.
type sharing int

const (
	standby  sharing = iota // the same state, waiting for its turn
	intruder                // the same state, without regard to turns
	twin                    // a copy of the state, and the same places
	stranger                // another state that was given the same places by mistake
)

// secondDaemon starts another daemon while the first one works, and gives both a
// granule to fill. None but a standby has a part in the turns of the first: it fills by
// itself.
func secondDaemon(how sharing) func(context.Context, *campaign) (func() error, error) {
	return func(ctx context.Context, c *campaign) (func() error, error) {
		state, config, listen := "state", c.path("second.yaml"), freePort(c.t)
		if how == twin || how == stranger {
			state = "strange"
		}
		if how == twin {
			if err := c.paused(func() error { return copyTree(c.disks["state"].behind, c.path(state)) }); err != nil {
				return nil, err
			}
		}
		if err := c.configure(config, listen, state); err != nil {
			return nil, err
		}
		if how != standby {
			text, err := os.ReadFile(config)
			if err != nil {
				return nil, err
			}
			if err := os.WriteFile(config, []byte(strings.Replace(string(text), "workers: {type: kafka", "workers: {type: local", 1)), 0o644); err != nil {
				return nil, err
			}
		}
		first := c.serving(ctx, c.listen, func() bool { return false })
		if _, err := c.producer.deliver(ctx); err != nil { // for the first poll of the second
			return nil, err
		}
		p := c.newProcess("second", "run", config)
		p.rest = time.Second // it is refused again and again
		p.keep()
		entered := how != standby && c.serving(ctx, listen, func() bool { return p.begun() > 1 }) && p.begun() == 1
		began, pid, products := time.Now(), c.daemon.pid(), c.disks["products"]
		mounts := products.mounts
		return func() error {
			// What it does wrong takes as long as a start and a poll; where it was let in, as long as its first product.
			for took := time.Since(began); took < poll || entered && took < 10*poll && len(c.published(ctx, state)) == 0; took = time.Since(began) {
				time.Sleep(50 * time.Millisecond)
			}
			p.kill()
			// Another daemon may have its turn when the first one has ended, and where the folder that was locked is away.
			if state == "strange" && first && pid == c.daemon.pid() && !products.away && products.mounts == mounts {
				c.strange = append(c.strange, c.published(ctx, state)...)
			}
			return os.RemoveAll(c.path("strange"))
		}, nil
	}
}

// serving waits until a daemon serves its pages, or two polls have passed, or it is
// not to be waited for any more; it returns whether it does.
func (c *campaign) serving(ctx context.Context, listen string, over func() bool) bool {
	for deadline := time.Now().Add(2 * poll); time.Now().Before(deadline) && !over(); time.Sleep(50 * time.Millisecond) {
		if _, err := figuresOf(ctx, listen); err == nil {
			return true
		}
	}
	return false
}

// published returns what the ledger of a second daemon says that was published and
// the ledger of the first does not.
func (c *campaign) published(ctx context.Context, state string) (all []claim) {
	ours, err := publications(ctx, c.path("state/dir/ledger.db"))
	theirs, bad := publications(ctx, c.path(state+"/dir/ledger.db"))
	if errors.Join(err, bad) != nil {
		return nil // one that was refused has none
	}
	for one := range theirs {
		if !ours[one] {
			all = append(all, one)
		}
	}
	return all
}

// publications returns what a ledger says that was published.
func publications(ctx context.Context, file string) (map[claim]bool, error) {
	book, err := ledger.Join(ctx, file)
	if err != nil {
		return nil, err
	}
	defer book.Close()
	rows, err := book.Publications(ctx, "", time.Time{}, time.Time{})
	all := map[claim]bool{}
	for _, p := range rows {
		body := outbox.Delivery(ledger.Delivery{Publication: p}).Product
		all[claim{"second", p.Dataset, p.Granule, p.Revision, body.SHA256, false}] = true
	}
	return all, err
}
