package ingest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"lacuna/pipeline/ingest/ncfile"
	"lacuna/pipeline/ingest/sandbox"
)

// secretValue is the content of another file, plausible as chlorophyll: a
// daemon that reads it would publish it.
const secretValue = 7.75

// hostileFiles writes the granules of testdata/hostile.py into a folder.
func hostileFiles(t *testing.T) (folder string) {
	t.Helper()
	python := os.Getenv("LACUNA_PYTHON")
	if python == "" || exec.Command(python, "-c", "import h5py").Run() != nil {
		t.Skip("LACUNA_PYTHON names no Python with h5py, which writes the files; make test sets it")
	}
	folder = t.TempDir()
	numbers := make([]float32, 20)
	for i := range numbers {
		numbers[i] = secretValue
	}
	var secret bytes.Buffer
	must(t, binary.Write(&secret, binary.LittleEndian, numbers))
	must(t, os.WriteFile(filepath.Join(folder, "secret"), secret.Bytes(), 0o600))
	out, err := exec.Command(python, "testdata/hostile.py", folder, filepath.Join(folder, "secret")).CombinedOutput()
	if err != nil {
		t.Fatalf("hostile.py: %v\n%s", err, out)
	}
	return folder
}

func TestFilesThatReferToMoreThanThemselvesAreRefused(t *testing.T) {
	folder := hostileFiles(t)
	t.Chdir(folder) // relative names lead to the secret from here
	tests := []struct{ file, problem string }{
		{"external-absolute", `the numbers of "CHL" lie in another file`},
		{"external-relative", `the numbers of "CHL" lie in another file`},
		{"external-upwards", `the numbers of "CHL" lie in another file`},
		{"external-device", `the numbers of "CHL" lie in another file`},
		{"external-environment", `the numbers of "CHL" lie in another file`},
		{"link-variable", `"CHL" is a link to another file`},
		{"link-absolute", `"CHL" is a link to another file`},
		{"link-group", `"quality/flags" is a link to another file`},
		{"link-remote", `"CHL" is a link to another file`},
		{"link-through", `"elsewhere" is a link to another file`},
		{"link-nowhere", "cannot be opened as NetCDF"},
		{"virtual-other", `"CHL" is a virtual data set`},
		{"virtual-absolute", `"CHL" is a virtual data set`},
		{"virtual-self", `"CHL" is a virtual data set`},
		{"filter-zstd", `"CHL" is packed by filter 32015`},
		{"filter-blosc", `"CHL" is packed by filter 32001`},
		{"year-53", "of 0053-03-24, when no satellite looked"},
		{"year-9000", "when no satellite looked"},
		{"dateless", "it has no time"},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			_, err := reader(t, "decode").Read(t.Context(), filepath.Join(folder, tt.file+".nc"), Options{})
			if b := wantBad(t, err); !strings.Contains(b.Problem, tt.problem) || b.Remedy == "" {
				t.Errorf("got %q, want %q", b, tt.problem)
			}
		})
	}
	for _, sound := range []string{"plain", "link-inside"} {
		g := mustRead(t, filepath.Join(folder, sound+".nc"), Options{})
		if n := g.Fields[0].ObservedMask().Count(); n != 20 {
			t.Errorf("%s, which needs nothing else: %d cells observed, want 20", sound, n)
		}
	}
}

// Names that a shell, a log or netCDF-C would take for something else.
func TestHostileNamesOfSoundFiles(t *testing.T) {
	folder := t.TempDir()
	sound, err := os.ReadFile(fixture(t, "nc4", "plankton"))
	must(t, err)
	for _, tt := range []struct {
		name    string
		refused bool
	}{
		{"20240326\nlevel=ERROR.nc", true},
		{"20240326\x1b[2J.nc", true},
		{"20240326\u2028.nc", true},
		{"https:127.0.0.1 20240326.nc#mode=bytes", false},
		{"20240326.nc#mode=nczarr,s3", false},
	} {
		path := filepath.Join(folder, tt.name)
		must(t, os.WriteFile(path, sound, 0o600))
		_, err := reader(t, "decode").Read(t.Context(), path, Options{})
		if tt.refused {
			wantBad(t, err)
		} else if err != nil {
			t.Errorf("%q: %v", tt.name, err)
		}
	}
}

// A decoder that does not recognise a file's trick, such as a new feature of a
// future HDF5, must still find nothing outside the file.
func TestTrustingDecoderFindsNothingOutside(t *testing.T) {
	folder := hostileFiles(t)
	t.Chdir(folder)
	if g, err := reader(t, "trusting").Read(t.Context(), "plain.nc", Options{}); err != nil || g.Fields[0].Values[0] != 0.1 {
		t.Fatalf("the decoder does not decode: %v", err)
	}
	tricks, err := filepath.Glob("[elv]*-*.nc") // external, link, virtual
	must(t, err)
	if len(tricks) < 12 {
		t.Fatalf("only %d files: %v", len(tricks), tricks)
	}
	secret := binary.LittleEndian.AppendUint32(nil, 0x40f80000) // secretValue
	for _, file := range tricks {
		g, err := reader(t, "trusting").Read(t.Context(), file, Options{})
		if err != nil {
			continue
		}
		if chl, _ := g.Source.Var("CHL"); bytes.Contains(chl.Raw, secret) {
			t.Errorf("%s: the secret came out", file)
		}
	}
}

// withoutLooking is the child without the check of the file's structure.
func withoutLooking(stdin io.Reader, stdout io.Writer) int {
	runtime.LockOSThread()
	ncfile.WarmUp()
	if _, err := sandbox.Restrict(); err != nil {
		return 1
	}
	var req request
	if json.NewDecoder(stdin).Decode(&req) != nil {
		return 1
	}
	fd, err := receiveFile()
	if err != nil {
		return 1
	}
	m, err := ncfile.Map(fd, req.FileBytes)
	if err == nil {
		err = sendAll(stdout, m, req)
	}
	if err != nil {
		_ = writeFailure(stdout, err)
	}
	return 0
}

func TestChildIsConfined(t *testing.T) {
	got, err := reader(t, "decode").Isolation(t.Context())
	must(t, err)
	if got.Opens || got.Connects || got.Starts {
		t.Errorf("the child could leave: %v", got)
	}
	if !got.Seccomp {
		t.Errorf("no limits on system calls: %v", got)
	}
	if got.Landlock == 0 {
		t.Logf("this kernel has no Landlock: %v", got)
	}
}

// Settings of the daemon's user and working folder are not the child's.
func TestChildGetsNoEnvironment(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("HDF5_PLUGIN_PATH", "/somewhere")
	t.Setenv("HOME", "/somewhere")
	for _, setting := range childEnv() {
		name, value, _ := strings.Cut(setting, "=")
		if value == "secret" || value == "/somewhere" {
			t.Errorf("%s=%s reaches the child", name, value)
		}
	}
}
