// Package brokertest starts real Apache Kafka brokers for tests.
//
// A cluster is one to a few Java processes on the loopback interface that keep
// their data under the test's temporary folder, end with the test, and can be
// killed, frozen and started again in the middle of one. Tests skip where Java
// or the jars are absent; ops/setup/kafka/broker.sh fetches the jars.
//
// Package brokertest knows nothing of topics or messages.
package brokertest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lacuna/internal/checkout"
)

// Options describe a cluster. The zero value is one broker without users or
// certificates.
type Options struct {
	Nodes      int               // 0: one
	Secure     bool              // with listeners for TLS and for SASL
	Properties map[string]string // in addition to, or instead of, the usual ones
}

// Cluster is a set of running brokers.
type Cluster struct {
	t     testing.TB
	dir   string
	cache string
	o     Options
	nodes []*node
}

// Passwords and names that a secure cluster knows.
const (
	User     = "reader"
	Password = "let-me-in"
)

// Start starts a cluster and waits until it takes requests. It skips the test
// where that is not possible here.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	c := &Cluster{t: t, dir: t.TempDir(), cache: jars(t), o: o}
	if c.o.Nodes == 0 {
		c.o.Nodes = 1
	}
	if o.Secure {
		if err := writeCertificates(c.dir); err != nil {
			t.Fatal(err)
		}
	}
	for i := range c.o.Nodes {
		c.nodes = append(c.nodes, &node{id: i + 1, ports: freePorts(t, listeners)})
	}
	t.Cleanup(c.close)
	for _, n := range c.nodes {
		if err := c.prepare(n); err != nil {
			t.Fatal(err)
		}
		c.launch(n)
	}
	for _, n := range c.nodes {
		c.await(n)
	}
	if o.Secure {
		c.addUser()
	}
	return c
}

// jars returns the folder of the broker's jars, or skips.
func jars(t testing.TB) string {
	t.Helper()
	if _, err := exec.LookPath("java"); err != nil {
		t.Skip("there is no java here: install openjdk-17-jre-headless to run this test against a real Kafka broker")
	}
	folder := os.Getenv("LACUNA_KAFKA")
	if folder == "" {
		folder = filepath.Join(checkout.Root(t), ".cache", "kafka")
	}
	if found, _ := filepath.Glob(filepath.Join(folder, "lib", "kafka_*.jar")); len(found) == 0 {
		t.Skip("the jars of the Kafka broker are not here: run ops/setup/kafka/broker.sh .cache/kafka, or set LACUNA_KAFKA")
	}
	return folder
}

// freePorts returns ports that nobody listens on now. They are chosen before
// the broker starts so that it comes back under the same address.
func freePorts(t testing.TB, n int) []int {
	t.Helper()
	var ports []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // all at the end, or the same port would come again
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

// Addrs are the addresses of the brokers' open listeners.
func (c *Cluster) Addrs() []string { return c.addrs(open) }

// SASLAddrs are the listeners that ask for User and Password with
// SCRAM-SHA-512 or PLAIN.
func (c *Cluster) SASLAddrs() []string { return c.addrs(sasl) }

// TLSAddrs are the listeners that ask for a client certificate.
func (c *Cluster) TLSAddrs() []string { return c.addrs(tlsAuth) }

func (c *Cluster) addrs(listener int) []string {
	var all []string
	for _, n := range c.nodes {
		all = append(all, fmt.Sprintf("127.0.0.1:%d", n.ports[listener]))
	}
	return all
}

// File returns the path of a file of a secure cluster: ca.pem, client.pem,
// client.key, stranger.pem and stranger.key (of another authority).
func (c *Cluster) File(name string) string { return filepath.Join(c.dir, name) }

// Kill ends a broker as a power cut of its process would; nodes count from 0.
func (c *Cluster) Kill(node int) {
	c.t.Helper()
	if err := c.nodes[node].kill(); err != nil {
		c.t.Fatal(err)
	}
}

// Freeze stops a broker from running without closing its connections, until
// the function that it returns is called.
func (c *Cluster) Freeze(node int) (thaw func()) {
	c.t.Helper()
	thaw, err := c.nodes[node].freeze()
	if err != nil {
		c.t.Fatal(err)
	}
	return thaw
}

// Restart starts a killed broker again with the data it had and waits until it
// takes requests.
func (c *Cluster) Restart(node int) {
	c.t.Helper()
	c.launch(c.nodes[node])
	c.await(c.nodes[node])
}

func (c *Cluster) launch(n *node) {
	c.t.Helper()
	if err := n.start(c.java(n.properties)); err != nil {
		c.t.Fatalf("start broker %d: %v", n.id, err)
	}
}

// startTimeout is generous: a start takes 2 to 8 s on a quiet machine.
const startTimeout = 5 * time.Minute

func (c *Cluster) await(n *node) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := n.wait(ctx); err != nil {
		c.t.Fatalf("broker %d does not start: %v\n%s", n.id, err, n.tail())
	}
}

func (c *Cluster) close() {
	for _, n := range c.nodes {
		_ = n.kill()
		if c.t.Failed() {
			c.t.Logf("the last lines of broker %d:\n%s", n.id, n.tail())
		}
	}
}

// classPath lists the jars in a fixed order: a class archive is good for one
// order only.
func (c *Cluster) classPath() string {
	found, _ := filepath.Glob(filepath.Join(c.cache, "lib", "*.jar"))
	return strings.Join(found, string(filepath.ListSeparator))
}

// java is the command line of a broker. Compiling little and sharing parsed
// classes makes it start in two seconds.
func (c *Cluster) java(properties string) *exec.Cmd {
	args := []string{"-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.io.tmpdir=" + c.dir}
	if archive, err := c.classArchive(); err == nil {
		args = append(args, "-XX:SharedArchiveFile="+archive)
	}
	return exec.Command("java", append(args, "-cp", c.classPath(), "kafka.Kafka", properties)...)
}
