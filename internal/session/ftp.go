package session

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/jlaffaye/ftp"
)

// How a connection is encrypted.
const (
	Clear    = "none"
	Explicit = "explicit" // AUTH TLS on the plain port
	Implicit = "implicit" // TLS from the first byte, port 990
)

// dialTimeout bounds connecting: three retransmissions of a lost packet.
const dialTimeout = 10 * time.Second

// FTPConfig is the way to an FTP server.
type FTPConfig struct {
	Address  string        // host:port
	Mode     string        // Clear, Explicit or Implicit
	Trust    *tls.Config   // with the name of the server; nil in the clear
	EPSV     bool          // false: use PASV at once
	MLSD     bool          // false: use LIST even where the server has MLSD
	Timeout  time.Duration // for an answer, and between two pieces of a file
	Oversize error         // wrapped where an answer has no end
	// Dial connects to a server; nil: over the network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// HostPort returns the host of an address and the address with its port, which
// may be left out.
func HostPort(address, port string) (host, full string) {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host, address
	}
	host = trimBrackets(address)
	return host, net.JoinHostPort(host, port)
}

func trimBrackets(host string) string {
	if len(host) > 1 && host[0] == '[' && host[len(host)-1] == ']' {
		return host[1 : len(host)-1]
	}
	return host
}

// FTPPort returns the usual port of a mode of encryption.
func FTPPort(mode string) string {
	if mode == Implicit {
		return "990"
	}
	return "21"
}

// FTP is the control connection of an FTP server. Data connections are passive
// and go to the same host, whatever address the server names. Nothing on it waits
// for ever, and no answer is endless.
type FTP struct {
	Conn *ftp.ServerConn
	// Data may wrap the data connections that are made from now on; nil: as they
	// are.
	Data func(net.Conn) net.Conn

	control string
	cfg     FTPConfig
	ctx     context.Context // context of the call that uses the session: the library makes data connections without one

	mu   sync.Mutex // guards raw and dead
	raw  map[net.Conn]struct{}
	dead bool
}

// DialFTP connects to a server, and logs in.
func DialFTP(ctx context.Context, cfg FTPConfig, login func(*ftp.ServerConn) error) (*FTP, error) {
	s := &FTP{cfg: cfg, raw: map[net.Conn]struct{}{}}
	defer s.Bind(ctx)()
	err := s.connectFTP()
	if err == nil {
		err = login(s.Conn)
	}
	if err != nil {
		s.Interrupt()
	}
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return s, err
}

func (s *FTP) connectFTP() (err error) {
	if s.Conn, err = ftp.Dial(s.cfg.Address, s.options()...); err != nil {
		return fmt.Errorf("connect to %s: %w", s.cfg.Address, NoEOF(err))
	}
	return nil
}

// NoEOF makes the end of a connection an error that nobody takes for the end of
// a file.
func NoEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("connection closed: %w", io.ErrUnexpectedEOF)
	}
	return err
}

func (s *FTP) options() []ftp.DialOption {
	options := []ftp.DialOption{
		ftp.DialWithDialFunc(s.connect),
		ftp.DialWithDisabledEPSV(!s.cfg.EPSV),
		ftp.DialWithDisabledMLSD(!s.cfg.MLSD),
		ftp.DialWithShutTimeout(s.cfg.Timeout),
	}
	switch s.cfg.Mode {
	case Explicit:
		options = append(options, ftp.DialWithExplicitTLS(s.cfg.Trust))
	case Implicit:
		options = append(options, ftp.DialWithTLS(s.cfg.Trust))
	}
	return options
}

// connect makes the control connection when it is called first, and data
// connections afterwards, which always go to the same host.
func (s *FTP) connect(network, address string) (net.Conn, error) {
	isControl := s.control == ""
	if !isControl {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		address = net.JoinHostPort(s.control, port)
	}
	dial := s.cfg.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	plain, err := dial(s.ctx, network, address)
	if err != nil {
		return nil, err
	}
	conn := &timedConn{Conn: plain, session: s, control: isControl}
	if !s.keep(conn) {
		plain.Close()
		return nil, context.Cause(s.ctx)
	}
	if isControl {
		s.control, _, _ = net.SplitHostPort(plain.RemoteAddr().String())
	}
	switch {
	case isControl && s.cfg.Mode == Implicit:
		return tls.Client(conn, s.cfg.Trust), nil
	case isControl:
		return conn, nil
	}
	var data net.Conn = conn
	if s.cfg.Mode != Clear {
		data = lenientConn{tls.Client(conn, s.cfg.Trust)}
	}
	if s.Data != nil {
		data = s.Data(data)
	}
	return data, nil
}

// keep remembers a connection, unless the session has been given up.
func (s *FTP) keep(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.dead {
		s.raw[conn] = struct{}{}
	}
	return !s.dead
}

// Bind makes the end of ctx interrupt the session until the returned function
// is called.
func (s *FTP) Bind(ctx context.Context) (unbind func()) {
	s.ctx = ctx
	stop := context.AfterFunc(ctx, s.Interrupt)
	return func() { stop() }
}

// Alive implements Session.
func (s *FTP) Alive(ctx context.Context) error {
	defer s.Bind(ctx)()
	return s.Conn.NoOp()
}

// Interrupt implements Session.
func (s *FTP) Interrupt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead = true
	for conn := range s.raw {
		_ = conn.(*timedConn).Conn.Close()
	}
	clear(s.raw)
}

// Quit implements Session.
func (s *FTP) Quit() {
	_ = s.Conn.Quit()
	s.Interrupt()
}

// maxAnswerBytes bounds the answer to one command: the longest greetings have
// some kilobytes, and the library keeps all of a line.
const maxAnswerBytes = 256 << 10

// timedConn is a connection on which nothing waits for ever, and a control
// connection on which no answer is endless.
type timedConn struct {
	net.Conn
	session *FTP
	control bool
	answer  int // bytes of the answer under way, on a control connection
}

// Read reads, or fails after the timeout.
func (c *timedConn) Read(p []byte) (int, error) {
	if c.control && c.answer > maxAnswerBytes {
		return 0, fmt.Errorf("%w: an answer has more than %d bytes", c.session.cfg.Oversize, maxAnswerBytes)
	}
	if err := c.SetReadDeadline(time.Now().Add(c.session.cfg.Timeout)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(p)
	c.answer += n
	return n, err
}

// Write writes, or fails after the timeout.
func (c *timedConn) Write(p []byte) (int, error) {
	c.answer = 0
	if err := c.SetWriteDeadline(time.Now().Add(c.session.cfg.Timeout)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// Close closes the connection and forgets it.
func (c *timedConn) Close() error {
	c.session.mu.Lock()
	delete(c.session.raw, c)
	c.session.mu.Unlock()
	return c.Conn.Close()
}

// lenientConn is a data connection over TLS whose server may hang up without a
// close notification. The control connection and the length tell whether all
// bytes came.
type lenientConn struct{ *tls.Conn }

// Read reads on.
func (c lenientConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return n, io.EOF
	}
	return n, err
}
