package service

import (
	"github.com/spf13/cobra"
)

func workerCommand() *cobra.Command {
	var flags daemonFlags
	var name string
	var fillsOnly bool
	c := &cobra.Command{
		Use:   "worker",
		Short: "fill granules for a daemon on another machine",
		Long: `Worker takes fill jobs that a daemon with "workers: kafka" has put into Kafka, one
at a time, reads granules and models from the shared folder, and puts the products
there. Start as many as there are machines or GPUs; the topics of jobs have as many
partitions as there can be workers. The configuration is that of the daemon, of which
it uses the sections workers, decode and train (for the engine).

With workers.train it takes trainings too, which rest while it fills: that is for a
machine with a GPU. Their checkpoints are in the shared folder, and another worker goes
on from the last of them. Where all machines share one configuration, --fills-only
leaves trainings to others.

It stops on SIGTERM or Ctrl-C at once; another worker does the job in hand. A job that
fails, or ends the worker, is tried again by any worker, and after workers.tries it
goes to the topic of dead letters with the reason.

Exit status: 0 stopped, 1 failed, 2 usage, 78 bad configuration.`,
		Example: "  lacuna worker --config /etc/lacuna/lacuna.yaml\n  lacuna worker --config /etc/lacuna/lacuna.yaml --name gpu-3",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			d, err := flags.daemon(c.ErrOrStderr())
			if err != nil {
				return err
			}
			return d.Work(c.Context(), name, fillsOnly)
		},
	}
	flags.add(c)
	c.Flags().BoolVar(&fillsOnly, "fills-only", false, "take no trainings, whatever workers.train says")
	c.Flags().StringVar(&name, "name", "", "`NAME` of the worker, unlike that of any other (default: machine and process number)")
	return c
}
