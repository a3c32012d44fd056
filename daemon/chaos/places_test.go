package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"lacuna/publish/kafka"
)

// topicLost deletes a topic or what is in it. Where receivers have lost events, an
// operator sends them again afterwards, as the handbook says: those of the last weeks.
func topicLost(how func(*broker, context.Context, string) error, topic string) func(context.Context, *campaign) (func() error, error) {
	return func(ctx context.Context, c *campaign) (func() error, error) {
		if err := c.broker.harvest(ctx); err != nil {
			return nil, err
		}
		if topic == kafka.EventsTopic(prefix) || topic == kafka.DataTopic(prefix) {
			c.orders = append(c.orders, func() error {
				return c.eventually(ctx, "publish", "replay", "--topic", prefix, "--from", c.producer.lately())
			})
		}
		return nil, how(c.broker, ctx, topic)
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

// Ways in which a second daemon shares what is the first one's.
type sharing int

const (
	standby  sharing = iota // the same state, waiting for its turn
	intruder                // the same state, without regard to turns
	twin                    // a copy of the state, and the same places
	stranger                // another state that was given the same places by mistake
)

// secondDaemon starts another daemon. None but a standby has a part in the turns of
// the first: it fills by itself.
func secondDaemon(how sharing) func(context.Context, *campaign) (func() error, error) {
	return func(_ context.Context, c *campaign) (func() error, error) {
		state, config := "state", c.path("second.yaml")
		if how == twin || how == stranger {
			state = "strange"
		}
		if how == twin {
			if err := c.paused(func() error { return copyTree(c.disks["state"].behind, c.path(state)) }); err != nil {
				return nil, err
			}
		}
		if err := c.configure(config, "127.0.0.1:0", state); err != nil {
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
		p := c.newProcess("second", "run", config)
		p.rest = time.Second // it is refused again and again
		p.keep()
		began := time.Now()
		return func() error {
			time.Sleep(poll - time.Since(began)) // what it does wrong takes as long as a start and a poll
			p.kill()
			return os.RemoveAll(c.path("strange"))
		}, nil
	}
}
