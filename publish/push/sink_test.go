package push

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	ftpserver "github.com/fclairamb/ftpserverlib"

	"lacuna/publish"
	"lacuna/publish/sinktest"
)

// host is a server with a folder that a receiver reads.
type host struct {
	*trouble
	root string
	open func(t *testing.T) *Sink
}

// hosts are the servers that the sink is tested on, each by how it is started.
func hosts() map[string]func(t *testing.T) host {
	return map[string]func(t *testing.T) host{
		"FTP": func(t *testing.T) host {
			h := newFTPHost(t, ftpserver.Settings{})
			return host{h.trouble, h.root, h.sink}
		},
		"SFTP": func(t *testing.T) host {
			h := newSSHHost(t)
			return host{h.trouble, h.root, h.sink}
		},
	}
}

// testFolders are deeper than the default, so that nothing here relies on it.
const testFolders publish.Folders = "{year}/{month}/{day}"

func keepsTheContract(t *testing.T, start func(t *testing.T) host) {
	t.Helper()
	sinktest.Run(t, func(t *testing.T) sinktest.Subject {
		h := start(t)
		return sinktest.Subject{
			Sink:    h.open(t),
			Restart: func(t *testing.T) publish.Sink { return h.open(t) },
			Receive: func(t *testing.T, dataset string) map[string]sinktest.Seen { return receive(t, h.root, dataset) },
		}
	})
}

func TestSinkKeepsTheContract(t *testing.T) {
	for name, start := range hosts() {
		t.Run(name, func(t *testing.T) { keepsTheContract(t, start) })
	}
}

func TestServersThatKnowLess(t *testing.T) {
	for name, edit := range map[string]func(*ftpHost){
		"renames over no file": func(h *ftpHost) { h.renameOff.Store(true) },
		"shows no parts":       func(h *ftpHost) { h.unread.Store(true) },
	} {
		t.Run(name, func(t *testing.T) {
			keepsTheContract(t, func(t *testing.T) host {
				h := newFTPHost(t, ftpserver.Settings{DisableMLSD: true, DisableMLST: true})
				edit(h)
				return host{h.trouble, h.root, h.sink}
			})
		})
	}
	t.Run("compares sizes", func(t *testing.T) {
		keepsTheContract(t, func(t *testing.T) host {
			h := newSSHHost(t)
			cfg := h.config(t)
			cfg.Verify = BySize
			return host{h.trouble, h.root, func(t *testing.T) *Sink { return openSFTP(t, cfg) }}
		})
	})
}

func TestVsftpd(t *testing.T) {
	keepsTheContract(t, func(t *testing.T) host {
		address, root := startVsftpd(t)
		cfg := DefaultFTPConfig()
		cfg.Address, cfg.TLS, cfg.User, cfg.PasswordEnv, cfg.Root = address, "none", "anonymous", "PUSH_TEST_PASSWORD", "/incoming"
		return host{nil, root, func(t *testing.T) *Sink { return openFTP(t, cfg) }}
	})
}

func TestOpenSSH(t *testing.T) {
	const program = "/usr/lib/openssh/sftp-server"
	if _, err := os.Stat(program); err != nil {
		t.Skip("sftp-server of OpenSSH is not installed; apt-get install openssh-sftp-server brings it")
	}
	keepsTheContract(t, func(t *testing.T) host {
		h := newSSHHost(t)
		h.program = program
		return host{nil, h.root, h.sink}
	})
}

// receive reads a dataset as a receiver that trusts manifests and side files, and
// fails t where a file under a final name is not one that was published.
func receive(t *testing.T, root, dataset string) map[string]sinktest.Seen {
	t.Helper()
	got := map[string]sinktest.Seen{}
	err := filepath.WalkDir(filepath.Join(root, dataset), func(path string, e fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil
		}
		must(t, err)
		if strings.HasSuffix(path, partEnding) {
			t.Errorf("%s was left behind", path)
		}
		if e.IsDir() || !publish.IsManifest(path) {
			return nil
		}
		text, err := os.ReadFile(path)
		must(t, err)
		m, err := publish.ParseManifest(text)
		must(t, err)
		for _, e := range m.Products {
			if _, taken := m.Owner(e.File); taken && e.Retracted { // another product has its name
				got[e.Granule] = sinktest.Seen{Revision: e.Revision, Retracted: true, Why: e.Why}
				continue
			}
			receiveOne(t, filepath.Join(filepath.Dir(path), e.File), e, got)
		}
		return nil
	})
	must(t, err)
	return got
}

func receiveOne(t *testing.T, file string, e publish.Entry, got map[string]sinktest.Seen) {
	t.Helper()
	members := publish.MembersName(file)
	switch {
	case e.Retracted:
		got[e.Granule] = sinktest.Seen{Revision: e.Revision, Retracted: true, Why: e.Why}
		for _, name := range []string{file, members, publish.SideName(file), publish.SideName(members)} {
			if _, err := os.Stat(name); err == nil {
				t.Errorf("%s is retracted and still there", name)
			}
		}
	case e.Live():
		seen := sinktest.Seen{Revision: e.Revision, SHA256: sumOf(t, file)}
		if _, err := os.Stat(members); err == nil {
			seen.Members = sumOf(t, members)
		}
		if (e.Members != nil) != (seen.Members != "") {
			t.Errorf("members of %s are there: %v, listed: %v", file, seen.Members != "", e.Members != nil)
		}
		if e.Size != sizeOf(t, file) || e.SHA256 != seen.SHA256 || e.Time.IsZero() {
			t.Errorf("the manifest lists %+v, the file has %s", e, seen.SHA256)
		}
		got[e.Granule] = seen
	}
}

// sumOf returns the hash of a file, which its side file must have too.
func sumOf(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	must(t, err)
	sum := sha256.Sum256(content)
	hash := hex.EncodeToString(sum[:])
	if side, err := os.ReadFile(publish.SideName(file)); err != nil || string(side) != publish.SideText(file, hash) {
		t.Errorf("side file of %s says %q (%v), want %s", file, side, err, hash)
	}
	return hash
}

func sizeOf(t *testing.T, file string) int64 {
	t.Helper()
	info, err := os.Stat(file)
	must(t, err)
	return info.Size()
}
