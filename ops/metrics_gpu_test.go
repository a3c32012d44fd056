package ops

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestGPUsAreShownAsTheirToolTells(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	script := "#!/bin/sh\nprintf '0, 37, 1024, 2048\\n1, [N/A], [N/A], [N/A]\\n'\n"
	must(t, os.WriteFile(filepath.Join(folder, "nvidia-smi"), []byte(script), 0o755))
	text := scrape(t, busy, nil)
	for _, want := range []string{
		`lacuna_gpu_busy_ratio{gpu="0"} 0.37`, `lacuna_gpu_memory_used_bytes{gpu="0"} 1.073741824e+09`,
		`lacuna_gpu_memory_bytes{gpu="0"} 2.147483648e+09`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	if strings.Contains(text, `gpu="1"`) {
		t.Error("a GPU that tells nothing has figures")
	}
}

func TestAMachineWithoutGPUsHasNoSuchFigures(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if text := scrape(t, busy, nil); strings.Contains(text, "lacuna_gpu") {
		t.Error("figures of GPUs without nvidia-smi")
	}
}
