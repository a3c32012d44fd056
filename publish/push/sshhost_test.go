package push

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// sshHost is an SSH server in this process, over a folder.
type sshHost struct {
	*trouble
	root, address string
	key           ssh.Signer
	user          ssh.PublicKey // who may log in by key
	program       string        // sftp-server of OpenSSH; empty: that of the library
	passwords     int
	mu            sync.Mutex // guards conns and passwords
	conns         []net.Conn
}

func newKey(t *testing.T) (ssh.Signer, []byte) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	signer, err := ssh.NewSignerFromKey(private)
	must(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	must(t, err)
	return signer, pem.EncodeToMemory(block)
}

func newSSHHost(t *testing.T) *sshHost {
	t.Helper()
	h := &sshHost{trouble: newTrouble(), root: t.TempDir()}
	h.key, _ = newKey(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	h.address = listener.Addr().String()
	t.Cleanup(func() { listener.Close(); h.cut() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			h.mu.Lock()
			h.conns = append(h.conns, conn)
			h.mu.Unlock()
			go h.serve(conn)
		}
	}()
	return h
}

// cut cuts all connections, as a crash does.
func (h *sshHost) cut() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.conns {
		c.Close()
	}
	h.conns = nil
}

func (h *sshHost) settings() *ssh.ServerConfig {
	cfg := &ssh.ServerConfig{
		PasswordCallback: func(c ssh.ConnMetadata, password []byte) (*ssh.Permissions, error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.passwords++
			if c.User() == "writer" && string(password) == "swordfish" {
				return nil, nil
			}
			return nil, errors.New("no")
		},
		PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if h.user != nil && string(key.Marshal()) == string(h.user.Marshal()) {
				return nil, nil
			}
			return nil, errors.New("no")
		},
	}
	cfg.AddHostKey(h.key)
	return cfg
}

func (h *sshHost) serve(conn net.Conn) {
	_, channels, requests, err := ssh.NewServerConn(conn, h.settings())
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for offer := range channels {
		channel, requests, err := offer.Accept()
		if err != nil {
			return
		}
		go func() {
			for r := range requests {
				ok := r.Type == "subsystem" && strings.HasSuffix(string(r.Payload), "sftp")
				_ = r.Reply(ok, nil)
				if ok {
					go h.talk(channel)
				}
			}
		}()
	}
}

// talk speaks SFTP on a channel.
func (h *sshHost) talk(channel ssh.Channel) {
	defer channel.Close()
	if h.program != "" {
		cmd := exec.Command(h.program, "-d", h.root)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = channel, channel, os.Stderr
		_ = cmd.Run()
		return
	}
	files := sshFiles{h}
	server := sftp.NewRequestServer(channel, sftp.Handlers{FileGet: files, FilePut: files, FileCmd: files, FileList: files}, sftp.WithStartDirectory("/"))
	_ = server.Serve()
}

// sshFiles are the files of a host, with its faults.
type sshFiles struct{ host *sshHost }

func (f sshFiles) at(name string) string { return filepath.Join(f.host.root, filepath.FromSlash(name)) }

func (f sshFiles) Fileread(r *sftp.Request) (io.ReaderAt, error) {
	if f.host.unread.Load() && strings.HasSuffix(r.Filepath, partEnding) {
		return nil, os.ErrPermission
	}
	return os.Open(f.at(r.Filepath))
}

func (f sshFiles) Filewrite(r *sftp.Request) (io.WriterAt, error) {
	flags := os.O_WRONLY | os.O_CREATE
	if r.Pflags().Trunc {
		flags |= os.O_TRUNC
	}
	file, err := os.OpenFile(f.at(r.Filepath), flags, 0o644)
	if err != nil {
		return nil, err
	}
	return &sshFile{File: file, faults: f.host.trouble}, nil
}

type sshFile struct {
	*os.File
	faults *trouble
	mu     sync.Mutex // one write at a time
}

func (f *sshFile) WriteAt(p []byte, at int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.faults.stall.Load() {
		time.Sleep(time.Millisecond)
	}
	n, full := f.faults.spend(len(p))
	m, err := f.File.WriteAt(f.faults.spoil(p[:n]), at)
	return m, errors.Join(full, err)
}

func (f sshFiles) Filecmd(r *sftp.Request) error {
	switch r.Method {
	case "Setstat":
		return nil
	case "Mkdir":
		return os.Mkdir(f.at(r.Filepath), 0o755)
	case "Remove":
		return os.Remove(f.at(r.Filepath))
	case "Rename", "PosixRename":
		_, err := os.Stat(f.at(r.Target))
		if r.Method == "Rename" && err == nil {
			return errors.New("the file exists")
		}
		if err := f.host.rename(false); err != nil {
			return err
		}
		return os.Rename(f.at(r.Filepath), f.at(r.Target))
	}
	return sftp.ErrSSHFxOpUnsupported
}

// PosixRename implements the extension of OpenSSH.
func (f sshFiles) PosixRename(r *sftp.Request) error { return f.Filecmd(r) }

func (f sshFiles) Filelist(r *sftp.Request) (sftp.ListerAt, error) {
	if r.Method == "List" {
		entries, err := os.ReadDir(f.at(r.Filepath))
		var all infos
		for _, e := range entries {
			if info, err := e.Info(); err == nil {
				all = append(all, info)
			}
		}
		return all, err
	}
	info, err := os.Stat(f.at(r.Filepath))
	return infos{info}, err
}

type infos []os.FileInfo

func (i infos) ListAt(to []os.FileInfo, offset int64) (int, error) {
	if offset >= int64(len(i)) {
		return 0, io.EOF
	}
	n := copy(to, i[offset:])
	if n < len(to) {
		return n, io.EOF
	}
	return n, nil
}

// knownHosts writes a file with the host key of h.
func (h *sshHost) knownHosts(t *testing.T, key ssh.PublicKey) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "known_hosts")
	must(t, os.WriteFile(file, []byte(knownhosts.Line([]string{h.address}, key)+"\n"), 0o600))
	return file
}

func (h *sshHost) config(t *testing.T) SFTPConfig {
	t.Helper()
	cfg := DefaultSFTPConfig()
	cfg.Address, cfg.User, cfg.PasswordEnv, cfg.Timeout = h.address, "writer", "PUSH_TEST_PASSWORD", 5*time.Second
	cfg.KnownHosts = h.knownHosts(t, h.key.PublicKey())
	return cfg
}

func (h *sshHost) sink(t *testing.T) *Sink { return openSFTP(t, h.config(t)) }

func openSFTP(t *testing.T, cfg SFTPConfig) *Sink {
	t.Helper()
	t.Setenv("PUSH_TEST_PASSWORD", "swordfish")
	s, err := NewSFTP(cfg, testFolders)
	must(t, err)
	t.Cleanup(s.Close)
	return s
}
