package ftp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"strings"
	"sync"
	"time"

	"github.com/jlaffaye/ftp"

	"lacuna/fetch"
	"lacuna/fetch/web"
)

// dialTimeout bounds connecting: three retransmissions of a lost packet.
const dialTimeout = 10 * time.Second

// session is a control connection that is logged in. One goroutine uses it at
// a time; interrupt may come from another.
type session struct {
	conn    *ftp.ServerConn
	precise bool // listings show seconds
	control string
	trust   *tls.Config // nil: in the clear
	cfg     Config
	ctx     context.Context // context of the call that uses the session: the library makes data connections without one
	bound   *lineBound      // bound of the listing under way; nil: none

	mu   sync.Mutex // guards raw and dead
	raw  map[net.Conn]struct{}
	dead bool
}

// dial connects and logs in.
func (a *Archive) dial(ctx context.Context) (*session, error) {
	if err := a.politeness.Pacer.Wait(ctx, a.host); err != nil {
		return nil, err
	}
	password, err := a.cfg.Password.Load()
	if err != nil {
		return nil, fmt.Errorf("%w: password: %w", fetch.ErrPermanent, err)
	}
	sent := password
	if password == "" {
		sent = "lacuna@" // anonymous logins take any address; servers check for the sign
	}
	s := &session{cfg: a.cfg, raw: map[net.Conn]struct{}{}}
	if a.cfg.TLS != Clear {
		if s.trust, err = web.TLS(a.cfg.CAFile); err != nil {
			return nil, err
		}
		s.trust.ServerName = a.host
		s.trust.ClientSessionCache = tls.NewLRUClientSessionCache(0) // servers want data connections to resume the session
	}
	defer s.bind(ctx)()
	if s.conn, err = ftp.Dial(a.cfg.Address, s.options()...); err != nil {
		return nil, s.failed(ctx, fmt.Errorf("connect to %s: %w", a.cfg.Address, noEOF(err)), password)
	}
	if err := s.conn.Login(a.cfg.User, sent.Reveal()); err != nil {
		return nil, s.failed(ctx, fmt.Errorf("log in at %s: %w", a.cfg.Address, refused(noEOF(err))), password)
	}
	s.precise = s.conn.IsTimePreciseInList()
	return s, nil
}

// failed gives the session up and returns err without the secrets.
func (s *session) failed(ctx context.Context, err error, password fetch.Secret) error {
	s.interrupt()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fetch.Scrub(err, password)
}

// bareText is the type of an error that is a text and nothing else.
const bareText = "*errors.errorString"

// refused marks a login that will not succeed next time either. Servers that
// are full use the same code.
func refused(err error) error {
	text := strings.ToLower(err.Error())
	for _, passing := range []string{"maximum", "too many", "later", "unavailable", "timeout", "tls:"} {
		if strings.Contains(text, passing) {
			return err
		}
	}
	var told *textproto.Error
	switch {
	case errors.As(err, &told):
		if told.Code != ftp.StatusNotLoggedIn && told.Code != ftp.StatusInvalidCredentials {
			return err
		}
	case fmt.Sprintf("%T", err) != bareText, errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return err
	}
	// The other cases are the two codes, or the bare text of the library for a
	// user that was refused before the password.
	return fmt.Errorf("%w: %w; correct user and password", fetch.ErrPermanent, err)
}

func (s *session) options() []ftp.DialOption {
	options := []ftp.DialOption{
		ftp.DialWithDialFunc(s.connect),
		ftp.DialWithDisabledEPSV(!s.cfg.EPSV),
		ftp.DialWithDisabledMLSD(!s.cfg.MLSD),
		ftp.DialWithShutTimeout(s.cfg.Timeout),
	}
	switch s.cfg.TLS {
	case Explicit:
		options = append(options, ftp.DialWithExplicitTLS(s.trust))
	case Implicit:
		options = append(options, ftp.DialWithTLS(s.trust))
	}
	return options
}

// connect makes the control connection when it is called first, and data
// connections afterwards, which always go to the same host.
func (s *session) connect(network, address string) (net.Conn, error) {
	isControl := s.control == ""
	if !isControl {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		address = net.JoinHostPort(s.control, port)
	}
	plain, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(s.ctx, network, address)
	if err != nil {
		return nil, err
	}
	conn := &timedConn{Conn: plain, session: s, timeout: s.cfg.Timeout, control: isControl}
	if !s.keep(conn) {
		plain.Close()
		return nil, context.Cause(s.ctx)
	}
	if isControl {
		s.control, _, _ = net.SplitHostPort(plain.RemoteAddr().String())
	}
	switch {
	case isControl && s.cfg.TLS == Implicit:
		return tls.Client(conn, s.trust), nil
	case isControl:
		return conn, nil
	}
	var data net.Conn = conn
	if s.cfg.TLS != Clear {
		data = lenientConn{tls.Client(conn, s.trust)}
	}
	if s.bound != nil {
		data = &boundConn{Conn: data, src: s.bound.of.Reader(data), lines: s.bound}
	}
	return data, nil
}

// keep remembers a connection, unless the session has been given up.
func (s *session) keep(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.dead {
		s.raw[conn] = struct{}{}
	}
	return !s.dead
}

// bind makes the end of ctx interrupt the session until the returned function
// is called.
func (s *session) bind(ctx context.Context) (unbind func()) {
	s.ctx = ctx
	stop := context.AfterFunc(ctx, s.interrupt)
	return func() { stop() }
}

// interrupt ends all transfers of the session, for good.
func (s *session) interrupt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead = true
	for conn := range s.raw {
		_ = conn.(*timedConn).Conn.Close()
	}
	clear(s.raw)
}

// quit says goodbye and closes.
func (s *session) quit() {
	_ = s.conn.Quit()
	s.interrupt()
}

// maxAnswerBytes bounds the answer to one command: the longest greetings have
// some kilobytes, and the library keeps all of a line.
const maxAnswerBytes = 256 << 10

// timedConn is a connection on which nothing waits for ever, and a control
// connection on which no answer is endless.
type timedConn struct {
	net.Conn
	session *session
	timeout time.Duration
	control bool
	answer  int // bytes of the answer under way, on a control connection
}

// Read reads, or fails after the timeout.
func (c *timedConn) Read(p []byte) (int, error) {
	if c.control && c.answer > maxAnswerBytes {
		return 0, fmt.Errorf("%w: an answer has more than %d bytes", fetch.ErrUnacceptable, maxAnswerBytes)
	}
	if err := c.SetReadDeadline(time.Now().Add(c.timeout)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(p)
	c.answer += n
	return n, err
}

// Write writes, or fails after the timeout.
func (c *timedConn) Write(p []byte) (int, error) {
	c.answer = 0
	if err := c.SetWriteDeadline(time.Now().Add(c.timeout)); err != nil {
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
