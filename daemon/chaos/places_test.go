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
// operator sends them again afterwards, as the handbook says.
func topicLost(how func(*broker, context.Context, string) error, topic string) func(context.Context, *campaign) (func() error, error) {
	return func(ctx context.Context, c *campaign) (func() error, error) {
		if err := c.broker.harvest(ctx); err != nil {
			return nil, err
		}
		if err := how(c.broker, ctx, topic); err != nil {
			return nil, err
		}
		if topic != kafka.EventsTopic(prefix) && topic != kafka.DataTopic(prefix) {
			// The topics of jobs are made at a start, and jobs that were lost are sent again
			// then: the operator who deleted them restarts the service.
			return c.restart, nil
		}
		return func() error { return c.eventually(ctx, "publish", "replay", "--topic", prefix) }, nil
	}
}

// restart restarts the daemon and its workers.
func (c *campaign) restart() error {
	for _, p := range c.processes() {
		p.hold()
	}
	for _, p := range c.processes() {
		p.release()
	}
	return nil
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

// stateRestored takes a copy of the state, or restores the one that was taken
// before.
func stateRestored(_ context.Context, c *campaign) (func() error, error) {
	c.daemon.hold()
	for _, w := range c.workers { // they use the shared folder in it
		w.hold()
	}
	defer func() {
		for _, p := range c.processes() {
			p.release()
		}
	}()
	state, kept := c.disks["state"], c.path("kept")
	if !c.kept {
		_ = os.RemoveAll(kept)
		c.kept = true
		c.missed++
		return nil, copyTree(state.behind, kept)
	}
	c.kept = false
	state.remove()
	if err := os.RemoveAll(state.behind); err != nil {
		return nil, err
	}
	return nil, errors.Join(copyTree(kept, state.behind), state.mount())
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

// secondDaemon starts another daemon: a standby on the same state, or one with
// another state that was given the same folder of products, bucket and topics by
// mistake.
func secondDaemon(state string) func(context.Context, *campaign) (func() error, error) {
	return func(_ context.Context, c *campaign) (func() error, error) {
		config := c.path("second.yaml")
		if err := c.configure(config, "127.0.0.1:0", state); err != nil {
			return nil, err
		}
		if state != "state" { // it has no part in the turn of the first, and fills by itself
			text, err := os.ReadFile(config)
			if err != nil {
				return nil, err
			}
			if err := os.WriteFile(config, []byte(strings.Replace(string(text), "workers: {type: kafka", "workers: {type: local", 1)), 0o644); err != nil {
				return nil, err
			}
		}
		p := c.newProcess("second", "run", config)
		p.keep()
		return func() error { p.kill(); return os.RemoveAll(c.path("strange")) }, nil
	}
}
