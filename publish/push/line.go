package push

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"lacuna/internal/session"
)

// line is an SSH connection to a host that is the one it should be.
type line struct {
	ssh     *ssh.Client
	raw     *watchedConn
	timeout time.Duration
}

// dialLine connects, checks the host key and logs in.
func dialLine(ctx context.Context, cfg SFTPConfig, login []ssh.AuthMethod) (*line, error) {
	_, address := session.HostPort(cfg.Address, "22")
	settings, err := cfg.hostKeys(address)
	if err != nil {
		return nil, err
	}
	settings.User, settings.Auth = cfg.User, login
	plain, err := (&net.Dialer{Timeout: cfg.Timeout}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	l := &line{raw: &watchedConn{Conn: plain}, timeout: cfg.Timeout}
	defer l.Bind(ctx)()
	conn, channels, requests, err := ssh.NewClientConn(l.raw, address, settings)
	if err != nil {
		l.Interrupt()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if strings.Contains(err.Error(), "unable to authenticate") {
			err = fmt.Errorf("%w; mend user, key_file or password", err)
		}
		return nil, fmt.Errorf("log in at %s as %s: %w", address, cfg.User, err)
	}
	l.ssh = ssh.NewClient(conn, channels, requests)
	return l, nil
}

// Interrupt implements session.Session.
func (l *line) Interrupt() { _ = l.raw.Close() }

// Bind makes the end of ctx, and a line on which nothing moves, interrupt the
// session until the returned function is called.
func (l *line) Bind(ctx context.Context) (unbind func()) {
	l.raw.moved.Store(time.Now().UnixNano())
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(ctx, l.Interrupt)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(max(l.timeout/4, time.Millisecond))
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if time.Since(time.Unix(0, l.raw.moved.Load())) > l.timeout {
					l.Interrupt()
					return
				}
			}
		}
	}()
	return func() {
		stop()
		cancel()
		<-ended
	}
}

// watchedConn is a connection that remembers when something moved on it.
type watchedConn struct {
	net.Conn
	moved atomic.Int64 // nanoseconds since 1970
}

// Read reads on.
func (c *watchedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.moved.Store(time.Now().UnixNano())
	}
	return n, err
}

// hostKeys returns settings that accept the host keys of known_hosts only.
func (c SFTPConfig) hostKeys(address string) (*ssh.ClientConfig, error) {
	if c.AnyHostKey {
		return &ssh.ClientConfig{HostKeyCallback: ssh.InsecureIgnoreHostKey()}, nil //nolint:gosec // asked for by name
	}
	known, err := knownhosts.New(c.KnownHosts)
	if err != nil {
		return nil, fmt.Errorf("read known_hosts: %w; 'ssh-keyscan HOST' prints what belongs there, to be compared with what its operator says", err)
	}
	return &ssh.ClientConfig{
		HostKeyAlgorithms: knownAlgorithms(known, address),
		HostKeyCallback: func(host string, remote net.Addr, key ssh.PublicKey) error {
			err := known(host, remote, key)
			var wrong *knownhosts.KeyError
			switch {
			case !errors.As(err, &wrong):
				return err
			case len(wrong.Want) == 0:
				return fmt.Errorf("%w: %s has the host key %s, and known_hosts (%s) has none of it: compare the fingerprint with what its operator says, and add the key",
					errHostKey, host, ssh.FingerprintSHA256(key), c.KnownHosts)
			}
			return fmt.Errorf("%w: %s has the host key %s, and known_hosts (%s) has another: somebody may be in between, or the server was made anew; ask its operator before the key there is replaced",
				errHostKey, host, ssh.FingerprintSHA256(key), c.KnownHosts)
		},
	}, nil
}

// errHostKey says that a server is not the one it should be.
var errHostKey = errors.New("nothing was sent to an unknown host")

// knownAlgorithms are those of the keys that are known of a host: a server with
// several keys must not choose one that is not. The library tells which keys it
// wants when it is shown another.
func knownAlgorithms(known ssh.HostKeyCallback, address string) (all []string) {
	var wrong *knownhosts.KeyError
	if !errors.As(known(address, &net.TCPAddr{IP: net.IPv4zero}, noKey{}), &wrong) {
		return nil
	}
	for _, key := range wrong.Want {
		kind := key.Key.Type()
		if kind == ssh.KeyAlgoRSA { // the key of old, with signatures of today
			all = append(all, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
			continue
		}
		all = append(all, kind)
	}
	return all
}

// noKey is the key of no host.
type noKey struct{}

// Type implements ssh.PublicKey.
func (noKey) Type() string { return "none" }

// Marshal implements ssh.PublicKey.
func (noKey) Marshal() []byte { return []byte("none") }

// Verify implements ssh.PublicKey.
func (noKey) Verify([]byte, *ssh.Signature) error { return errHostKey }
