package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// cudaFiles is where the parts of XLA for CUDA lie.
type cudaFiles struct {
	plugin    string   // the PJRT plug-in
	libraries []string // to load before it, most basic first
	toolkit   string   // holds nvvm/libdevice; empty: the plug-in looks for itself
}

// search is the surroundings in which CUDA is looked for.
type search struct {
	plugin  string              // named by the configuration
	env     func(string) string // environment variables
	python  func() []string     // site-packages folders of the Python installation, best first
	devices []string            // patterns of the device files of GPUs
	drivers []string            // folders that may hold the driver's libcuda.so.1
	tools   []string            // patterns of CUDA toolkit folders
}

// jaxHint ends an error about a missing plug-in with what to do.
const jaxHint = "install it with pip install 'jax[cuda13]', or set engine.plugin or $LACUNA_PJRT_PLUGIN to the file"

func newSearch(cfg Config) search {
	return search{
		plugin: cfg.Plugin,
		env:    os.Getenv,
		python: func() []string { return sitePackages(cfg.Python) },
		// The second is the GPU under Windows' Linux.
		devices: []string{"/dev/nvidia[0-9]*", "/dev/dxg"},
		drivers: []string{
			"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/local/nvidia/lib64", "/usr/local/nvidia/lib",
			"/usr/lib/aarch64-linux-gnu", "/usr/lib/wsl/lib", "/run/opengl-driver/lib",
		},
		tools: []string{"/usr/local/cuda", "/usr/local/cuda-*", "/opt/cuda", "/usr/lib/cuda"},
	}
}

// cuda finds the plug-in and what goes with it. Python is started only where
// there is a GPU.
func (s search) cuda() (cudaFiles, error) {
	plugin, err := s.namedPlugin()
	if err != nil {
		return cudaFiles{}, err
	}
	if len(globs(s.devices...)) == 0 {
		return cudaFiles{}, fmt.Errorf("no NVIDIA GPU: no device file matches %s", strings.Join(s.devices, " or "))
	}
	if plugin == "" {
		if plugin, err = s.pythonPlugin(); err != nil {
			return cudaFiles{}, err
		}
	}
	driver := s.driverLibraries()
	if len(driver) == 0 {
		return cudaFiles{}, fmt.Errorf("no NVIDIA driver: libcuda.so.1 is not in %s; install the driver, or set $LD_LIBRARY_PATH to its folder",
			strings.Join(s.driverFolders(), ", "))
	}
	packages := s.packagesOf(plugin)
	return cudaFiles{
		plugin:    plugin,
		libraries: append(driver, cudaLibraries(packages)...),
		toolkit:   s.toolkit(packages),
	}, nil
}

// namedPlugin returns the plug-in that the configuration or the environment
// names, empty where neither does.
func (s search) namedPlugin() (string, error) {
	for _, named := range []struct{ by, path string }{
		{"engine.plugin", s.plugin},
		{"$LACUNA_PJRT_PLUGIN", s.env("LACUNA_PJRT_PLUGIN")},
	} {
		if named.path == "" {
			continue
		}
		path, err := filepath.Abs(named.path)
		if err != nil {
			return "", err
		}
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("find the PJRT plug-in named by %s: %w; %s", named.by, err, jaxHint)
		}
		return path, nil
	}
	for _, dir := range filepath.SplitList(s.env("PJRT_PLUGIN_LIBRARY_PATH")) {
		if found := globs(filepath.Join(dir, "pjrt_c_api_cuda_plugin.so")); len(found) > 0 {
			return filepath.Abs(found[0])
		}
	}
	return "", nil
}

// pythonPlugin returns the plug-in that came with JAX, the newest of the first
// folder that has any.
func (s search) pythonPlugin() (string, error) {
	looked := s.python()
	for _, dir := range looked {
		found := globs(filepath.Join(dir, "jax_plugins", "xla_cuda*", "xla_cuda_plugin.so"))
		if len(found) > 0 {
			return slices.MaxFunc(found, func(a, b string) int { return cudaVersion(a) - cudaVersion(b) }), nil
		}
	}
	if len(looked) == 0 {
		return "", errors.New("no PJRT plug-in for CUDA and no Python to look in; " + jaxHint)
	}
	return "", fmt.Errorf("no PJRT plug-in for CUDA in %s; %s", strings.Join(looked, ", "), jaxHint)
}

// cudaVersion returns the 13 of .../xla_cuda13/xla_cuda_plugin.so, 0 where
// there is none.
func cudaVersion(plugin string) int {
	folder := filepath.Base(filepath.Dir(plugin))
	n, err := strconv.Atoi(strings.TrimPrefix(folder, "xla_cuda"))
	if err != nil {
		return 0
	}
	return n
}

// packagesOf returns the folder of NVIDIA's wheels that belongs to a plug-in:
// nvidia beside jax_plugins, wherever a link to the plug-in lies.
func (s search) packagesOf(plugin string) string {
	if target, err := filepath.EvalSymlinks(plugin); err == nil {
		plugin = target
	}
	dir := filepath.Join(filepath.Dir(plugin), "..", "..", "nvidia")
	if isDir(dir) {
		return filepath.Clean(dir)
	}
	for _, site := range s.python() {
		if dir := filepath.Join(site, "nvidia"); isDir(dir) {
			return dir
		}
	}
	return ""
}

// cudaLibraries lists what the plug-in links or opens by name, in the order in
// which they need one another.
func cudaLibraries(packages string) []string {
	if packages == "" {
		return nil
	}
	var found []string
	for _, name := range []string{
		"cudart", "nvJitLink", "nvrtc", "nvrtc-builtins", "nvvm", "cublasLt", "cublas", "cufft", "cusparse", "cusolver",
		"cupti", "nccl", "cudnn", "nvshmem_host",
	} {
		// lib/libcublas.so.13, not libcublas.so, the link for compilers.
		found = append(found, globs(filepath.Join(packages, "*", "lib", "lib"+name+".so.*"))...)
	}
	return found
}

// driverLibraries lists the driver's libraries: libcuda and the two that it
// opens by name.
func (s search) driverLibraries() []string {
	for _, dir := range s.driverFolders() {
		if len(globs(filepath.Join(dir, "libcuda.so.1"))) == 0 {
			continue
		}
		var found []string
		for _, name := range []string{"libcuda.so.1", "libnvidia-ptxjitcompiler.so.1", "libnvidia-nvvm.so.4", "libnvidia-ml.so.1"} {
			found = append(found, globs(filepath.Join(dir, name))...)
		}
		return found
	}
	return nil
}

func (s search) driverFolders() []string {
	return append(filepath.SplitList(s.env("LD_LIBRARY_PATH")), s.drivers...)
}

// toolkit returns the first folder with the device library, preferring the
// wheels, whose version is the plug-in's.
func (s search) toolkit(packages string) string {
	var folders []string
	if packages != "" {
		folders = globs(filepath.Join(packages, "*"))
	}
	folders = append(folders, s.env("CUDA_HOME"), s.env("CUDA_PATH"))
	folders = append(folders, globs(s.tools...)...)
	for _, dir := range folders {
		if dir != "" && len(globs(filepath.Join(dir, "nvvm", "libdevice", "libdevice*.bc"))) > 0 {
			return dir
		}
	}
	return ""
}

// pythonTimeout bounds the start of an interpreter on a slow disk.
const pythonTimeout = 20 * time.Second

// sitePackages asks a Python interpreter where its packages are.
func sitePackages(python string) []string {
	if python == "" {
		python = "python3"
	}
	ctx, cancel := context.WithTimeout(context.Background(), pythonTimeout)
	defer cancel()
	const program = `import site, sysconfig
print("\n".join([sysconfig.get_paths()[k] for k in ("purelib", "platlib")] + site.getsitepackages() + [site.getusersitepackages()]))`
	out, err := exec.CommandContext(ctx, python, "-c", program).Output()
	if err != nil {
		return nil // no Python: nothing to find there
	}
	var dirs []string
	for dir := range strings.Lines(string(out)) {
		if dir = strings.TrimSpace(dir); isDir(dir) && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// globs returns the files that match any of the patterns.
func globs(patterns ...string) []string {
	var found []string
	for _, pattern := range patterns {
		files, _ := filepath.Glob(pattern) // fails on a malformed pattern only
		found = append(found, files...)
	}
	return found
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
