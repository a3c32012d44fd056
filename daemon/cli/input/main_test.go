package input

import (
	"testing"

	"lacuna/daemon/cli/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m) }
