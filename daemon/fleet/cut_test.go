package fleet

import (
	"context"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// cutConn is a connection over which nothing comes while it is cut.
type cutConn struct {
	net.Conn
	cut      *atomic.Bool
	deadline atomic.Int64
}

func (c *cutConn) hold() error {
	for c.cut.Load() {
		if d := c.deadline.Load(); d > 0 && time.Now().UnixNano() > d {
			return os.ErrDeadlineExceeded
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil
}

func (c *cutConn) SetReadDeadline(t time.Time) error {
	c.deadline.Store(t.UnixNano())
	return c.Conn.SetReadDeadline(t)
}

func (c *cutConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	return n, errors.Join(c.hold(), err)
}

func (c *cutConn) Write(p []byte) (int, error) {
	if err := c.hold(); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// cutDialer connects unless a file is there.
func cutDialer(file string) func(context.Context, string, string) (net.Conn, error) {
	var cut atomic.Bool
	go func() {
		for ; ; time.Sleep(20 * time.Millisecond) {
			_, err := os.Stat(file)
			cut.Store(err == nil)
		}
	}()
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if cut.Load() {
			return nil, errors.New("the network is cut")
		}
		conn, err := (&net.Dialer{Timeout: 2 * time.Second}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &cutConn{Conn: conn, cut: &cut}, nil
	}
}
