package chaos

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is one of the service, which is started again when it ends, as a service
// manager does.
type process struct {
	name string
	args []string
	env  []string
	said string        // file of what it says
	rest time.Duration // before it is started again

	mu      sync.Mutex
	cmd     *exec.Cmd
	held    bool // not to be started again
	starts  int
	ends    bool
	stopped sync.WaitGroup
}

// restartPause is that of a service manager.
const restartPause = 200 * time.Millisecond

// keep starts p, and again whenever it ends.
func (p *process) keep() {
	p.stopped.Go(func() {
		for {
			p.mu.Lock()
			ends, held := p.ends, p.held
			var cmd *exec.Cmd
			if !ends && !held {
				cmd = p.start()
			}
			p.mu.Unlock()
			if ends {
				return
			}
			if cmd != nil {
				_ = cmd.Wait() // it was killed, or says why in its log
			}
			p.mu.Lock()
			p.cmd = nil
			p.mu.Unlock()
			time.Sleep(p.rest)
		}
	})
}

// start starts the process; p.mu must be held.
func (p *process) start() *exec.Cmd {
	said, err := os.OpenFile(p.said, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil
	}
	defer said.Close()
	cmd := exec.Command(p.args[0], p.args[1:]...)
	cmd.Env = append(append(os.Environ(), programEnv+"=1", nameEnv+"="+p.name), p.env...)
	cmd.Stdout, cmd.Stderr = said, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if cmd.Start() != nil {
		return nil
	}
	p.cmd = cmd
	p.starts++
	return cmd
}

// pid returns the number of the process, 0 where it does not run.
func (p *process) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

// begun returns how often the process was started.
func (p *process) begun() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.starts
}

func (p *process) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		_ = p.cmd.Process.Signal(s)
	}
}

// hold ends the process and lets it not be started again before release.
func (p *process) hold() {
	p.mu.Lock()
	p.held = true
	p.mu.Unlock()
	for p.pid() != 0 {
		p.signal(syscall.SIGKILL)
		time.Sleep(10 * time.Millisecond)
	}
}

func (p *process) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = false
}

// kill ends the process for good, at once.
func (p *process) kill() {
	p.mu.Lock()
	p.ends = true
	p.mu.Unlock()
	p.signal(syscall.SIGKILL)
	p.stopped.Wait()
}

// end ends the process for good: gently, and after a while not.
func (p *process) end() {
	p.mu.Lock()
	p.ends = true
	p.mu.Unlock()
	p.signal(syscall.SIGCONT)
	p.signal(syscall.SIGTERM)
	timer := time.AfterFunc(15*time.Second, func() { p.signal(syscall.SIGKILL) })
	defer timer.Stop()
	p.stopped.Wait()
}

// tail returns the last lines that the process said.
func (p *process) tail(lines int) string {
	text, _ := os.ReadFile(p.said)
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	return fmt.Sprintf("%s:\n%s", p.name, strings.Join(all[max(len(all)-lines, 0):], "\n"))
}

// children returns the processes that p has started and that have a word among
// their arguments.
func (p *process) children(word string) (pids []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", p.pid()))
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, field := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(field)
			args, _ := os.ReadFile("/proc/" + field + "/cmdline")
			if err == nil && strings.Contains(string(args), "\x00"+word) {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
