package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"lacuna/daemon/feed"
	"lacuna/pipeline/simulate"
)

// trainDays are the days that the trainings of the campaign learn from: as few as a
// calendar of days to learn from, choose by and judge on can be made of.
const trainDays = 75

// unserved is the dataset of the trainings that are killed. It has no champion to be
// compared with, which would take longer than the training.
const unserved = "spare"

// school is what the trainings of the campaign need. A model is trained once, before
// anything goes wrong, and fills one of the datasets; later ones are killed and stopped.
type school struct {
	days     string // folder of granules
	champion string // its version
	seed     int    // of the training under way
	trainer  *exec.Cmd
}

// teach makes the first model and lets it serve.
func (c *campaign) teach(ctx context.Context) error {
	c.school = &school{days: c.path("days")}
	w, err := simulate.New(simulate.Config{Product: "blk-chl", Height: 32, Width: 32, Days: trainDays, Seed: 5})
	if err != nil {
		return err
	}
	if err := os.Mkdir(c.school.days, 0o755); err != nil {
		return err
	}
	for _, d := range w.Schedule() {
		if err := feed.Write(filepath.Join(c.school.days, d.Name), w.Granule(d)); err != nil {
			return err
		}
	}
	began := time.Now()
	if said, err := c.training(ctx, modelled).CombinedOutput(); err != nil {
		return fmt.Errorf("first training: %w\n%s", err, said)
	}
	versions, err := c.versions(ctx)
	if err != nil || len(versions) != 1 {
		return fmt.Errorf("the first training left the versions %v: %w", versions, err)
	}
	c.school.champion = versions[0]
	c.school.seed++
	c.t.Logf("the first training took %v", time.Since(began).Round(time.Second))
	return c.command("models", "promote", versions[0], "--why", "to be lost")
}

// training returns the process of a training, under another command if there is one: the
// same goes on where the one before was killed.
func (c *campaign) training(ctx context.Context, dataset string, under ...string) *exec.Cmd {
	args := append(under, c.program, "train", "--data", c.school.days, "--store", c.path("models/store"), "--dataset", dataset, "--engine", "ort",
		"--policy", "never", "--size", "tiny", "--side", "16", "--preset", "paper", "--steps", "8", "--batch", "4", "--prior-steps", "4",
		"--members-steps", "0", "--strategy", "empirical", "--seed", fmt.Sprint(1+c.school.seed))
	t := exec.CommandContext(ctx, args[0], args[1:]...)
	t.Env = append(os.Environ(), programEnv+"=1", "TMPDIR="+c.path("tmp"))
	t.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return t
}

// versions returns the names of the versions in the store.
func (c *campaign) versions(ctx context.Context) (names []string, err error) {
	l := exec.CommandContext(ctx, c.program, "models", "list", "--json", "--config", c.config)
	l.Env = append(os.Environ(), programEnv+"=1")
	text, err := l.Output()
	if err != nil {
		return nil, err
	}
	var all []struct {
		ID string `json:"version"`
	}
	err = json.Unmarshal(text, &all)
	for _, v := range all {
		names = append(names, v.ID)
	}
	return names, err
}

// trainer sends a signal to the training that is under way beside everything else, and
// lets it go on from its checkpoints afterwards. The first time there is none yet.
func trainer(s syscall.Signal) func(context.Context, *campaign) (func() error, error) {
	return func(ctx context.Context, c *campaign) (func() error, error) {
		if c.school.trainer == nil {
			c.missed++
			return nil, c.train(ctx)
		}
		_ = c.school.trainer.Process.Signal(s)
		return func() error {
			_ = c.school.trainer.Process.Signal(syscall.SIGCONT)
			if s != syscall.SIGKILL {
				return nil
			}
			c.endTraining()
			return c.train(ctx)
		}, nil
	}
}

// train begins the training, or goes on with it, with the time that nobody else needs.
func (c *campaign) train(ctx context.Context) error {
	t := c.training(context.WithoutCancel(ctx), unserved, "nice", "-n", "19")
	if err := t.Start(); err != nil {
		return err
	}
	c.school.trainer = t
	return nil
}

// endTraining kills the training under way. If it was done before, the next one is
// another.
func (c *campaign) endTraining() {
	if c.school.trainer == nil {
		return
	}
	_ = c.school.trainer.Process.Kill()
	if c.school.trainer.Wait() == nil {
		c.school.seed++
	}
	c.school.trainer = nil
}

// tampered changes bytes of the champion, or removes it, and restores it afterwards. The
// service goes on with the model that it has loaded, or without.
func tampered(how func(folder string) error) func(context.Context, *campaign) (func() error, error) {
	return func(_ context.Context, c *campaign) (func() error, error) {
		folder, kept := filepath.Join(c.disks["models"].behind, "store", "versions", c.school.champion), c.path("kept-"+c.school.champion)
		heal := func() error { return errors.Join(os.RemoveAll(folder), copyTree(kept, folder)) }
		_, err := os.Stat(kept)
		if errors.Is(err, fs.ErrNotExist) {
			err = copyTree(folder, kept)
		} else if err == nil { // another nemesis may strike it at the same time
			err = heal()
		}
		if err := errors.Join(err, how(folder)); err != nil {
			return nil, err
		}
		if c.command("models", "show", c.school.champion) == nil {
			return nil, errors.New("a champion that was tampered with is called sound")
		}
		return heal, nil
	}
}

// garble changes a byte in every file of a folder.
func garble(folder string) error {
	files, err := filepath.Glob(folder + "/*.onnx")
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("no network in %s", folder)
	}
	for _, file := range files {
		content, bad := os.ReadFile(file)
		if bad != nil || len(content) == 0 {
			return errors.Join(bad, fmt.Errorf("nothing in %s", file))
		}
		content[len(content)/2] ^= 0x55
		err = errors.Join(err, os.Chmod(file, 0o644), os.WriteFile(file, content, 0o644))
	}
	return err
}

// graduate lets the training under way end, and checks that every version is sound.
func (c *campaign) graduate(ctx context.Context) (wrong []string) {
	if c.school == nil {
		return nil
	}
	c.endTraining()
	if said, err := c.training(ctx, unserved).CombinedOutput(); err != nil {
		wrong = append(wrong, fmt.Sprintf("a training that was killed does not go on: %v\n%s", err, said))
	}
	versions, err := c.versions(ctx)
	if err != nil || len(versions) < 2 {
		wrong = append(wrong, fmt.Sprintf("the trainings left the versions %v: %v", versions, err))
	}
	for _, v := range versions {
		if err := c.command("models", "show", v); err != nil {
			wrong = append(wrong, err.Error())
		}
	}
	return wrong
}
