package push

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"lacuna/publish"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
)

// NewSFTP returns the sink of a folder on an SSH server. It touches nothing;
// Publish does.
func NewSFTP(cfg SFTPConfig, folders publish.Folders) (*Sink, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("sftp config: %w", err)
	}
	return newSink(cfg.Name(), cfg.Config, folders, func(ctx context.Context) (server, error) { return dialSFTP(ctx, cfg) }), nil
}

// sftpServer is a server that speaks SFTP.
type sftpServer struct {
	*line
	client *sftp.Client
}

func dialSFTP(ctx context.Context, cfg SFTPConfig) (server, error) {
	login, password, err := cfg.login()
	if err != nil {
		return nil, err
	}
	l, err := dialLine(ctx, cfg, login)
	if err != nil {
		return nil, scrub(err, password)
	}
	defer l.Bind(ctx)()
	// Pieces that are sent at once may leave holes where the line is cut. They are
	// found when an upload is read back, and only then.
	client, err := sftp.NewClient(l.ssh, sftp.UseConcurrentWrites(cfg.Verify == ByContent))
	if err != nil {
		l.Interrupt()
		return nil, fmt.Errorf("begin SFTP at %s: %w; the server must offer it to %s", cfg.Address, err, cfg.User)
	}
	return sftpServer{l, client}, nil
}

// Alive implements session.Session.
func (s sftpServer) Alive(ctx context.Context) error {
	defer s.Bind(ctx)()
	_, err := s.client.RealPath(".")
	return err
}

// Quit implements session.Session.
func (s sftpServer) Quit() {
	_ = s.client.Close()
	s.Interrupt()
}

func (s sftpServer) size(name string) (int64, error) {
	info, err := s.client.Stat(name)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (s sftpServer) read(name string, offset int64) (io.ReadCloser, error) {
	f, err := s.client.Open(name)
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("%w: %w", errRefused, err)
	}
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (s sftpServer) write(name string, content io.ReadSeeker, offset int64) (int64, error) {
	if _, err := content.Seek(offset, io.SeekStart); err != nil {
		return 0, err
	}
	f, err := s.client.OpenFile(name, os.O_WRONLY|os.O_CREATE)
	if err != nil {
		return 0, err
	}
	if _, err = f.Seek(offset, io.SeekStart); err == nil {
		_, err = f.ReadFrom(content)
	}
	if err == nil {
		err = s.sync(f)
	}
	err = errors.Join(err, f.Close())
	var status *sftp.StatusError
	if errors.As(err, &status) && status.FxCode() == sftp.ErrSSHFxFailure {
		err = fmt.Errorf("%w; the server does not say why: look whether its disk is full, the upload goes on where it stopped", err)
	}
	return offset, err
}

// sync has the server bring a file to its disk, where it knows how to.
func (s sftpServer) sync(f *sftp.File) error {
	if _, ok := s.client.HasExtension("fsync@openssh.com"); !ok {
		return nil
	}
	return f.Sync()
}

// rename renames. Where the server cannot do so over a file, the old one steps
// aside, and receivers see none for a moment.
func (s sftpServer) rename(from, to string) error {
	if _, ok := s.client.HasExtension("posix-rename@openssh.com"); ok {
		return s.client.PosixRename(from, to)
	}
	if err := s.remove(aside(to)); err != nil {
		return err
	}
	if err := s.client.Rename(to, aside(to)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := s.client.Rename(from, to); err != nil {
		return err
	}
	return s.remove(aside(to))
}

func (s sftpServer) remove(name string) error {
	if err := s.client.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (s sftpServer) makeFolder(name string) error {
	if info, err := s.client.Stat(name); err == nil && info.IsDir() {
		return nil
	}
	return s.client.Mkdir(name)
}

func (s sftpServer) list(folder string) ([]entry, error) {
	infos, err := s.client.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var entries []entry
	for _, info := range infos {
		entries = append(entries, entry{name: info.Name(), folder: info.IsDir(), time: info.ModTime()})
	}
	return entries, err
}

// login returns the ways to log in, and the password, to keep it out of messages.
func (c SFTPConfig) login() (methods []ssh.AuthMethod, password string, err error) {
	if c.KeyFile != "" {
		text, err := os.ReadFile(c.KeyFile)
		if err != nil {
			return nil, "", fmt.Errorf("read key_file: %w", err)
		}
		key, err := ssh.ParsePrivateKey(text)
		var locked *ssh.PassphraseMissingError
		if errors.As(err, &locked) {
			return nil, "", fmt.Errorf("key_file %s has a passphrase: make a key of its own for this service, without one (ssh-keygen -N '')", c.KeyFile)
		}
		if err != nil {
			return nil, "", fmt.Errorf("key_file %s: %w; it must be a private key as ssh-keygen writes it", c.KeyFile, err)
		}
		methods = append(methods, ssh.PublicKeys(key))
	}
	if password, err = c.password(); err != nil || password == "" {
		return methods, "", err
	}
	answer := func(_, _ string, questions []string, _ []bool) ([]string, error) {
		answers := make([]string, len(questions))
		for i := range answers {
			answers[i] = password
		}
		return answers, nil
	}
	return append(methods, ssh.Password(password), ssh.KeyboardInteractive(answer)), password, nil
}
