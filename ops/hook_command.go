package ops

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// commandVariables are the environment variables that a command inherits: those
// with which programs find others and their settings, and choose language and
// time zone. Passwords and keys of the service are kept from it; command_env
// names further ones.
var commandVariables = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "LANG", "LC_ALL", "LC_CTYPE", "LC_TIME"}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// commandEnv returns the environment of a command: the usual variables, those
// that more names, and those about the message.
func commandEnv(m Message, more []string, lookup func(string) (string, bool)) []string {
	var env []string
	for _, name := range append(commandVariables[:len(commandVariables):len(commandVariables)], more...) {
		if value, ok := lookup(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return append(env, "LACUNA_STATE="+m.State, "LACUNA_ALARM="+m.Name, "LACUNA_SUBJECT="+m.Subject)
}

// run hands body to the command.
func (h *Hook) run(ctx context.Context, m Message, body []byte) error {
	if len(h.cfg.Command) == 0 {
		return nil
	}
	program, err := h.machine.program(h.cfg.Command[0])
	if err != nil {
		return fmt.Errorf("run the command: %w", err)
	}
	c := exec.CommandContext(ctx, program, h.cfg.Command[1:]...)
	c.Env = commandEnv(m, h.cfg.CommandEnv, h.lookup)
	c.Stdin = bytes.NewReader(append(body, '\n'))
	c.WaitDelay = time.Second // a grandchild that holds the pipe must not block us
	out, err := c.CombinedOutput()
	if err != nil {
		return fmt.Errorf("run %s: %w: %s", h.cfg.Command[0], err, lastLine(out))
	}
	return nil
}

// lastLine returns the last line of a program's output, shortened for a log.
func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	line := lines[len(lines)-1]
	return line[:min(len(line), 200)]
}
