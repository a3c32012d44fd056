package ftp

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"lacuna/fetch"
	"lacuna/fetch/archivetest"
)

// flood is a server whose folder has as many entries as anybody reads. It
// answers only the commands of a listing.
type flood struct {
	net.Listener
	mlsd   bool
	line   func(i int) string
	send   func(conn net.Conn)          // takes precedence over line; may be nil
	answer func(command string) string  // takes precedence over the usual answers; may be nil
	listen func() (net.Listener, error) // for data connections; nil: on the loopback network
}

func newFlood(t *testing.T, mlsd bool, line func(i int) string) *flood {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { listener.Close() })
	return &flood{Listener: listener, mlsd: mlsd, line: line}
}

func (f *flood) serve() {
	for {
		conn, err := f.Accept()
		if err != nil {
			return
		}
		go f.talk(conn)
	}
}

// talk answers the commands on one control connection.
func (f *flood) talk(conn net.Conn) {
	defer conn.Close()
	listen := f.listen
	if listen == nil {
		listen = func() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") }
	}
	data, err := listen()
	if err != nil {
		return
	}
	defer data.Close()
	say := func(text string) { fmt.Fprint(conn, text+"\r\n") }
	say("220 ready")
	for commands := bufio.NewScanner(conn); commands.Scan(); {
		command, _, _ := strings.Cut(commands.Text(), " ")
		if f.answer != nil {
			if text := f.answer(command); text != "" {
				say(text)
				continue
			}
		}
		switch command {
		case "CWD":
			say("250 entered")
		case "USER":
			say("331 and the password")
		case "PASS":
			say("230 welcome")
		case "FEAT":
			if f.mlsd {
				say("211-Features\r\n MLST type*;size*;modify*;\r\n211 End")
			} else {
				say("502 none")
			}
		case "EPSV":
			_, port, _ := net.SplitHostPort(data.Addr().String())
			say("229 Entering Extended Passive Mode (|||" + port + "|)")
		case "MLSD", "LIST":
			say("150 here it comes")
			f.pour(data)
			say("226 done")
		default:
			say("200 fine")
		}
	}
}

// pour sends entries until nobody reads them.
func (f *flood) pour(data net.Listener) {
	conn, err := data.Accept()
	if err != nil {
		return
	}
	defer conn.Close()
	if f.send != nil {
		f.send(conn)
		return
	}
	out := bufio.NewWriter(conn)
	for i := range archivetest.Many {
		if _, err := out.WriteString(f.line(i)); err != nil {
			return
		}
	}
	_ = out.Flush()
}

func (f *flood) config() Config {
	cfg := DefaultConfig()
	cfg.Address, cfg.MaxObjects, cfg.Timeout = f.Addr().String(), 1000, 5*time.Second
	return cfg
}

func TestListingOfTenMillionEntriesIsBoundedWhileItIsRead(t *testing.T) {
	for name, tt := range map[string]struct {
		mlsd bool
		line func(i int) string
	}{
		"MLSD":                      {true, func(i int) string { return fmt.Sprintf("type=file;size=5;modify=20240517120000; %d.nc\r\n", i) }},
		"LIST":                      {false, func(i int) string { return fmt.Sprintf("-rw-r--r-- 1 ftp ftp 5 May 17 2024 %d.nc\r\n", i) }},
		"MLSD of folders":           {true, func(i int) string { return fmt.Sprintf("type=dir;modify=20240517120000; %d\r\n", i) }},
		"lines that are no entries": {true, func(int) string { return "\r\n" }},
		"the same folder always":    {true, func(int) string { return "type=cdir;modify=20240517120000; .\r\n" }},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFlood(t, tt.mlsd, tt.line)
			go f.serve()
			archivetest.CheckBounded(t, open(t, f.config()), "max_objects", 1000)
		})
	}
}

func TestAnswerWithoutEndIsCut(t *testing.T) {
	f := newFlood(t, true, nil)
	f.answer = func(command string) string {
		if command == "CWD" {
			return "250 " + strings.Repeat("w", 64<<20)
		}
		return ""
	}
	go f.serve()
	if _, err := open(t, f.config()).List(t.Context(), fetch.Scope{}); !errors.Is(err, fetch.ErrUnacceptable) {
		t.Errorf("List() = %v, want that the answer is too long", err)
	}
}
