// Package systemd_test checks the units as systemd itself reads them.
package systemd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// exposureLimit is what systemd-analyze may find, in tenths: 1.5 of 10, where a
// plain service has 9.6.
const exposureLimit = "15"

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
		"gpu.conf": "lacuna.service.d/gpu.conf",
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
	for _, unit := range []string{"lacuna.service", "lacuna-once.service", "lacuna-once.timer"} {
		out, err := analyze(folder, "verify", "--man=no", "./"+unit)
		if err != nil || strings.Contains(out, "lacuna") {
			t.Errorf("%s: %v\n%s", unit, err, out)
		}
	}
}

// A typing error in a unit is only a warning to systemd, so the check must be
// one that sees it.
func TestACheckedUnitHasNoUnknownKeys(t *testing.T) {
	folder := install(t)
	for _, file := range []string{"lacuna.service", "lacuna.service.d/gpu.conf"} {
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
	if err := os.RemoveAll(filepath.Join(folder, "lacuna.service.d")); err != nil { // a GPU needs doors that are shut otherwise
		t.Fatal(err)
	}
	for _, unit := range []string{"lacuna.service", "lacuna-once.service"} {
		out, err := analyze(folder, "security", "--offline=true", "--threshold="+exposureLimit, "./"+unit)
		if err != nil || !strings.Contains(out, "Overall exposure level for "+unit) {
			t.Errorf("%s is exposed by more than %s tenths: %v\n%s", unit, exposureLimit, err, out)
		}
	}
}
