package engine

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gomlx/go-xla/pkg/pjrt"
	"github.com/gomlx/gomlx/backends/xla"

	"lacuna/pipeline/engine/compiled"
)

// openXLA finds the PJRT plug-in for CUDA, loads its libraries and starts it.
func openXLA(cfg Config) (*Engine, error) {
	found, err := newSearch(cfg).cuda()
	if err != nil {
		return nil, err
	}
	tuning := tuningFolder(cfg.CacheDir, os.Getenv, os.UserCacheDir)
	if err := found.prepare(tuning); err != nil {
		return nil, err
	}
	options, err := cfg.deviceOptions(os.Getenv)
	if err != nil {
		return nil, err
	}
	var refused []error
	if tuning != "" {
		// Without it every program is compiled, and all else goes on.
		if err := compiled.Load(found.plugin, filepath.Join(tuning, "programs")); err != nil {
			refused = append(refused, err)
		}
	}
	var b *xla.Backend
	start := func() {
		b, err = xla.NewWithOptions(found.plugin, options)
	}
	if panicked := rescue(start); panicked != nil {
		err = panicked
	}
	mendSignals()
	if err != nil {
		return nil, fmt.Errorf("start the PJRT plug-in %s: %w", found.plugin, err)
	}
	return &Engine{Backend: b, Kind: XLACUDA, Library: found.plugin, Refused: refused}, nil
}

// deviceOptions returns the settings of the plug-in: those of c, else those of the
// environment. Memory is taken as it is needed: training and filling may share the
// GPU, and the plug-in would take three quarters of it at once.
func (c Config) deviceOptions(env func(string) string) (pjrt.NamedValuesMap, error) {
	options := pjrt.NamedValuesMap{"preallocate": false}
	gpus, memory := c.GPUs, c.Memory
	if text := env(GPUVariable); len(gpus) == 0 && text != "" {
		for part := range strings.SplitSeq(text, ",") {
			n, err := strconv.Atoi(strings.TrimSpace(part))
			if err != nil || n < 0 {
				return nil, fmt.Errorf("$%s is %q, must be numbers of GPUs like 0 or 0,1", GPUVariable, text)
			}
			gpus = append(gpus, n)
		}
	}
	if text := env(MemoryVariable); memory == 0 && text != "" {
		var err error
		if memory, err = strconv.ParseFloat(text, 64); err != nil || !(memory > 0 && memory <= 1) {
			return nil, fmt.Errorf("$%s is %q, must be a share like 0.5", MemoryVariable, text)
		}
	}
	if len(gpus) > 0 {
		visible := make([]int64, len(gpus))
		for i, n := range gpus {
			visible[i] = int64(n)
		}
		options["visible_devices"] = visible
	}
	if memory > 0 {
		options["memory_fraction"] = float32(memory)
	}
	return options, nil
}

// prepare sets the environment that XLA and its Go binding read and loads the
// CUDA libraries.
func (c cudaFiles) prepare(tuning string) error {
	// Without a toolkit XLA is still pointed at the usual place:
	// by itself it searches a folder of the working directory first.
	flags := withFlag(os.Getenv("XLA_FLAGS"), "xla_gpu_cuda_data_dir", cmp.Or(c.toolkit, "/usr/local/cuda"))
	if tuning != "" {
		flags = withFlag(flags, "xla_gpu_per_fusion_autotune_cache_dir", tuning)
	}
	for name, value := range map[string]string{
		"XLA_FLAGS":             flags,
		"GOMLX_NO_AUTO_INSTALL": "1", // downloads nothing
		"GOPJRT_CUDA_CHECKS":    "0", // would point XLA at a folder of its own
	} {
		if err := os.Setenv(name, value); err != nil {
			return fmt.Errorf("set %s: %w", name, err)
		}
	}
	preload(c.libraries)
	return nil
}

// withFlag adds an XLA flag unless the user has set it.
func withFlag(flags, name, value string) string {
	if strings.Contains(flags, "--"+name+"=") {
		return flags
	}
	return strings.TrimSpace(flags + " --" + name + "=" + value)
}
