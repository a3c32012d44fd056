package ftp

import (
	"bytes"
	"errors"
	"io"
	"net"

	"lacuna/fetch"
)

// lineBound bounds the lines of the listing of one folder, which are counted
// before the library has made entries of them.
type lineBound struct {
	of   *fetch.Bound
	left int
	err  error // set once the bound is reached
}

// spareLines is the number of lines that are not entries of a folder: the
// folder itself, its parent, and the total with which LIST begins.
const spareLines = 3

func newLineBound(of *fetch.Bound) *lineBound {
	return &lineBound{of: of, left: of.Left() + spareLines}
}

// wrap puts the bound on a data connection.
func (b *lineBound) wrap(data net.Conn) net.Conn {
	return &boundConn{Conn: data, src: b.of.Reader(data), lines: b}
}

// boundConn is a data connection that fails where a listing is longer than its
// bound.
type boundConn struct {
	net.Conn
	src   io.Reader // Conn, bounded in bytes
	lines *lineBound
}

// Read reads on and counts.
func (c *boundConn) Read(p []byte) (int, error) {
	if c.lines.left < 0 {
		c.lines.err = c.lines.of.Full()
		return 0, c.lines.err
	}
	n, err := c.src.Read(p)
	c.lines.left -= bytes.Count(p[:n], []byte{'\n'})
	if errors.Is(err, fetch.ErrUnacceptable) {
		c.lines.err = err
	}
	return n, err
}
