package ftp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"lacuna/fetch"
)

// FuzzListing lets a server answer with arbitrary bytes: the listing ends, has no
// more objects than are asked for, and each lies below the root.
func FuzzListing(f *testing.F) {
	f.Add(true, "type=file;size=5;modify=20240517120000; a.nc\r\ntype=dir;modify=20240517120000; 2024\r\n")
	f.Add(false, "total 5\r\n-rw-r--r-- 1 ftp ftp 5 May 17 2024 a.nc\r\nlrwxrwxrwx 1 ftp ftp 5 May 17 2024 l.nc -> a.nc\r\ndrwxr-xr-x 2 ftp ftp 4096 Jan  1 12:00 2024\r\n")
	f.Add(false, "05-17-24  12:00PM  5 a.nc\r\n+i8388621.29609,m824255902,/,\tdev\r\n")
	f.Add(true, "type=file;size=-1;modify=x; ../b.nc\r\n;;; \r\nsize=99999999999999999999; c\r\n")
	const most = 8
	content := make(chan string, 1)
	archives := map[bool]*Archive{}
	for _, mlsd := range []bool{true, false} {
		network := &memory{}
		listener, err := network.Listen()
		if err != nil {
			f.Fatal(err)
		}
		f.Cleanup(func() { listener.Close() })
		server := &flood{Listener: listener, listen: network.Listen, mlsd: mlsd, send: func(conn net.Conn) {
			select {
			case text := <-content:
				fmt.Fprint(conn, text)
			default: // a folder below has nothing
			}
		}}
		go server.serve()
		cfg := server.config()
		cfg.MaxObjects, cfg.Timeout = most, 2*time.Second
		if archives[mlsd], err = New(cfg, fetch.Politeness{}); err != nil {
			f.Fatal(err)
		}
		archives[mlsd].reach = network.Dial
	}
	f.Fuzz(func(t *testing.T, mlsd bool, listing string) {
		select {
		case <-content: // left by a connection that broke
		default:
		}
		content <- listing
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		objects, err := archives[mlsd].List(ctx, fetch.Scope{})
		if ctx.Err() != nil {
			t.Fatalf("the listing does not end: %v", err)
		}
		if len(objects) > most {
			t.Errorf("%d objects were listed, at most %d are asked for", len(objects), most)
		}
		for _, o := range objects {
			if o.Name == "" || strings.Contains(o.Name, "..") && strings.Contains("/"+o.Name+"/", "/../") || fetch.Unfinished(o.Name) {
				t.Errorf("the listing has %q", o.Name)
			}
		}
	})
}

// memory is a network within this process: a listing that crosses it costs a tenth of
// one that crosses that of the kernel.
type memory struct {
	mu        sync.Mutex
	listeners []*ear // the port of each is its place, from 1
}

// backlog is how many connections wait to be accepted: a client makes that for the
// data before it asks for them.
const backlog = 16

// ear is a listener of a memory.
type ear struct {
	port   int
	calls  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (m *memory) Listen() (net.Listener, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := &ear{port: len(m.listeners) + 1, calls: make(chan net.Conn, backlog), closed: make(chan struct{})}
	for i, old := range m.listeners {
		select {
		case <-old.closed: // its port is free again
			e.port = i + 1
			m.listeners[i] = e
			return e, nil
		default:
		}
	}
	m.listeners = append(m.listeners, e)
	return e, nil
}

func (m *memory) Dial(ctx context.Context, _, address string) (net.Conn, error) {
	_, text, err := net.SplitHostPort(address)
	port, bad := strconv.Atoi(text)
	m.mu.Lock()
	if bad != nil || port < 1 || port > len(m.listeners) {
		m.mu.Unlock()
		return nil, errors.Join(err, bad, fmt.Errorf("nobody listens on %s", address))
	}
	e := m.listeners[port-1]
	m.mu.Unlock()
	ours, theirs := net.Pipe()
	select {
	case e.calls <- theirs:
		return located{ours, e.Addr()}, nil
	case <-e.closed:
		return nil, fmt.Errorf("nobody listens on %s any more", address)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (e *ear) Accept() (net.Conn, error) {
	select {
	case c := <-e.calls:
		return c, nil
	case <-e.closed:
		return nil, net.ErrClosed
	}
}

func (e *ear) Close() error { e.once.Do(func() { close(e.closed) }); return nil }

func (e *ear) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: e.port} }

// located is a connection to somewhere.
type located struct {
	net.Conn
	to net.Addr
}

func (l located) RemoteAddr() net.Addr { return l.to }
