package measure

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"lacuna/daemon/cli/clitest"
	"lacuna/pipeline/simulate"
)

func TestMain(m *testing.M) {
	clitest.Decode()
	var err error
	if archives.dir, err = os.MkdirTemp("", "measure"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(archives.dir)
	os.Exit(code)
}

// archives are the simulated seas that several tests read, and none changes.
var archives = struct {
	dir  string
	made map[simulate.Config]string
}{made: map[simulate.Config]string{}}

// simulated is clitest.Simulate, once for each sea.
func simulated(t *testing.T, cfg simulate.Config) (archive, truth string) {
	t.Helper()
	dir, made := archives.made[cfg]
	if !made {
		dir = filepath.Join(archives.dir, fmt.Sprint(len(archives.made)))
	}
	archive, truth = filepath.Join(dir, "archive"), filepath.Join(dir, "truth")
	if made {
		return archive, truth
	}
	for _, folder := range []string{archive, truth} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	clitest.SimulateInto(t, cfg, archive, truth)
	archives.made[cfg] = dir
	return archive, truth
}
