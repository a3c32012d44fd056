package engine

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lacuna/pipeline/trusted"
)

func TestAPartOfXLAThatOthersMayWriteIsRefused(t *testing.T) {
	for _, spoilt := range []string{jax[0], jax[1], gpu[1]} {
		m := newMachine(t, slices.Concat(jax, gpu)...)
		s := m.search()
		s.check = func(path string) error {
			if path == m.path(spoilt) {
				return trusted.ErrUntrusted
			}
			return nil
		}
		if _, err := s.cuda(); !errors.Is(err, trusted.ErrUntrusted) {
			t.Errorf("%s that others may write: %v", spoilt, err)
		}
	}
	m := newMachine(t, slices.Concat(jax, gpu, []string{"venv/site-packages/nvidia/cu13/bin/ptxas", "usr/local/cuda/nvvm/libdevice/libdevice.10.bc"})...)
	s := m.search()
	s.check = func(path string) error {
		if filepath.Base(path) == "ptxas" {
			return trusted.ErrUntrusted
		}
		return nil
	}
	if got, err := s.cuda(); err != nil || got.toolkit != m.path("usr/local/cuda") {
		t.Errorf("with an assembler that others may write the toolkit is %q, %v", got.toolkit, err)
	}
}

func TestXLALoadsNothingFromTheWorkingDirectory(t *testing.T) {
	m := newMachine(t, slices.Concat(jax, gpu, []string{"pjrt_c_api_cuda_plugin.so", "libcuda.so.1", "nvvm/libdevice/libdevice.10.bc"})...)
	t.Chdir(m.root)
	for name, value := range map[string]string{
		"PJRT_PLUGIN_LIBRARY_PATH": ":.", "LD_LIBRARY_PATH": ".::", "CUDA_HOME": ".", "CUDA_PATH": "./",
	} {
		m.env[name] = value
	}
	m.site = []string{m.path("venv/site-packages")}
	if err := os.RemoveAll(m.path("venv/site-packages/nvidia/cu13/nvvm")); err != nil {
		t.Fatal(err)
	}
	got, err := m.search().cuda()
	if err != nil {
		t.Fatal(err)
	}
	if got.plugin != m.path(jax[0]) || got.libraries[0] != m.path(gpu[1]) || got.toolkit != "" {
		t.Errorf("with relative folders in the environment XLA gets %+v", got)
	}
	s := m.search()
	s.check = newSearch(Config{}).check
	m.env["LACUNA_PJRT_PLUGIN"] = "pjrt_c_api_cuda_plugin.so"
	if _, err := s.cuda(); err == nil || !strings.Contains(err.Error(), "not an absolute path") {
		t.Errorf("a relative plug-in in the environment: %v", err)
	}
}

func TestPythonTellsItsFolders(t *testing.T) {
	python := filepath.Join(t.TempDir(), "python")
	folder := t.TempDir()
	script := "#!/bin/sh\nprintf '%s\\n%s\\n%s\\n' '" + folder + "' '" + folder + "' '" + folder + "/gone'\n"
	if err := os.WriteFile(python, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := sitePackages(python); err != nil || !slices.Equal(got, []string{folder}) {
		t.Errorf("folders are %v, %v, want %s once", got, err, folder)
	}
	if got, err := sitePackages(filepath.Join(folder, "no-python")); err == nil {
		t.Errorf("without Python the folders are %v", got)
	}
	if err := os.Chmod(python, 0o777); err != nil {
		t.Fatal(err)
	}
	if got, err := sitePackages(python); !errors.Is(err, trusted.ErrUntrusted) {
		t.Errorf("of a Python that everybody may write the folders are %v, %v", got, err)
	}
}

// A module of the working directory with the name of one that the query imports
// would run as the user who starts lacuna there.
func TestPythonRunsNothingFromTheWorkingDirectory(t *testing.T) {
	path, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no Python here")
	}
	planted := t.TempDir()
	mark := filepath.Join(planted, "ran")
	for _, module := range []string{"sysconfig.py", "site.py"} {
		if err := os.WriteFile(filepath.Join(planted, module), []byte("open("+`"`+mark+`"`+", 'w')\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(planted)
	_, err = sitePackages(path)
	if _, missing := os.Stat(mark); missing == nil {
		t.Error("code of the working directory has run")
	}
	if err != nil {
		t.Errorf("Python in such a folder: %v", err)
	}
}
