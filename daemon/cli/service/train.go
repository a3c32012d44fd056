package service

import (
	"fmt"
	"io"
	"strings"
	"time"

	"lacuna/daemon/cli"
	"lacuna/daemon/operate"

	"github.com/spf13/cobra"
)

// TrainCommands returns the commands on the trainings of a service, which stand
// below lacuna train.
func TrainCommands() []*cobra.Command {
	return []*cobra.Command{
		trainStatus(),
		steerCommand(operate.PauseTraining, "stop the training of a service with a checkpoint, and let none begin",
			`Pause stops the training under way, which writes a checkpoint and frees memory and
GPU, and lets none begin until 'lacuna train resume'. It outlasts a restart. The
champion serves on; shadow days are not looked at meanwhile.`),
		steerCommand(operate.ResumeTraining, "end a pause",
			`Resume ends a pause. A training that is half done goes on from its checkpoints,
in a session of its own; triggers are checked at once.`),
		steerCommand(operate.CancelTraining, "end the training under way for good",
			`Cancel ends the training under way with its checkpoints, or the shadow days of a
version, which stays in the store and waits for 'lacuna models promote'. Nothing
is promoted or refused. The next trigger begins another training, not before
train.apart; 'lacuna train pause' keeps it from beginning.`),
	}
}

const trainExits = "\n\nExit status: 0 done, 1 failed or nothing to do it to, 2 usage, 78 bad configuration."

func trainStatus() *cobra.Command {
	var o operator
	c := &cobra.Command{
		Use:   "status",
		Short: "how the trainings of a service stand, what its triggers saw, and how the last one ended",
		Long: `Status shows for each dataset whether its model is being trained, rests, is paused
or waits for something, how far it is, when the schedule trains next, what every
trigger saw at the last look, and how the last training ended: promoted, refused,
not judged, failed or cancelled, with the reasons. It can be used while the daemon
runs, and without it.` + trainExits,
		Example: `  lacuna train status --config /etc/lacuna/lacuna.yaml`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := o.load()
			if err != nil {
				return err
			}
			all, err := cfg.Operate().Trainings(o.dataset, time.Now())
			if err != nil {
				return err
			}
			return o.print(c, emptyList(all), func(w io.Writer) {
				for i, r := range all {
					if i > 0 {
						fmt.Fprintln(w)
					}
					printTraining(w, r)
				}
			})
		},
	}
	o.add(c)
	return c
}

func printTraining(w io.Writer, r operate.Training) {
	line := func(key, text string) {
		if text != "" {
			fmt.Fprintf(w, "%s:\t%s\n", key, text)
		}
	}
	line("dataset", r.Dataset)
	line("now", r.Words)
	line("schedule", r.Schedule)
	if !r.Next.IsZero() {
		line("next", r.Next.UTC().Format("Monday 2006-01-02 15:04")+" UTC, if there is anything new by then")
	}
	line("window", r.Window)
	for _, saw := range r.Seen {
		line("trigger", saw)
	}
	line("fails", r.Failure)
	line("GPU", r.NoGPU)
	if r.Last == nil {
		line("last", "no training has ended yet")
		return
	}
	line("last", strings.TrimSpace(fmt.Sprintf("%s on %s %s", r.Last.State, r.Last.Ended.UTC().Format("2006-01-02 15:04"), r.Last.Version)))
	for _, reason := range r.Last.Reasons {
		fmt.Fprintf(w, "\t%s\n", reason)
	}
}

func steerCommand(order, short, long string) *cobra.Command {
	var o operator
	c := &cobra.Command{
		Use:     order + " [--dataset NAME]",
		Short:   short,
		Long:    long + trainExits,
		Example: fmt.Sprintf("  lacuna train %s --config /etc/lacuna/lacuna.yaml --dataset black-sea-chl", order),
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := o.load()
			if err != nil {
				return err
			}
			all, err := cfg.Operate().SteerTraining(o.dataset, order, cli.UserName(), time.Now())
			if err != nil {
				return err
			}
			return o.print(c, all, func(w io.Writer) {
				for _, done := range all {
					fmt.Fprintln(w, done.Words)
				}
			})
		},
	}
	o.add(c)
	return c
}
