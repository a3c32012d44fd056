// Package lab is the laboratory: measurements of the method, which are never
// served. One command reaches all of it, 'lacuna lab'. The paper whose method is
// measured is *Observation-Aligned Mask Priors for Learning Physical Dynamics
// from Authentic Occlusions* (Ma, Zhou, Yu).
//
//	baselines  DINDiff, MissDiff and the samplers of the paper, for the tables
//	chart      pictures of tables and maps
//	tables     the comparisons of the paper and our own, row by row
//	scenes     whole scenes, with the gaps of other days laid over them
//	seas       a network on a sea that it never saw, for each sea in turn
//	jobs       a plan of tables from packed series, on a machine with a GPU
//	maskprior  the mask prior: training, draws against held-out masks, guidance
//	steps      time of a training step and a forward pass
//	basin      time and memory of filling a basin, and how they grow
//
// Nothing that serves imports the laboratory or a part of it; a test holds that.
// The commands 'lacuna evaluate', 'scenes' and 'prior' use its tables and
// pictures.
package lab

import (
	"context"
	"io"

	"lacuna/pipeline/lab/basin"
	"lacuna/pipeline/lab/jobs"
	"lacuna/pipeline/lab/maskprior"
	"lacuna/pipeline/lab/scenes"
	"lacuna/pipeline/lab/seas"
	"lacuna/pipeline/lab/steps"
)

// A Command is one measurement. Run takes the command line without its name;
// -help lists the flags and ends with flag.ErrHelp.
type Command struct {
	Name, Short string
	Run         func(ctx context.Context, args []string, out, errs io.Writer) error
}

// Commands returns all commands.
func Commands() []Command {
	return []Command{
		{"jobs", "make the tables of a plan from packed series, or pool what plans have left", jobs.Run},
		{"prior", "train a mask prior on a packed series and measure its draws", maskprior.Run},
		{"scenes", "judge whole scenes of a packed series", scenes.Run},
		{"seas", "judge a network on each of several packed seas that it did not learn from", seas.Run},
		{"basin", "time and memory of filling a basin, and how they grow with its size", basin.Run},
		{"steps", "time of a training step and a forward pass of a network", steps.Run},
	}
}
