package engine

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"lacuna/pipeline/trusted"
)

// cudaFiles holds the paths of the parts of XLA for CUDA.
type cudaFiles struct {
	plugin    string   // the PJRT plug-in
	libraries []string // libraries to load before the plug-in, most basic first
	toolkit   string   // folder with nvvm/libdevice; empty: the plug-in searches by itself
}

// search describes the machine on which CUDA is searched for.
type search struct {
	plugin  string                   // plug-in named by the configuration
	env     func(string) string      // environment variables
	python  func() ([]string, error) // site-packages folders of the Python installation, best first
	devices []string                 // patterns of the device files of GPUs
	drivers []string                 // folders that may hold the driver's libcuda.so.1
	tools   []string                 // patterns of CUDA toolkit folders
	check   func(string) error       // refuses a file that others may change
}

// jaxHint is the remedy at the end of an error about a missing plug-in.
const jaxHint = "install it with pip install 'jax[cuda13]', or set $" + PluginVariable + " to the file"

func newSearch(cfg Config) search {
	return search{
		plugin: cfg.Plugin,
		env:    os.Getenv,
		python: func() ([]string, error) { return sitePackages(cfg.Python) },
		// The second is the GPU under Windows' Linux.
		devices: []string{"/dev/nvidia[0-9]*", "/dev/dxg"},
		drivers: []string{
			"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/local/nvidia/lib64", "/usr/local/nvidia/lib",
			"/usr/lib/aarch64-linux-gnu", "/usr/lib/wsl/lib", "/run/opengl-driver/lib",
		},
		tools: []string{"/usr/local/cuda", "/usr/local/cuda-*", "/opt/cuda", "/usr/lib/cuda"},
		check: func(path string) error { _, err := trusted.File(path); return err },
	}
}

// cuda finds the plug-in, its libraries and its toolkit. Python is started only
// if there is a GPU. A part that others may change is an error and not skipped:
// the plug-in would search for it by itself and load it.
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
	libraries := append(driver, cudaLibraries(packages)...)
	for _, path := range append([]string{plugin}, libraries...) {
		if err := s.check(path); err != nil {
			return cudaFiles{}, err
		}
	}
	return cudaFiles{plugin: plugin, libraries: libraries, toolkit: s.toolkit(packages)}, nil
}

// namedPlugin returns the plug-in that the configuration or the environment
// names, empty where neither does.
func (s search) namedPlugin() (string, error) {
	for _, named := range []struct{ by, path string }{
		{"--plugin", absolute(s.plugin)}, // a typed path is relative to the working directory
		{"$" + PluginVariable, s.env(PluginVariable)},
	} {
		if named.path == "" {
			continue
		}
		err := s.check(named.path)
		if err == nil {
			_, err = os.Stat(named.path)
		}
		if err != nil {
			return "", fmt.Errorf("find the PJRT plug-in named by %s: %w; %s", named.by, err, jaxHint)
		}
		return named.path, nil
	}
	for _, dir := range searchPath(s.env("PJRT_PLUGIN_LIBRARY_PATH")) {
		if found := globs(filepath.Join(dir, "pjrt_c_api_cuda_plugin.so")); len(found) > 0 {
			return found[0], nil
		}
	}
	return "", nil
}

// pythonPlugin returns the plug-in that came with JAX, the newest of the first
// folder that has any.
func (s search) pythonPlugin() (string, error) {
	looked, err := s.python()
	if err != nil {
		return "", fmt.Errorf("no PJRT plug-in for CUDA, and no Python to look in: %w; %s", err, jaxHint)
	}
	for _, dir := range looked {
		found := globs(filepath.Join(dir, "jax_plugins", "xla_cuda*", "xla_cuda_plugin.so"))
		if len(found) > 0 {
			return slices.MaxFunc(found, func(a, b string) int { return cudaVersion(a) - cudaVersion(b) }), nil
		}
	}
	return "", fmt.Errorf("no PJRT plug-in for CUDA in %s; %s", strings.Join(looked, ", "), jaxHint)
}

// cudaVersion returns the 13 of .../xla_cuda13/xla_cuda_plugin.so, 0 if
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
	sites, _ := s.python() // without it there are no wheels elsewhere
	for _, site := range sites {
		if dir := filepath.Join(site, "nvidia"); isDir(dir) {
			return dir
		}
	}
	return ""
}

// cudaLibraries lists the libraries that the plug-in links or opens by name, in the order in
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
	return append(searchPath(s.env("LD_LIBRARY_PATH")), s.drivers...)
}

// searchPath splits a list of folders. Relative and empty ones, which mean the
// working directory, are left out: nothing is loaded from the folder in which
// this process happens to be started.
func searchPath(list string) []string {
	return slices.DeleteFunc(filepath.SplitList(list), func(dir string) bool { return !filepath.IsAbs(dir) })
}

// absolute is a path from the working directory; empty stays empty.
func absolute(path string) string {
	if full, err := filepath.Abs(path); err == nil && path != "" {
		return full
	}
	return path
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
		if filepath.IsAbs(dir) && s.usableToolkit(dir) {
			return dir
		}
	}
	return ""
}

// usableToolkit reports whether dir has the device library, and nobody else may
// change that or the assembler, which XLA starts.
func (s search) usableToolkit(dir string) bool {
	device := globs(filepath.Join(dir, "nvvm", "libdevice", "libdevice*.bc"))
	for _, path := range append(device, globs(filepath.Join(dir, "bin", "ptxas"))...) {
		if s.check(path) != nil {
			return false
		}
	}
	return len(device) > 0
}

// pythonTimeout bounds the start of an interpreter on a slow disk.
const pythonTimeout = 20 * time.Second

// sitePackages asks a Python interpreter for the folders of its packages. It runs in
// isolation (-I): else it would import the modules of the query from the
// working directory.
func sitePackages(python string) ([]string, error) {
	if python == "" {
		python = "python3"
	}
	python, err := trusted.Program(python)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), pythonTimeout)
	defer cancel()
	const program = `import site, sysconfig
print("\n".join([sysconfig.get_paths()[k] for k in ("purelib", "platlib")] + site.getsitepackages() + [site.getusersitepackages()]))`
	out, err := exec.CommandContext(ctx, python, "-I", "-c", program).Output()
	if err != nil {
		return nil, fmt.Errorf("ask %s for its packages: %w", python, err)
	}
	var dirs []string
	for dir := range strings.Lines(string(out)) {
		if dir = strings.TrimSpace(dir); isDir(dir) && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs, nil
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
