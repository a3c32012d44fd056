package ftp

import (
	"context"
	"fmt"
	"net"
	"strings"
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
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			f.Fatal(err)
		}
		f.Cleanup(func() { listener.Close() })
		server := &flood{Listener: listener, mlsd: mlsd, send: func(conn net.Conn) {
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
