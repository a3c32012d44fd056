package supply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// Withdrawn asks the Go proxy which of the program's modules are retracted or
// deprecated. It returns a sentence for each, and the modules unknown to the
// proxy.
func Withdrawn(ctx context.Context, p Program) (faults, untold []string, err error) {
	args := []string{"list", "-e", "-m", "-u", "-retracted", "-json=Path,Version,Retracted,Deprecated,Error"}
	for _, m := range p.Modules {
		if m.Path != std {
			args = append(args, m.Path+"@"+m.Version)
		}
	}
	out, err := exec.CommandContext(ctx, "go", args...).Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && len(out) == 0 {
		return nil, nil, fmt.Errorf("ask the Go proxy for retracted versions: %w: %s", err, exit.Stderr)
	}
	return readWithdrawn(strings.NewReader(string(out)))
}

func readWithdrawn(list io.Reader) (faults, untold []string, err error) {
	for decoder := json.NewDecoder(list); ; {
		var m struct {
			Path, Version, Deprecated string
			Retracted                 []string
			Error                     *struct{ Err string }
		}
		err := decoder.Decode(&m)
		if errors.Is(err, io.EOF) {
			return faults, untold, nil
		}
		if err != nil {
			return nil, nil, fmt.Errorf("read retracted versions: %w", err)
		}
		switch {
		case len(m.Retracted) > 0:
			faults = append(faults, fmt.Sprintf("%s %s: retracted by its authors: %s", m.Path, m.Version, strings.Join(m.Retracted, "; ")))
		case m.Deprecated != "":
			faults = append(faults, fmt.Sprintf("%s %s: given up by its authors: %s", m.Path, m.Version, m.Deprecated))
		case m.Error != nil:
			untold = append(untold, m.Path)
		}
	}
}
