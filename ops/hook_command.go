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

// commandVariables are what a command gets of the environment of the service:
// what programs need to find others and their settings, and to write the words
// and times of their user. Passwords and keys in that environment are none of
// the command's business; what it needs beside these, command_env names.
var commandVariables = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "LANG", "LC_ALL", "LC_CTYPE", "LC_TIME"}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// commandEnv is the environment of a command: the variables that are usual,
// those that more names, and what the message is about.
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
	c.WaitDelay = time.Second // a grandchild that keeps the pipe must not keep us
	out, err := c.CombinedOutput()
	if err != nil {
		return fmt.Errorf("run %s: %w: %s", h.cfg.Command[0], err, lastLine(out))
	}
	return nil
}

// lastLine is what a program said last, at most a line of a log long.
func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	line := lines[len(lines)-1]
	return line[:min(len(line), 200)]
}
