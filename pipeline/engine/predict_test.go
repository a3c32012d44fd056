package engine

import (
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/cpu"
	"golang.org/x/sys/unix"
)

// TestMemoryThatMayNotBecomeCodeMeansFloat32 runs in a process of its own, which loads a
// libonnxruntime with OpenVINO: make openvino fetches it.
func TestMemoryThatMayNotBecomeCodeMeansFloat32(t *testing.T) {
	const inside = "LACUNA_TEST_INSIDE"
	if how := os.Getenv(inside); how != "" {
		if how == "hardened" {
			if err := unix.Prctl(unix.PR_SET_MDWE, unix.PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0); err != nil {
				t.Skipf("this kernel lets all memory become code: %v", err)
			}
		}
		predictsInBFloat16(t, how == "free")
		return
	}
	library := os.Getenv("LACUNA_TEST_OPENVINO")
	if _, err := os.Stat(library); err != nil {
		t.Skipf("no libonnxruntime with OpenVINO is here, which make openvino fetches: %v", err)
	}
	if !cpu.X86.HasAMXBF16 {
		t.Skip("this processor has no units for matrices of bfloat16")
	}
	for _, how := range []string{"free", "hardened"} {
		t.Run(how, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMemoryThatMayNotBecomeCodeMeansFloat32$", "-test.v")
			cmd.Env = append(os.Environ(), inside+"="+how, LibraryVariable+"="+library)
			said, err := cmd.CombinedOutput()
			switch {
			case err != nil:
				t.Errorf("%v\n%s", err, said)
			case strings.Contains(string(said), "--- SKIP"):
				t.Skipf("%s", said)
			}
		})
	}
}

func predictsInBFloat16(t *testing.T, want bool) {
	e, err := Open(ORT, Config{Threads: 1}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Finalize()
	if got := For(e, smallestForMatrices) != e; got != want {
		t.Errorf("it predicts in bfloat16: %t, want %t; refused %v", got, want, e.Refused)
	}
	if For(e, smallestForMatrices-1) != e {
		t.Error("small windows are predicted in bfloat16")
	}
	if !want && (len(e.Refused) != 1 || !strings.Contains(e.Refused[0].Error(), "MemoryDenyWriteExecute=no") || strings.Contains(e.Refused[0].Error(), "\n")) {
		t.Errorf("the reason is %q, want one line with the remedy", e.Refused)
	}
	if err := e.Try(); err != nil {
		t.Errorf("the engine itself: %v", err)
	}
}
