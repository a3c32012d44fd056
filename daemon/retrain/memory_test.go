package retrain

import (
	"strings"
	"testing"
)

func TestPeakOfTheGraphicsCardIsTheLargestLine(t *testing.T) {
	var m deviceMemory
	m.read(strings.NewReader("512\n 3072 \n[N/A]\n1024\n"))
	if got, want := m.peak(), int64(3072)<<20; got != want {
		t.Errorf("peak %d, want %d", got, want)
	}
}
