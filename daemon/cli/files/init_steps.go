package files

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"lacuna/daemon/cli"
	"lacuna/daemon/onboard"

	"github.com/spf13/cobra"
)

// interview asks a person, or takes the proposals where nobody can answer.
type interview struct {
	in      *bufio.Reader
	out     io.Writer
	present bool
}

func newInterview(in io.Reader, out io.Writer, ask bool) *interview {
	return &interview{in: bufio.NewReader(in), out: out, present: ask || cli.IsTerminal(in)}
}

// text returns the answer to a question; the proposal where it is empty.
func (i *interview) text(question, proposal string) string {
	if !i.present {
		return proposal
	}
	fmt.Fprint(i.out, question)
	if proposal != "" {
		fmt.Fprintf(i.out, " [%s]", proposal)
	}
	fmt.Fprint(i.out, " ")
	line, err := i.in.ReadString('\n')
	if err != nil {
		i.present = false // the end of the input answers no further question
	}
	if line = strings.TrimSpace(line); line != "" {
		return line
	}
	return proposal
}

// yes returns whether the answer to a question is yes.
func (i *interview) yes(question string, proposal bool) bool {
	if !i.present {
		return proposal
	}
	answer := i.text(question, map[bool]string{true: "yes", false: "no"}[proposal])
	return strings.HasPrefix(strings.ToLower(answer), "y")
}

// goOn checks the new configuration, fills and trains where that was asked for,
// and prints the next commands.
func (f *initFlags) goOn(c *cobra.Command, o onboard.Onboarding, asking *interview) error {
	if err := runHere(c, "check", "--config", f.out); err != nil {
		return err
	}
	files, err := f.files()
	if err != nil {
		return err
	}
	if len(files) > 0 && asking.yes("Fill the newest granule now?", f.fill || asking.present) {
		if err := f.fillNewest(c, o, files); err != nil {
			return err
		}
	}
	if len(files) > 0 && asking.yes("Train a model on the granules now? On a processor it takes hours, and can be stopped and started again.", f.train) {
		args := []string{"train", "--store", filepath.Join(o.StateDir, "models"), "--dataset", o.Name, "--data", f.place()}
		if err := runHere(c, append(args, f.reading()...)...); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "next: lacuna once --config %[1]s (what is there now), lacuna run --config %[1]s --log console (the daemon)\n", f.out)
	return err
}

func (f *initFlags) place() string { return cmp.Or(f.dir, f.sample) }

// reading returns the flags that say how granules are read.
func (f *initFlags) reading() []string {
	var args []string
	if v := f.options.Variable; v != "" {
		args = append(args, "--var", v)
	}
	return args
}

// fillNewest fills the granule that was looked at, with its folder as history.
func (f *initFlags) fillNewest(c *cobra.Command, o onboard.Onboarding, files []string) error {
	newest := ""
	for _, file := range files {
		if filepath.Base(file) == o.Sample.Example {
			newest = file
		}
	}
	args := []string{"fill", newest, "-o", filepath.Join(o.StateDir, "first"), "--history", filepath.Dir(newest)}
	return runHere(c, append(args, f.reading()...)...)
}

// runHere runs another command of the program with the same input and output.
func runHere(c *cobra.Command, args ...string) error {
	root := c.Root()
	root.SetArgs(args)
	return root.ExecuteContext(c.Context())
}
