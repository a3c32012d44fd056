package push

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/textproto"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/jlaffaye/ftp"

	"lacuna/internal/session"
	"lacuna/publish"
)

// NewFTP returns the sink of a folder on an FTP server. It touches nothing;
// Publish does.
func NewFTP(cfg FTPConfig, folders publish.Folders) (*Sink, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("ftp config: %w", err)
	}
	name := cfg.Name()
	host, address := session.HostPort(cfg.Address, session.FTPPort(cfg.TLS))
	cfg.Address, cfg.Root = address, path.Clean(cfg.Root)
	return newSink(name, cfg.Config, folders, func(ctx context.Context) (server, error) { return dialFTP(ctx, cfg, host) }), nil
}

// errEndless says that a server talks without end.
var errEndless = errors.New("this is no FTP server that can be delivered to")

func dialFTP(ctx context.Context, cfg FTPConfig, host string) (server, error) {
	password, err := cfg.password()
	if err != nil {
		return nil, err
	}
	link := session.FTPConfig{Address: cfg.Address, Mode: cfg.TLS, EPSV: cfg.EPSV, MLSD: true, Timeout: cfg.Timeout, Oversize: errEndless}
	if cfg.TLS != session.Clear {
		if link.Trust, err = session.TLS(cfg.CAFile); err != nil {
			return nil, err
		}
		link.Trust.ServerName = host
		link.Trust.ClientSessionCache = tls.NewLRUClientSessionCache(0) // servers want data connections to resume the session
	}
	s, err := session.DialFTP(ctx, link, func(conn *ftp.ServerConn) error {
		if err := conn.Login(cfg.User, password); err != nil {
			return fmt.Errorf("log in at %s as %s: %w; mend user and password, if the server says so", cfg.Address, cfg.User, session.NoEOF(err))
		}
		return nil
	})
	if err != nil {
		return nil, scrub(err, password)
	}
	return ftpServer{s}, nil
}

// ftpServer is a server that speaks FTP.
type ftpServer struct{ *session.FTP }

func (s ftpServer) size(name string) (int64, error) {
	size, err := s.Conn.FileSize(name)
	if told(err, ftp.StatusBadCommand, ftp.StatusNotImplemented) {
		return s.sizeInListing(name)
	}
	return size, absent(err)
}

// sizeInListing asks a server for a size that has no command for it.
func (s ftpServer) sizeInListing(name string) (int64, error) {
	entries, err := s.entries(path.Dir(name))
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		if e.Name == path.Base(name) && e.Type != ftp.EntryTypeFolder {
			return int64(e.Size), nil
		}
	}
	return 0, fs.ErrNotExist
}

func (s ftpServer) read(name string, offset int64) (io.ReadCloser, error) {
	r, err := s.Conn.RetrFrom(name, uint64(offset))
	if offset > 0 && unsupported(err) {
		if r, err = s.Conn.Retr(name); err == nil {
			_, err = io.CopyN(io.Discard, r, offset)
		}
	}
	if told(err, ftp.StatusFileUnavailable) {
		return nil, fmt.Errorf("%w: %w", errRefused, err)
	}
	if err != nil {
		return nil, session.NoEOF(err)
	}
	return r, nil
}

func (s ftpServer) write(name string, content io.ReadSeeker, offset int64) (int64, error) {
	if _, err := content.Seek(offset, io.SeekStart); err != nil {
		return 0, err
	}
	err := s.Conn.StorFrom(name, content, uint64(offset))
	if offset == 0 || !unsupported(err) {
		return offset, full(err)
	}
	// The server has no REST for uploads. APPE writes at the end of what is there.
	if size, err := s.size(name); err != nil {
		return 0, err
	} else if size == offset {
		return offset, full(s.Conn.Append(name, content))
	}
	if err := s.remove(name); err != nil {
		return 0, err
	}
	return s.write(name, content, 0)
}

// full adds the remedy where a server has no room.
func full(err error) error {
	if told(err, ftp.StatusExceededStorage, statusNoRoom) || err != nil && strings.Contains(err.Error(), syscall.ENOSPC.Error()) {
		return fmt.Errorf("the server has no room left: %w; free some there, the upload goes on where it stopped", err)
	}
	return session.NoEOF(err)
}

// statusNoRoom is the answer of a server whose disk is full.
const statusNoRoom = 452

// rename renames. Some servers refuse to do so over a file: there the old one
// steps aside, and receivers see none for a moment.
func (s ftpServer) rename(from, to string) error {
	err := s.Conn.Rename(from, to)
	var answer *textproto.Error
	if !errors.As(err, &answer) {
		return session.NoEOF(err)
	}
	if _, none := s.size(to); none != nil {
		return err
	}
	if err := s.remove(aside(to)); err != nil {
		return err
	}
	if err := s.Conn.Rename(to, aside(to)); err != nil {
		return session.NoEOF(err)
	}
	if err := s.Conn.Rename(from, to); err != nil {
		return session.NoEOF(err)
	}
	return s.remove(aside(to))
}

func (s ftpServer) remove(name string) error {
	err := s.Conn.Delete(name)
	if !told(err, ftp.StatusFileUnavailable) {
		return session.NoEOF(err)
	}
	if _, there := s.size(name); errors.Is(there, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (s ftpServer) makeFolder(name string) error {
	if s.Conn.ChangeDir(name) == nil {
		return nil
	}
	return session.NoEOF(s.Conn.MakeDir(name))
}

func (s ftpServer) list(folder string) ([]entry, error) {
	all, err := s.entries(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var entries []entry
	for _, e := range all {
		if e.Name != "." && e.Name != ".." && e.Name != "" {
			entries = append(entries, entry{name: e.Name, folder: e.Type == ftp.EntryTypeFolder, time: s.latest(e.Time)})
		}
	}
	return entries, err
}

// latest returns the latest time that a listing may mean: LIST prints only the day
// of an older file.
func (s ftpServer) latest(listed time.Time) time.Time {
	const day = 24 * time.Hour
	if !s.Conn.IsTimePreciseInList() && listed.Equal(listed.Truncate(day)) {
		return listed.Add(day)
	}
	return listed
}

// entries lists a folder from within: servers take the argument of LIST for a
// pattern or an option.
func (s ftpServer) entries(folder string) ([]*ftp.Entry, error) {
	if err := s.Conn.ChangeDir(folder); err != nil {
		return nil, absent(err)
	}
	all, err := s.Conn.List("")
	return all, session.NoEOF(err)
}

// told reports whether err is one of some answers of a server.
func told(err error, codes ...int) bool {
	var answer *textproto.Error
	if !errors.As(err, &answer) {
		return false
	}
	for _, code := range codes {
		if answer.Code == code {
			return true
		}
	}
	return false
}

// unsupported reports whether a server does not know a command.
func unsupported(err error) bool {
	return told(err, ftp.StatusBadCommand, ftp.StatusBadArguments, ftp.StatusNotImplemented, ftp.StatusNotImplementedParameter, ftp.StatusBadSequence)
}

// absent adds fs.ErrNotExist to the answer for a missing file.
func absent(err error) error {
	if told(err, ftp.StatusFileUnavailable) {
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return session.NoEOF(err)
}
