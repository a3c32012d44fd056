package brokertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// classArchive returns the file of parsed classes that makes brokers start
// quickly, and makes it once for the present jars. On an error, brokers start
// without it.
func (c *Cluster) classArchive() (string, error) {
	archive := filepath.Join(c.cache, "classes.jsa")
	if _, err := os.Stat(archive); err == nil {
		return archive, nil
	}
	lock, err := os.OpenFile(filepath.Join(c.cache, "classes.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	// Test binaries of several packages run side by side: one makes it.
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	if _, err := os.Stat(archive); err == nil {
		return archive, nil
	}
	return archive, c.makeArchive(archive)
}

// makeArchive runs a broker that writes its class archive when it ends.
func (c *Cluster) makeArchive(archive string) error {
	dir, err := os.MkdirTemp(c.dir, "archive")
	if err != nil {
		return err
	}
	solo := &Cluster{t: c.t, dir: dir, cache: c.cache}
	n := &node{id: 1, ports: freePorts(c.t, listeners)}
	solo.nodes = []*node{n}
	if err := solo.prepare(n); err != nil {
		return err
	}
	fresh := fmt.Sprintf("%s.%d", archive, os.Getpid())
	defer os.Remove(fresh)
	err = n.start(exec.Command("java", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-XX:ArchiveClassesAtExit="+fresh, "-cp", c.classPath(), "kafka.Kafka", n.properties))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := n.wait(ctx); err != nil {
		_ = n.kill()
		return err
	}
	if err := n.end(syscall.SIGTERM); err != nil {
		return err
	}
	return os.Rename(fresh, archive)
}
