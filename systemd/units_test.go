// Package systemd_test checks the units as systemd itself reads them.
package systemd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// exposureLimit is the highest exposure level of systemd-analyze, in tenths:
// 1.2 of 10, where a plain service has 9.6. The rest is the network, which
// archives need.
const exposureLimit = "12"

// install copies the units to a folder, with a program in the place of lacuna
// that is there on every machine.
func install(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("systemd-analyze is not installed (Debian package systemd), so the units are not checked")
	}
	folder := t.TempDir()
	for from, to := range map[string]string{
		"lacuna.service": "lacuna.service", "lacuna-once.service": "lacuna-once.service", "lacuna-once.timer": "lacuna-once.timer",
		"lacuna-worker@.service": "lacuna-worker@1.service",
		"gpu.conf":               "lacuna.service.d/gpu.conf", "network.conf": "lacuna.service.d/network.conf",
	} {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		target := filepath.Join(folder, to)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(target, []byte(strings.ReplaceAll(string(text), "/usr/bin/lacuna", "/bin/true")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// analyze runs systemd-analyze in a folder of units, which are found before
// those of the machine.
func analyze(folder string, args ...string) (string, error) {
	cmd := exec.Command("systemd-analyze", args...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+folder+":", "SYSTEMD_COLORS=0", "SYSTEMD_PAGER=")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestSystemdUnderstandsTheUnits(t *testing.T) {
	folder := install(t)
	for _, unit := range []string{"lacuna.service", "lacuna-once.service", "lacuna-once.timer", "lacuna-worker@1.service"} {
		out, err := analyze(folder, "verify", "--man=no", "./"+unit)
		if err != nil || strings.Contains(out, "lacuna") {
			t.Errorf("%s: %v\n%s", unit, err, out)
		}
	}
}

// A misspelt key is only a warning to systemd, which the check must count as a
// fault.
func TestACheckedUnitHasNoUnknownKeys(t *testing.T) {
	folder := install(t)
	for _, file := range []string{"lacuna.service", "lacuna.service.d/gpu.conf", "lacuna.service.d/network.conf"} {
		path := filepath.Join(folder, file)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, append(text, "\n[Service]\nProtectSystm=strict\n"...), 0o644); err != nil {
			t.Fatal(err)
		}
		if out, _ := analyze(folder, "verify", "--man=no", "./lacuna.service"); !strings.Contains(out, "ProtectSystm") {
			t.Errorf("a wrong key in %s goes unseen: %s", file, out)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestServicesAreHardened(t *testing.T) {
	folder := install(t)
	if err := os.RemoveAll(filepath.Join(folder, "lacuna.service.d")); err != nil { // access to a GPU loosens the sandbox
		t.Fatal(err)
	}
	for _, unit := range []string{"lacuna.service", "lacuna-once.service", "lacuna-worker@1.service"} {
		out, err := analyze(folder, "security", "--offline=true", "--threshold="+exposureLimit, "./"+unit)
		if err != nil || !strings.Contains(out, "Overall exposure level for "+unit) {
			t.Errorf("%s is exposed by more than %s tenths: %v\n%s", unit, exposureLimit, err, out)
		}
	}
}

// A service without these can take the machine down, or its child cannot
// sandbox itself.
func TestServicesBoundTheirMemoryAndLetChildrenSandboxThemselves(t *testing.T) {
	for _, unit := range []string{"lacuna.service", "lacuna-once.service", "lacuna-worker@.service"} {
		text, err := os.ReadFile(unit)
		if err != nil {
			t.Fatal(err)
		}
		calls := systemCalls(t, settings(string(text))["SystemCallFilter"])
		for _, call := range []string{"landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self", "seccomp", "prctl"} {
			if !calls[call] {
				t.Errorf("%s does not let a child call %s", unit, call)
			}
		}
		for _, call := range []string{"mount", "ptrace", "bpf", "setuid", "kexec_load"} {
			if calls[call] {
				t.Errorf("%s allows %s", unit, call)
			}
		}
		if got := settings(string(text))["MemoryMax"]; len(got) != 1 || !strings.HasSuffix(got[0], "%") {
			t.Errorf("MemoryMax of %s is %q, want a share of the machine", unit, got)
		}
	}
}

func TestTheDropInForTheNetworkDeniesUnlistedHosts(t *testing.T) {
	folder := install(t)
	if err := os.Remove(filepath.Join(folder, "lacuna.service.d", "gpu.conf")); err != nil {
		t.Fatal(err)
	}
	// systemd reads the drop-ins of a unit that is named, not those of a file.
	unit, err := os.ReadFile(filepath.Join(folder, "lacuna.service"))
	if err != nil {
		t.Fatal(err)
	}
	dropIn, err := os.ReadFile(filepath.Join(folder, "lacuna.service.d", "network.conf"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "lacuna.service"), append(append(unit, '\n'), dropIn...), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := analyze(folder, "security", "--offline=true", "--threshold=10", "./lacuna.service"); err != nil {
		t.Errorf("with the drop-in: %v\n%s", err, out)
	}
}
