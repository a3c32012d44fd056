// Package ftp is the archive that is a folder on an FTP server, in the clear
// or over TLS, explicit or implicit.
//
// The folder is listed recursively, with MLSD where the server has it and LIST
// where not. Data connections are passive and go to the host of the control
// connection, whatever address the server names. A few connections are kept
// and used again; one that has gone stale is noticed and replaced. A broken
// download goes on where it stopped, and a file that changes while it is read
// is noticed as far as SIZE and MDTM show it.
//
// With LIST, times are only as good as the server prints them: a minute for
// young files, a day for old ones, and taken to be UTC.
//
// Package ftp only reads, and knows nothing of the content of files.
package ftp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/textproto"
	"path"
	"strings"
	"time"

	"github.com/jlaffaye/ftp"

	"lacuna/fetch"
	"lacuna/internal/faults"
	"lacuna/internal/session"
)

// The values of Config.TLS.
const (
	Clear    = session.Clear
	Explicit = session.Explicit
	Implicit = session.Implicit
)

// Config is the place of the folder and the way to reach it.
type Config struct {
	Address     string             `yaml:"address"`     // host, or host:port
	TLS         string             `yaml:"tls"`         // none, explicit or implicit
	CAFile      string             `yaml:"ca_file"`     // PEM; trusted beside the authorities of the system
	User        string             `yaml:"user"`        // name of the login
	Password    fetch.SecretConfig `yaml:"password"`    // password of user
	Root        string             `yaml:"root"`        // folder to list
	Depth       int                `yaml:"depth"`       // folders below the root that are listed
	MaxObjects  int                `yaml:"max_objects"` // a listing with more entries is cut and is an error
	MLSD        bool               `yaml:"mlsd"`        // false: use LIST even where the server has MLSD
	EPSV        bool               `yaml:"epsv"`        // false: use PASV at once
	Connections int                `yaml:"connections"` // connections at a time, at most
	Idle        time.Duration      `yaml:"idle"`        // an unused connection is closed after this
	Timeout     time.Duration      `yaml:"timeout"`     // for an answer, and between two pieces of a file
}

// DefaultConfig returns the settings that hold where a file is silent.
func DefaultConfig() Config {
	return Config{
		TLS:         Clear,
		User:        "anonymous",
		Root:        "/",
		Depth:       6,       // mission, product, year, month or day of year, with one to spare
		MaxObjects:  200_000, // sixty years of nine products a day; more means a wrong root
		MLSD:        true,
		EPSV:        true,
		Connections: 4, // archives allow 5 to 30 from one address
		Idle:        time.Minute,
		Timeout:     30 * time.Second,
	}
}

// Validate reports everything wrong with c; messages begin with the key.
func (c Config) Validate() error {
	var errs faults.List
	errs.Check(c.Address != "" && !strings.ContainsAny(c.Address, "/@ \r\n"), "address is %q, must be a host or host:port", shownAddress(c.Address))
	errs.Check(c.TLS == Clear || c.TLS == Explicit || c.TLS == Implicit, "tls is %q, must be none, explicit or implicit", c.TLS)
	errs.Check(c.User != "" && !strings.ContainsAny(c.User, "\r\n"), "user is empty or has a line break")
	errs.Check(strings.HasPrefix(c.Root, "/") && !strings.ContainsAny(c.Root, "\r\n"), "root is %q, must begin with a slash", c.Root)
	errs.Check(c.Depth >= 0, "depth is %d, must not be negative", c.Depth)
	errs.Check(c.MaxObjects > 0, "max_objects is %d, must be positive", c.MaxObjects)
	errs.Check(c.Connections > 0, "connections is %d, must be positive", c.Connections)
	errs.Check(c.Idle > 0, "idle is %v, must be positive", c.Idle)
	errs.Check(c.Timeout > 0, "timeout is %v, must be positive", c.Timeout)
	if err := c.Password.Validate(); err != nil {
		errs.Add(fmt.Errorf("password: %w", err))
	}
	return errs.Err()
}

// shownAddress hides the part before an @, which may be a password.
func shownAddress(address string) string {
	if i := strings.LastIndex(address, "@"); i >= 0 {
		return "[redacted]" + address[i:]
	}
	return address
}

// Archive is a folder on an FTP server.
type Archive struct {
	cfg        Config
	host       string
	politeness fetch.Politeness
	pool       *session.Pool[*session.FTP]
	reach      func(ctx context.Context, network, address string) (net.Conn, error) // connects to the server; nil: over the network
}

// New returns the archive of cfg. It checks cfg and touches neither the network
// nor the disk.
func New(cfg Config, politeness fetch.Politeness) (*Archive, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("ftp config: %w", err)
	}
	cfg.Root = path.Clean(cfg.Root)
	a := &Archive{politeness: politeness}
	a.host, cfg.Address = session.HostPort(cfg.Address, session.FTPPort(cfg.TLS))
	a.cfg = cfg
	a.pool = session.NewPool(cfg.Connections, cfg.Idle, a.dial)
	return a, nil
}

// Close closes the connections that are idle. The archive can still be used.
func (a *Archive) Close() error {
	a.pool.CloseIdle()
	return nil
}

// List returns the files below the root. Folders that cannot be read make it an
// error, beside the files of the others.
func (a *Archive) List(ctx context.Context, scope fetch.Scope) (objects []fetch.Object, err error) {
	s, err := a.pool.Get(ctx)
	if err != nil {
		return nil, err
	}
	unbind := s.Bind(ctx)
	w := &walk{archive: a, session: s, scope: scope, bound: scope.Bound("max_objects", a.cfg.MaxObjects)}
	err = w.folder(ctx, "", 0)
	unbind()
	a.pool.Put(s, err == nil && ctx.Err() == nil)
	if ctx.Err() != nil {
		return w.objects, ctx.Err()
	}
	return w.objects, errors.Join(w.unread.Err(), err)
}

// walk is one recursive listing.
type walk struct {
	archive *Archive
	session *session.FTP
	scope   fetch.Scope
	objects []fetch.Object
	unread  fetch.Unread
	bound   *fetch.Bound
}

// folder lists a folder, a path below the root, and those below it. Its error
// means that the connection failed and no other folder can be listed.
func (w *walk) folder(ctx context.Context, name string, depth int) error {
	if err := w.archive.politeness.Pacer.Wait(ctx, w.archive.host); err != nil {
		return err
	}
	entries, err := w.entries(name)
	var refused *textproto.Error
	if name != "" && errors.As(err, &refused) && refused.Code == ftp.StatusFileUnavailable {
		w.unread.Add(err)
		return nil
	}
	if err != nil && !errors.Is(err, fetch.ErrUnacceptable) {
		return err
	}
	cut := err
	var folders []string
	for _, e := range entries {
		if e.Name == "." || e.Name == ".." {
			continue
		}
		if err := w.bound.Entry(); err != nil {
			return err
		}
		below := path.Join(name, e.Name)
		switch {
		case e.Name == "" || strings.Contains(e.Name, "/"):
		case fetch.Unfinished(e.Name):
		case e.Type == ftp.EntryTypeFolder && w.scope.Reaches(below):
			if depth >= w.archive.cfg.Depth {
				w.unread.Add(fmt.Errorf("folder %s lies deeper than depth %d", below, w.archive.cfg.Depth))
				continue
			}
			folders = append(folders, below)
		case e.Type != ftp.EntryTypeFolder && w.scope.Holds(below) && (cut == nil || e.Type != ftp.EntryTypeLink):
			w.file(below, e)
		}
	}
	if cut != nil {
		return cut // the connection is in the middle of an answer
	}
	for _, below := range folders {
		if err := w.folder(ctx, below, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// entries lists one folder from within: servers take the argument of LIST for
// a pattern or an option, and show a missing folder as an empty one.
func (w *walk) entries(name string) ([]*ftp.Entry, error) {
	folder := w.archive.at(name)
	if err := w.session.Conn.ChangeDir(folder); err != nil {
		return nil, fmt.Errorf("enter folder %s: %w", folder, session.NoEOF(err))
	}
	// The library reads all of an answer before it hands anything on, so the
	// bound is set on its connection.
	lines := newLineBound(w.bound)
	w.session.Data = lines.wrap
	entries, err := w.session.Conn.List("")
	w.session.Data = nil
	switch {
	case lines.err != nil:
		return entries, fmt.Errorf("list folder %s: %w", folder, lines.err)
	case err != nil:
		return nil, fmt.Errorf("list folder %s: %w", folder, session.NoEOF(err))
	}
	return entries, nil
}

// file adds a file to the listing. A link counts as the file it points at; one
// to a folder is not followed, for it may form a ring.
func (w *walk) file(name string, e *ftp.Entry) {
	o := fetch.Object{Name: name, Size: int64(e.Size), ModTime: e.Time.UTC()}
	if e.Type == ftp.EntryTypeLink {
		size, err := w.session.Conn.FileSize(w.archive.at(name))
		if err != nil {
			return
		}
		o.Size = size
	}
	w.objects = append(w.objects, o)
}

// at returns the path of an object on the server.
func (a *Archive) at(name string) string {
	if name == "" {
		return a.cfg.Root
	}
	return strings.TrimRight(a.cfg.Root, "/") + "/" + name
}
