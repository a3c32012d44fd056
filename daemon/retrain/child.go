package retrain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Process runs a training as a process of its own: niced, in a process
// group of its own, paused while somebody holds it, and never left behind.
type Process struct {
	nice int
	env  []string // nil: that of this process

	mu    sync.Mutex // guards the fields below
	holds int
	turns turns
	group int // process group of the child; 0: none runs
}

// grace is the time that a child has to write its checkpoint when it is
// stopped.
const grace = 15 * time.Second

// NewProcess returns a process with the settings of a configuration, which runs
// nothing yet.
func NewProcess(c Config) *Process { return &Process{nice: c.Nice, env: c.environment()} }

// Hold pauses the process until the returned function is called. Filling has
// priority: a worker holds while it fills a granule.
func (c *Process) Hold() (release func()) { return c.hold(0) }

// HoldInTurn is Hold for work that can wait, and that is begun only where Owed is 0.
func (c *Process) HoldInTurn() (release func()) { return c.hold(1) }

// Owed returns for how long the process is to run before work that can wait pauses it
// again; 0: such work may begin.
func (c *Process) Owed() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count()
	if !c.turns.its {
		return 0
	}
	return c.turns.owed
}

func (c *Process) hold(patient int) (release func()) {
	c.add(1, patient)
	return sync.OnceFunc(func() { c.add(-1, -patient) })
}

// add adds holds, of which some are for work that can wait.
func (c *Process) add(holds, patient int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count()
	before := c.holds
	c.holds += holds
	c.turns.patient += patient
	switch {
	case before == 0:
		c.signal(syscall.SIGSTOP)
	case c.holds == 0:
		c.signal(syscall.SIGCONT)
	}
}

// count brings the turns up to date. The lock is held.
func (c *Process) count() { c.turns.count(time.Now(), c.group != 0, c.holds > 0) }

// signal sends to the group of the child. The lock is held.
func (c *Process) signal(s syscall.Signal) {
	if c.group != 0 {
		_ = syscall.Kill(-c.group, s) // a child that is gone needs no signal
	}
}

// errNotTrained says that a child ended without a version.
var errNotTrained = errors.New("the training ended without a version")

// Run starts argv and reads its events until it ends. It returns the last one,
// which is EventDone where a version was made. When ctx is cancelled the child
// writes a checkpoint and ends; one that does not is killed.
func (c *Process) Run(ctx context.Context, argv []string, stderr io.Writer, hear func(Event)) (last Event, err error) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// The kernel kills the child when the thread that made it ends, so
		// that a paused one is not left behind. So this goroutine keeps a
		// thread; it is never unlocked and ends with it, because a thread that
		// was niced cannot go back.
		runtime.LockOSThread()
		_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, c.nice) // without it the training competes with filling
		last, err = c.attend(ctx, argv, stderr, hear)
	}()
	<-ended
	return last, err
}

// attend is the part of Run on the locked thread, whose niceness the child
// inherits.
func (c *Process) attend(ctx context.Context, argv []string, stderr io.Writer, hear func(Event)) (Event, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stderr, cmd.Env = stderr, c.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = grace
	cmd.Cancel = func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.signal(syscall.SIGTERM)
		c.signal(syscall.SIGCONT) // a paused child receives no other signal
		c.group = 0               // no hold may pause it while it ends
		return nil
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return Event{}, fmt.Errorf("start training: %w", err)
	}
	if err := c.start(cmd); err != nil {
		return Event{}, err
	}
	last := ReadEvents(out, hear)
	err = cmd.Wait()
	c.mu.Lock()
	c.count()
	c.group = 0
	c.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return last, ctx.Err()
	case err != nil:
		return last, fmt.Errorf("training: %w", err)
	case last.Event != EventDone:
		return last, errNotTrained
	}
	return last, nil
}

// start starts the child, paused at once where somebody holds it.
func (c *Process) start(cmd *exec.Cmd) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start training: %w", err)
	}
	c.count() // what was before it is not its own
	c.group = cmd.Process.Pid
	if c.holds > 0 {
		c.signal(syscall.SIGSTOP)
	}
	return nil
}
