package engine

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// machine is a fake file system for a search.
type machine struct {
	root string
	env  map[string]string
	site []string
}

func newMachine(t *testing.T, files ...string) *machine {
	t.Helper()
	m := &machine{root: t.TempDir(), env: map[string]string{}}
	for _, f := range files {
		path := m.path(f)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m.site = []string{m.path("venv/site-packages"), m.path("home/site-packages")}
	return m
}

func (m *machine) path(name string) string { return filepath.Join(m.root, name) }

func (m *machine) search() search {
	return search{
		env: func(name string) string { return m.env[name] },
		python: func() ([]string, error) {
			if m.site == nil {
				return nil, errors.New("python3 is not installed")
			}
			return m.site, nil
		},
		devices: []string{m.path("dev/nvidia[0-9]*")},
		drivers: []string{m.path("usr/lib"), m.path("usr/local/nvidia/lib64")},
		tools:   []string{m.path("usr/local/cuda"), m.path("usr/local/cuda-*")},
		check:   func(string) error { return nil }, // the folder of tests is writable by everybody
	}
}

// jax are the files of pip install jax[cuda13], and gpu those of a driver.
var (
	jax = []string{
		"venv/site-packages/jax_plugins/xla_cuda13/xla_cuda_plugin.so",
		"venv/site-packages/nvidia/cu13/lib/libcublas.so.13",
		"venv/site-packages/nvidia/cu13/lib/libcublasLt.so.13",
		"venv/site-packages/nvidia/cu13/lib/libcudart.so.13",
		"venv/site-packages/nvidia/cu13/lib/libcudart.so",
		"venv/site-packages/nvidia/cu13/nvvm/libdevice/libdevice.10.bc",
		"venv/site-packages/nvidia/cudnn/lib/libcudnn.so.9",
	}
	gpu = []string{"dev/nvidia0", "usr/local/nvidia/lib64/libcuda.so.1", "usr/local/nvidia/lib64/libnvidia-ptxjitcompiler.so.1"}
)

func TestJAXIsFoundWithoutConfiguration(t *testing.T) {
	m := newMachine(t, slices.Concat(jax, gpu)...)
	got, err := m.search().cuda()
	if err != nil {
		t.Fatal(err)
	}
	if want := m.path(jax[0]); got.plugin != want {
		t.Errorf("plug-in is %s, want %s", got.plugin, want)
	}
	if want := m.path("venv/site-packages/nvidia/cu13"); got.toolkit != want {
		t.Errorf("toolkit is %s, want %s", got.toolkit, want)
	}
	want := []string{ // the driver, then libraries before those that need them; no link for compilers
		m.path(gpu[1]), m.path(gpu[2]), m.path(jax[3]), m.path(jax[2]), m.path(jax[1]), m.path(jax[6]),
	}
	if !slices.Equal(got.libraries, want) {
		t.Errorf("libraries are\n%s\nwant\n%s", strings.Join(got.libraries, "\n"), strings.Join(want, "\n"))
	}
}

func TestNewestPluginOfTheFirstPythonFolderWins(t *testing.T) {
	m := newMachine(t, append(gpu,
		"venv/site-packages/jax_plugins/xla_cuda9/xla_cuda_plugin.so",
		"venv/site-packages/jax_plugins/xla_cuda12/xla_cuda_plugin.so",
		"home/site-packages/jax_plugins/xla_cuda13/xla_cuda_plugin.so")...)
	got, err := m.search().cuda()
	if err != nil {
		t.Fatal(err)
	}
	if want := m.path("venv/site-packages/jax_plugins/xla_cuda12/xla_cuda_plugin.so"); got.plugin != want {
		t.Errorf("plug-in is %s, want %s", got.plugin, want)
	}
}

func TestConfigurationWinsOverEnvironmentOverPython(t *testing.T) {
	m := newMachine(t, slices.Concat(jax, gpu, []string{"a/plugin.so", "b/plugin.so", "c/pjrt_c_api_cuda_plugin.so"})...)
	m.env["PJRT_PLUGIN_LIBRARY_PATH"] = m.path("nowhere") + ":" + m.path("c")
	s := m.search()
	find := func() string {
		t.Helper()
		got, err := s.cuda()
		if err != nil {
			t.Fatal(err)
		}
		if len(got.libraries) < 4 {
			t.Errorf("beside the plug-in %s only %v was found", got.plugin, got.libraries)
		}
		return got.plugin
	}
	if got, want := find(), m.path("c/pjrt_c_api_cuda_plugin.so"); got != want {
		t.Errorf("with PJRT_PLUGIN_LIBRARY_PATH the plug-in is %s, want %s", got, want)
	}
	m.env["LACUNA_PJRT_PLUGIN"] = m.path("b/plugin.so")
	if got, want := find(), m.path("b/plugin.so"); got != want {
		t.Errorf("with LACUNA_PJRT_PLUGIN the plug-in is %s, want %s", got, want)
	}
	s.plugin = m.path("a/plugin.so")
	if got, want := find(), m.path("a/plugin.so"); got != want {
		t.Errorf("with a configured plug-in it is %s, want %s", got, want)
	}
}

func TestLinkedPluginFindsTheWheelsOfItsTarget(t *testing.T) {
	m := newMachine(t, slices.Concat(jax, gpu)...)
	link := m.path("pjrt_c_api_cuda_plugin.so")
	if err := os.Symlink(m.path(jax[0]), link); err != nil {
		t.Fatal(err)
	}
	m.site = nil
	s := m.search()
	s.plugin = link
	got, err := s.cuda()
	if err != nil {
		t.Fatal(err)
	}
	if want := m.path("venv/site-packages/nvidia/cu13"); got.toolkit != want {
		t.Errorf("toolkit is %q, want %s", got.toolkit, want)
	}
}

func TestMissingPartIsNamed(t *testing.T) {
	tests := []struct {
		name  string
		files []string
		edit  func(*machine, *search)
		want  string
	}{
		{name: "no jax", files: gpu, want: "pip install 'jax[cuda13]'"},
		{name: "no Python", files: gpu, edit: func(m *machine, _ *search) { m.site = nil }, want: "no Python to look in"},
		{name: "no GPU", files: jax, want: "no NVIDIA GPU"},
		{name: "no driver", files: append(jax, "dev/nvidia0"), want: "libcuda.so.1 is not in"},
		{
			name: "configured plug-in is gone", files: slices.Concat(jax, gpu),
			edit: func(m *machine, s *search) { s.plugin = m.path("gone.so") }, want: "named by --plugin",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := newMachine(t, tt.files...)
			s := m.search()
			if tt.edit != nil {
				tt.edit(m, &s)
			}
			if _, err := s.cuda(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestToolkitOfTheSystemServesWhereTheWheelsHaveNone(t *testing.T) {
	m := newMachine(t, slices.Concat(jax[:1], gpu, []string{"usr/local/cuda-13.0/nvvm/libdevice/libdevice.10.bc"})...)
	got, err := m.search().cuda()
	if err != nil {
		t.Fatal(err)
	}
	if want := m.path("usr/local/cuda-13.0"); got.toolkit != want {
		t.Errorf("toolkit is %q, want %s", got.toolkit, want)
	}
}

func TestDriverOnTheLibraryPathComesFirst(t *testing.T) {
	m := newMachine(t, slices.Concat(jax, gpu, []string{"mine/libcuda.so.1"})...)
	m.env["LD_LIBRARY_PATH"] = m.path("other") + ":" + m.path("mine")
	got, err := m.search().cuda()
	if err != nil {
		t.Fatal(err)
	}
	if want := m.path("mine/libcuda.so.1"); got.libraries[0] != want {
		t.Errorf("driver is %s, want %s", got.libraries[0], want)
	}
}

func TestFlagsOfTheUserAreKept(t *testing.T) {
	tests := []struct{ flags, want string }{
		{"", "--dir=x"},
		{"--other=1", "--other=1 --dir=x"},
		{"--dir=mine --other=1", "--dir=mine --other=1"},
	}
	for _, tt := range tests {
		if got := withFlag(tt.flags, "dir", "x"); got != tt.want {
			t.Errorf("withFlag(%q) = %q, want %q", tt.flags, got, tt.want)
		}
	}
}
