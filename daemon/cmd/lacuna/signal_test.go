package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// lingering starts a daemon that has a product for a broker which never
// answers, so that its stop takes seconds, and returns it when the product is
// there.
func lingering(t *testing.T) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	mute, err := net.Listen("tcp", "127.0.0.1:0") // accepts, by the kernel, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mute.Close() })
	root := t.TempDir()
	archive := filepath.Join(root, "archive")
	if out, err := exec.Command("lacuna", "simulate", "-o", archive, "--days", "1", "--grid", "16x24").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	config := filepath.Join(root, "lacuna.yaml")
	text := fmt.Sprintf(`{state_dir: %[1]s/state, products_dir: %[1]s/products, web: {listen: "127.0.0.1:0"},
publish: {disk: {floor_mib: 1}, kafka: {brokers: ["%[2]s"]}},
datasets: [{name: sea, archive: {dir: %[1]s/archive, settle: 0s, poll_interval: 100ms}, fill: {method: persistence}}]}`, root, mute.Addr())
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("lacuna", "run", "--config", config)
	var said bytes.Buffer
	c.Stderr = &said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for range 600 {
		if files, _ := filepath.Glob(filepath.Join(root, "products", "sea", "*", "*", "*.nc")); len(files) == 1 {
			return c, &said
		}
		time.Sleep(50 * time.Millisecond)
	}
	_ = c.Process.Kill()
	_ = c.Wait()
	t.Fatalf("no product appeared\n%s", &said)
	return nil, nil
}

func TestFirstSignalDrainsAndASecondCutsItShort(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a drain")
	}
	signal := func(c *exec.Cmd) {
		if err := c.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	patient, said := lingering(t)
	began := time.Now()
	signal(patient)
	if err := patient.Wait(); err != nil {
		t.Errorf("after one signal it ended with %v\n%s", err, said)
	}
	drained := time.Since(began)
	if drained < 2*time.Second || drained > 40*time.Second {
		t.Errorf("the drain took %v, want the seconds that a last flush may take", drained)
	}

	hasty, said := lingering(t)
	signal(hasty)
	time.Sleep(300 * time.Millisecond) // it must have seen the first one; signals are not counted
	began = time.Now()
	signal(hasty)
	err := hasty.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != -1 {
		t.Errorf("after two signals it ended with %v, want it cut short\n%s", err, said)
	}
	if took := time.Since(began); took > drained/2 {
		t.Errorf("the second signal took %v, the drain %v", took, drained)
	}
}
