package files

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"lacuna/daemon/onboard"
	"lacuna/internal/durable"

	"github.com/spf13/cobra"
)

// addTo adds the dataset to the configuration that is there. The new text is checked
// beside it first, and takes its place at once or not at all.
func (f *initFlags) addTo(c *cobra.Command, o onboard.Onboarding) error {
	path, err := filepath.EvalSymlinks(f.out)
	if err != nil {
		return fmt.Errorf("there is no configuration to add to: %w; without --add one is written", err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	after, err := o.Add(before)
	if err != nil {
		return fmt.Errorf("%s stays as it was: %w", f.out, err)
	}
	trial, err := os.CreateTemp(filepath.Dir(path), ".lacuna-*.yaml")
	if err != nil {
		return err
	}
	defer os.Remove(trial.Name())
	_, err = trial.Write(after)
	if err := errors.Join(err, trial.Chmod(info.Mode().Perm()), trial.Close()); err != nil {
		return err
	}
	root, stdout := c.Root(), c.OutOrStdout()
	root.SetOut(io.Discard)
	err = runHere(c, "check", "--config", trial.Name())
	root.SetOut(stdout)
	if err != nil {
		return fmt.Errorf("%s stays as it was, for with %s it would not be good: %w", f.out, o.Name, err)
	}
	if now, err := os.ReadFile(path); err != nil || string(now) != string(before) {
		return errors.Join(fmt.Errorf("%s was changed meanwhile and stays as it is: try again", f.out), err)
	}
	if err := durable.Sync(trial.Name()); err != nil {
		return err
	}
	if err := os.Rename(trial.Name(), path); err != nil {
		return err
	}
	return durable.Sync(filepath.Dir(path))
}
