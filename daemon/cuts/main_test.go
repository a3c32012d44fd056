package cuts

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"

	"lacuna/daemon/cli"
	"lacuna/daemon/cli/clitest"
	"lacuna/daemon/cli/files"
	"lacuna/daemon/cli/models"
	"lacuna/daemon/cli/service"

	"github.com/spf13/cobra"
)

// programEnv makes the test binary the program.
const programEnv = "LACUNA_TEST_PROGRAM"

func TestMain(m *testing.M) {
	clitest.Decode()
	if os.Getenv(programEnv) != "" && (len(os.Args) < 2 || os.Args[1] != "decode") {
		root := &cobra.Command{Use: "lacuna", SilenceUsage: true, SilenceErrors: true}
		root.AddCommand(slices.Concat(service.Commands(), files.Commands(), models.Commands(), cli.Commands())...)
		if err := root.ExecuteContext(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	clitest.Main(m)
}
