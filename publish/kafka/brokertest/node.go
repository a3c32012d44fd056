package brokertest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// Listeners of a broker, by the place of their port.
const (
	controller = iota
	open       // no encryption, no login
	sasl       // login with SCRAM-SHA-512 or PLAIN
	tlsAuth    // encryption, client certificate wanted
	listeners
)

// node is one broker process.
type node struct {
	id         int
	ports      []int // by listener
	properties string

	process *exec.Cmd
	ready   chan struct{} // closed when the broker takes requests
	ended   chan struct{} // closed when the process is gone and its output read

	mu    sync.Mutex // guards lines
	lines []string
}

// prepare writes the settings of a broker and formats its folder.
func (c *Cluster) prepare(n *node) error {
	folder := filepath.Join(c.dir, fmt.Sprintf("node%d", n.id))
	if err := os.MkdirAll(filepath.Join(folder, "data"), 0o700); err != nil {
		return err
	}
	var text strings.Builder
	settings := c.settings(n, filepath.Join(folder, "data"))
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&text, "%s=%s\n", key, settings[key])
	}
	n.properties = filepath.Join(folder, "server.properties")
	if err := os.WriteFile(n.properties, []byte(text.String()), 0o600); err != nil {
		return err
	}
	// The file that the format command of Kafka writes, without two seconds of
	// Java.
	meta := fmt.Sprintf("version=1\ncluster.id=AAAAAAAAAAAAAAAAAAAAAQ\nnode.id=%d\n", n.id)
	return os.WriteFile(filepath.Join(folder, "data", "meta.properties"), []byte(meta), 0o600)
}

func (c *Cluster) settings(n *node, data string) map[string]string {
	var voters []string
	for _, other := range c.nodes {
		voters = append(voters, fmt.Sprintf("%d@127.0.0.1:%d", other.id, other.ports[controller]))
	}
	copies := fmt.Sprint(len(c.nodes))
	s := map[string]string{
		"process.roles": "broker,controller", "node.id": fmt.Sprint(n.id),
		"controller.quorum.voters": strings.Join(voters, ","), "controller.listener.names": "CONTROLLER",
		"listeners":                      fmt.Sprintf("OPEN://127.0.0.1:%d,CONTROLLER://127.0.0.1:%d", n.ports[open], n.ports[controller]),
		"listener.security.protocol.map": "OPEN:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT,TLS:SSL",
		"inter.broker.listener.name":     "OPEN", "log.dirs": data, "auto.create.topics.enable": "false",
		"default.replication.factor": copies, "min.insync.replicas": fmt.Sprint(len(c.nodes)/2 + 1),
		"offsets.topic.num.partitions": "1", "offsets.topic.replication.factor": copies,
		"transaction.state.log.num.partitions": "1", "transaction.state.log.replication.factor": copies,
		"transaction.state.log.min.isr": "1", "group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "1000",
		// A killed broker may come back as soon as its old session has lapsed.
		"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500",
	}
	if c.o.Secure {
		s["listeners"] += fmt.Sprintf(",SASL://127.0.0.1:%d,TLS://127.0.0.1:%d", n.ports[sasl], n.ports[tlsAuth])
		s["sasl.enabled.mechanisms"] = "SCRAM-SHA-512,PLAIN"
		s["listener.name.sasl.scram-sha-512.sasl.jaas.config"] = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
		s["listener.name.sasl.plain.sasl.jaas.config"] = fmt.Sprintf(
			"org.apache.kafka.common.security.plain.PlainLoginModule required user_%s=%q;", User, Password)
		s["ssl.keystore.type"], s["ssl.keystore.location"] = "PEM", c.File("server.keystore.pem")
		s["ssl.truststore.type"], s["ssl.truststore.location"] = "PEM", c.File("ca.pem")
		s["listener.name.tls.ssl.client.auth"] = "required"
	}
	maps.Copy(s, c.o.Properties)
	return s
}

// start runs the broker; wait returns when it is ready.
func (n *node) start(java *exec.Cmd) error {
	// An aborted test must not leave brokers behind.
	java.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	output, err := java.StderrPipe()
	if err != nil {
		return err
	}
	java.Stdout = nil
	if err := java.Start(); err != nil {
		return err
	}
	n.process, n.ready, n.ended = java, make(chan struct{}), make(chan struct{})
	go n.follow(output, n.ready, n.ended)
	return nil
}

// follow keeps the last lines of the broker's log until the process ends.
func (n *node) follow(output io.Reader, ready, ended chan struct{}) {
	defer close(ended)
	const kept = 40
	started := false
	for lines := bufio.NewScanner(output); lines.Scan(); {
		n.mu.Lock()
		n.lines = append(n.lines, lines.Text())
		n.lines = n.lines[max(0, len(n.lines)-kept):]
		n.mu.Unlock()
		if !started && strings.Contains(lines.Text(), "Kafka Server started") {
			started = true
			close(ready)
		}
	}
}

func (n *node) wait(ctx context.Context) error {
	select {
	case <-n.ready:
		return nil
	case <-n.ended:
		return errors.New("its process ended")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// kill ends the process at once; one that has ended is left alone.
func (n *node) kill() error { return n.end(syscall.SIGKILL) }

func (n *node) end(signal syscall.Signal) error {
	if n.process == nil {
		return nil
	}
	if err := n.process.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-n.ended
	_ = n.process.Wait() // it ends with the signal's status
	n.process = nil
	return nil
}

func (n *node) freeze() (thaw func(), err error) {
	p := n.process.Process
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { _ = p.Signal(syscall.SIGCONT) }), nil
}

func (n *node) tail() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.lines, "\n")
}
