// Package push keeps products on an FTP or SFTP server, in the same tree as
// package disk keeps them in a folder: how production centres deliver.
//
//	<root>/<dataset>/<YYYY>/<MM>/<name>.nc, .nc.sha256, <YYYYMMDD>.manifest.json
//	                            /<name>_members.nc, .nc.sha256
//
// A file is sent under a temporary name in its folder, <name>.<sha256, its
// beginning>.part, compared with the bytes that were sent, and renamed: under its
// final name it is whole or not there. An upload that was cut goes on where it
// stopped. Where there is a side file or a manifest entry it tells the truth: both
// are taken away before a product is replaced and written after, the manifest
// last. The manifest is the delivery note: file, size, sha256, time and revision
// of each product of a day. It takes for granted that nobody else writes below
// the root; readers may take files away.
//
// Package push knows nothing of NetCDF, makes no catalogue and no pictures, and
// removes retracted products only.
package push

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"time"

	"lacuna/internal/faults"
	"lacuna/internal/session"
)

// The values of Config.Verify.
const (
	ByContent = "content" // read back and compare
	BySize    = "size"    // ask for the size
)

// Config is the place of the products on a server, and the login.
type Config struct {
	Address      string        `yaml:"address"`       // host, or host:port
	User         string        `yaml:"user"`          // name of the login
	PasswordFile string        `yaml:"password_file"` // file whose first line is the password; nobody else may read it
	PasswordEnv  string        `yaml:"password_env"`  // or the environment variable that has it
	Root         string        `yaml:"root"`          // folder of the products; it must exist
	Verify       string        `yaml:"verify"`        // how an upload is checked: content reads it back where the server lets one, size asks for its size
	Connections  int           `yaml:"connections"`   // connections at a time, at most
	Timeout      time.Duration `yaml:"timeout"`       // for an answer, and between two pieces of a file
}

// FTPConfig is a place on an FTP server.
type FTPConfig struct {
	Config `yaml:",inline"`
	TLS    string `yaml:"tls"`     // none, explicit or implicit
	CAFile string `yaml:"ca_file"` // PEM; trusted beside the authorities of the system
	EPSV   bool   `yaml:"epsv"`    // false: use PASV at once
}

// SFTPConfig is a place on an SSH server.
type SFTPConfig struct {
	Config     `yaml:",inline"`
	KeyFile    string `yaml:"key_file"`     // private key of the login, without a passphrase; nobody else may read it
	KnownHosts string `yaml:"known_hosts"`  // file with the host key of the server, as OpenSSH has it
	AnyHostKey bool   `yaml:"any_host_key"` // true: send to whoever answers, without known_hosts; for trying out
}

func defaultConfig() Config {
	return Config{
		Verify:      ByContent,
		Connections: 2, // one dataset each; centres allow few from one address
		Timeout:     30 * time.Second,
	}
}

// DefaultFTPConfig returns the settings that hold where a file is silent.
func DefaultFTPConfig() FTPConfig {
	c := FTPConfig{Config: defaultConfig(), TLS: session.Explicit, EPSV: true}
	c.Root = "/"
	return c
}

// DefaultSFTPConfig returns the settings that hold where a file is silent.
func DefaultSFTPConfig() SFTPConfig {
	c := SFTPConfig{Config: defaultConfig()}
	c.Root = "." // the folder of the login
	return c
}

func (c Config) faults() *faults.List {
	var errs faults.List
	errs.Check(c.Address != "" && !strings.ContainsAny(c.Address, "/@ \r\n"), "address is %q, must be a host or host:port, without user and folder", shownAddress(c.Address))
	errs.Check(c.User != "" && !strings.ContainsAny(c.User, "\r\n"), "user is empty or has a line break")
	errs.Check(c.PasswordFile == "" || c.PasswordEnv == "", "password_file and password_env exclude one another; keep one")
	errs.Check(c.Root != "" && !strings.ContainsAny(c.Root, "\r\n"), "root is %q, must be a folder of the server", c.Root)
	errs.Check(c.Verify == ByContent || c.Verify == BySize, "verify is %q, must be content or size", c.Verify)
	errs.Check(c.Connections > 0, "connections is %d, must be positive", c.Connections)
	errs.Check(c.Timeout > 0, "timeout is %v, must be positive", c.Timeout)
	return &errs
}

// shownAddress hides the part before an @, which may be a password.
func shownAddress(address string) string {
	if i := strings.LastIndex(address, "@"); i >= 0 {
		return "[redacted]" + address[i:]
	}
	return address
}

// Validate reports everything wrong with c; messages begin with the key.
func (c FTPConfig) Validate() error {
	errs := c.faults()
	errs.Check(c.TLS == session.Clear || c.TLS == session.Explicit || c.TLS == session.Implicit, "tls is %q, must be none, explicit or implicit", c.TLS)
	errs.Check(strings.HasPrefix(c.Root, "/"), "root is %q, must begin with a slash", c.Root)
	return errs.Err()
}

// Validate reports everything wrong with c; messages begin with the key.
func (c SFTPConfig) Validate() error {
	errs := c.faults()
	errs.Check(c.PasswordFile != "" || c.PasswordEnv != "" || c.KeyFile != "", "key_file is empty and there is no password: name one of key_file, password_file and password_env")
	errs.Check((c.KnownHosts != "") != c.AnyHostKey, "known_hosts and any_host_key: name the file with the server's host key, or set any_host_key, not both")
	return errs.Err()
}

// Name is the name of the sink in the ledger.
func (c FTPConfig) Name() string { return "ftp:" + path.Join(c.Address, c.Root) }

// Name is the name of the sink in the ledger.
func (c SFTPConfig) Name() string { return "sftp:" + path.Join(c.Address, c.Root) }

// password reads the password of the login, anew for each; empty: there is none.
func (c Config) password() (string, error) {
	switch {
	case c.PasswordEnv != "":
		if text := os.Getenv(c.PasswordEnv); text != "" {
			return text, nil
		}
		return "", fmt.Errorf("environment variable %s is empty; set it, or name a password_file", c.PasswordEnv)
	case c.PasswordFile != "":
		text, err := os.ReadFile(c.PasswordFile)
		if err != nil {
			return "", fmt.Errorf("read password_file: %w", err)
		}
		line, _, _ := strings.Cut(string(text), "\n")
		if line = strings.TrimRight(line, "\r"); line == "" {
			return "", fmt.Errorf("password_file %s is empty", c.PasswordFile)
		}
		return line, nil
	}
	return "", nil
}

// scrub returns err without a password that a server has echoed.
func scrub(err error, password string) error {
	if err == nil || password == "" || !strings.Contains(err.Error(), password) {
		return err
	}
	return errors.New(strings.ReplaceAll(err.Error(), password, "[redacted]"))
}
