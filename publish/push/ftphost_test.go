package push

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	ftpserver "github.com/fclairamb/ftpserverlib"
	"github.com/spf13/afero"

	"lacuna/internal/session"
)

// trouble is what a server does wrong, whatever it speaks.
type trouble struct {
	room      atomic.Int64 // bytes of files that can still be written; negative: all
	onRename  atomic.Int64 // renamings until one fails; negative: none does
	renameOff atomic.Bool  // refuses to rename over a file
	unread    atomic.Bool  // refuses to hand out parts
	flip      atomic.Bool  // writes one byte wrong
	stall     atomic.Bool  // takes bytes and never answers
	written   atomic.Int64 // bytes of files that were written
}

func newTrouble() *trouble {
	f := &trouble{}
	f.room.Store(-1)
	f.onRename.Store(-1)
	return f
}

var errPower = errors.New("power cut")

// spend returns how many of n bytes can be written, and the error for the rest.
func (f *trouble) spend(n int) (int, error) {
	room := f.room.Load()
	if room < 0 || room >= int64(n) {
		if room >= 0 {
			f.room.Add(-int64(n))
		}
		f.written.Add(int64(n))
		return n, nil
	}
	f.room.Store(0)
	f.written.Add(room)
	return int(room), syscall.ENOSPC
}

// rename returns the fault of a renaming.
func (f *trouble) rename(over bool) error {
	if left := f.onRename.Load(); left == 0 {
		return errPower
	} else if left > 0 {
		f.onRename.Add(-1)
	}
	if over && f.renameOff.Load() {
		return errors.New("the file exists")
	}
	return nil
}

// spoil returns p with one byte wrong, once.
func (f *trouble) spoil(p []byte) []byte {
	if len(p) < 1000 || !f.flip.CompareAndSwap(true, false) { // not a small file
		return p
	}
	p = append([]byte(nil), p...)
	p[len(p)/2] ^= 1
	return p
}

// ftpHost is an FTP server in this process, over a folder.
type ftpHost struct {
	*trouble
	root, address string
	settings      ftpserver.Settings
	trust         *tls.Config // nil: in the clear
	logins        atomic.Int64
}

func newFTPHost(t *testing.T, settings ftpserver.Settings) *ftpHost {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	h := &ftpHost{trouble: newTrouble(), root: t.TempDir(), address: listener.Addr().String(), settings: settings}
	h.settings.Listener = listener
	server := ftpserver.NewFtpServer(h)
	must(t, server.Listen())
	go server.Serve() // ends with Stop
	t.Cleanup(func() { _ = server.Stop() })
	return h
}

func (h *ftpHost) GetSettings() (*ftpserver.Settings, error)               { return &h.settings, nil }
func (h *ftpHost) ClientConnected(ftpserver.ClientContext) (string, error) { return "ready", nil }
func (h *ftpHost) ClientDisconnected(ftpserver.ClientContext)              {}
func (h *ftpHost) GetTLSConfig() (*tls.Config, error)                      { return h.trust, nil }

func (h *ftpHost) AuthUser(_ ftpserver.ClientContext, user, pass string) (ftpserver.ClientDriver, error) {
	h.logins.Add(1)
	if user != "writer" || pass != "swordfish" {
		return nil, errors.New("no such user: " + user + " with " + pass) // rude servers echo
	}
	return &ftpFiles{Fs: afero.NewBasePathFs(afero.NewOsFs(), h.root), host: h}, nil
}

// ftpFiles are the files of a host, with its faults.
type ftpFiles struct {
	afero.Fs
	host *ftpHost
}

func (c *ftpFiles) Rename(from, to string) error {
	_, err := c.Stat(to)
	if err := c.host.rename(err == nil); err != nil {
		return err
	}
	return c.Fs.Rename(from, to)
}

func (c *ftpFiles) GetHandle(name string, flags int, offset int64) (ftpserver.FileTransfer, error) {
	if flags&(os.O_WRONLY|os.O_RDWR) == 0 && c.host.unread.Load() && strings.HasSuffix(name, partEnding) {
		return nil, os.ErrPermission
	}
	f, err := c.OpenFile(name, flags, 0o644)
	if err != nil {
		return nil, err
	}
	if flags&os.O_APPEND == 0 {
		if _, err := f.Seek(offset, io.SeekStart); err != nil {
			return nil, err
		}
	}
	return &ftpFile{FileTransfer: f, faults: c.host.trouble}, nil
}

type ftpFile struct {
	ftpserver.FileTransfer
	faults *trouble
}

func (f *ftpFile) Write(p []byte) (int, error) {
	n, full := f.faults.spend(len(p))
	m, err := f.FileTransfer.Write(f.faults.spoil(p[:n]))
	return m, errors.Join(full, err)
}

func (h *ftpHost) config() FTPConfig {
	cfg := DefaultFTPConfig()
	cfg.Address, cfg.TLS, cfg.User, cfg.PasswordEnv, cfg.Timeout = h.address, session.Clear, "writer", "PUSH_TEST_PASSWORD", 5*time.Second
	return cfg
}

func (h *ftpHost) sink(t *testing.T) *Sink { return openFTP(t, h.config()) }

func openFTP(t *testing.T, cfg FTPConfig) *Sink {
	t.Helper()
	t.Setenv("PUSH_TEST_PASSWORD", "swordfish")
	s, err := NewFTP(cfg, testFolders)
	must(t, err)
	t.Cleanup(s.Close)
	return s
}

// withoutREST returns the address of a proxy of the control connection behind
// which the server knows no REST.
func withoutREST(t *testing.T, address string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			host, err := net.Dial("tcp", address)
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(client, host); client.Close() }()
			go func() {
				defer host.Close()
				for lines := bufio.NewScanner(client); lines.Scan(); {
					if strings.HasPrefix(lines.Text(), "REST") {
						fmt.Fprint(client, "502 not here\r\n")
						continue
					}
					fmt.Fprint(host, lines.Text()+"\r\n")
				}
			}()
		}
	}()
	return listener.Addr().String()
}

// startVsftpd runs a vsftpd that lets anybody write into a folder, and returns its
// address and that folder.
func startVsftpd(t *testing.T) (address, root string) {
	t.Helper()
	if testing.Short() {
		t.Skip("vsftpd runs outside this process; its tests are part of the whole run")
	}
	const program = "/usr/sbin/vsftpd"
	if _, err := os.Stat(program); err != nil {
		t.Skip("vsftpd is not installed; apt-get install vsftpd brings it")
	}
	account, err := user.Lookup("ftp")
	if err != nil || os.Geteuid() != 0 {
		t.Skip("vsftpd needs root, and a user ftp, whom it serves files as")
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	_, port, _ := net.SplitHostPort(free.Addr().String())
	must(t, free.Close())
	jail := t.TempDir()
	must(t, os.Chmod(filepath.Dir(jail), 0o755)) // the user ftp has to get in
	root = filepath.Join(jail, "incoming")
	must(t, os.Mkdir(root, 0o755))
	id, err := strconv.Atoi(account.Uid)
	must(t, err)
	must(t, os.Chown(root, id, -1))
	settings := []string{
		"listen=YES", "listen_address=127.0.0.1", "listen_port=" + port, "background=NO", "anonymous_enable=YES", "local_enable=NO",
		"anon_root=" + jail, "write_enable=YES", "anon_upload_enable=YES", "anon_mkdir_write_enable=YES", "anon_other_write_enable=YES",
		"anon_umask=022", "anon_world_readable_only=NO", "seccomp_sandbox=NO", "isolate=NO", "isolate_network=NO",
		"xferlog_enable=NO", "secure_chroot_dir=" + t.TempDir(),
	}
	file := filepath.Join(t.TempDir(), "vsftpd.conf")
	must(t, os.WriteFile(file, []byte(strings.Join(settings, "\n")+"\n"), 0o600))
	cmd := exec.CommandContext(t.Context(), program, file)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	address = "127.0.0.1:" + port
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if c, err := net.DialTimeout("tcp", address, time.Second); err == nil {
			c.Close()
			return address, root
		}
	}
	t.Fatal("vsftpd does not answer")
	return "", ""
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
