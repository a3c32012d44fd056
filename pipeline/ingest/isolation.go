package ingest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"lacuna/pipeline/ingest/sandbox"
)

// Isolation starts a child, has it try to leave its sandbox, and returns how
// it is confined. A kernel without Landlock or seccomp is no error: State says
// so.
func (r *Reader) Isolation(ctx context.Context) (sandbox.State, error) {
	nothing, err := os.Open(os.DevNull) // stands in for the file that every child gets
	if err != nil {
		return sandbox.State{}, fmt.Errorf("try the sandbox of the decoding child: %w", err)
	}
	defer nothing.Close()
	state, err := r.isolation(ctx, nothing, func() (*process, error) {
		p, _, err := r.standby.take()
		return p, err
	})
	if err != nil {
		return sandbox.State{}, fmt.Errorf("try the sandbox of the decoding child: %w", err)
	}
	state.Carried = programOf(r.standby.argv) != r.standby.argv[0]
	return state, nil
}

func (r *Reader) isolation(ctx context.Context, file *os.File, start func() (*process, error)) (state sandbox.State, err error) {
	p, err := start()
	if err != nil {
		return state, err
	}
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	defer context.AfterFunc(ctx, p.kill)()
	defer func() {
		if died := p.wait(); err != nil && died != nil {
			err = fmt.Errorf("%w (the child: %w, %s)", err, died, p.stderr)
		}
	}()
	if err := p.hand(file, r.limited(request{Want: wantIsolation})); err != nil {
		return state, err
	}
	answer, err := expect(p.stdout, frameHeader, maxHeaderBytes)
	if err != nil {
		return state, err
	}
	return state, json.Unmarshal(answer, &state)
}

// sendIsolation answers Isolation.
func sendIsolation(w io.Writer, s sandbox.State) error {
	answer, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return writeFrame(w, frameHeader, answer)
}
