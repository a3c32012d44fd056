package retrain

import (
	"slices"
	"strings"
	"testing"
)

// In an environment the last value of a variable counts.
func TestALibraryOfTheConfigurationReachesTheTrainingToo(t *testing.T) {
	t.Setenv("LACUNA_ONNXRUNTIME", "/elsewhere/libonnxruntime.so")
	cfg := DefaultConfig()
	cfg.Library = "/opt/lacuna/libonnxruntime.so"
	if got := cfg.Libraries(); got.Library != cfg.Library || got.Plugin != "" {
		t.Errorf("this process loads %+v", got)
	}
	env := cfg.environment()
	slices.Reverse(env)
	first := slices.IndexFunc(env, func(s string) bool { return strings.HasPrefix(s, "LACUNA_ONNXRUNTIME=") })
	if first < 0 || env[first] != "LACUNA_ONNXRUNTIME="+cfg.Library {
		t.Errorf("a child hears %q", env[max(first, 0)])
	}
	for _, key := range []string{"library", "plugin"} {
		bad := DefaultConfig()
		if bad.Library = "libonnxruntime.so"; key == "plugin" {
			bad.Library, bad.Plugin = "", "plugin.so"
		}
		if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), key+` is "`) || !strings.Contains(err.Error(), "absolute") {
			t.Errorf("a relative %s: %v", key, err)
		}
	}
}
