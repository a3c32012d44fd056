package retrain

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

// libraries returns the versions of the computing libraries.
func libraries() map[string]string {
	out := map[string]string{"go": runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return out
	}
	for _, d := range info.Deps {
		switch d.Path {
		case "github.com/gomlx/gomlx", "github.com/gomlx/go-xla", "github.com/yalue/onnxruntime_go":
			out[d.Path] = d.Version
		}
	}
	return out
}

// folders matches the folders of a path in a text.
var folders = regexp.MustCompile(`(/[^/\s()]+)+/`)

// withoutFolders leaves file names of paths only: a card travels to machines
// where the folders mean nothing.
func withoutFolders(text string) string { return folders.ReplaceAllString(text, "") }

// Hardware names the processor; the engine names its device itself.
func Hardware() string {
	name := runtime.GOARCH
	data, err := os.ReadFile("/proc/cpuinfo")
	if err == nil {
		for line := range strings.Lines(string(data)) {
			if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
				name = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%d x %s", runtime.NumCPU(), name)
}

// PeakMemory returns the most memory that this process had, 0 where the
// system does not say.
func PeakMemory() int64 {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kB, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
			if err != nil {
				return 0
			}
			return kB * 1024
		}
	}
	return 0
}
