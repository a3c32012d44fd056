package outbox

import (
	"log/slog"

	"lacuna/publish/disk"
	"lacuna/publish/push"
)

// FTP is the FTP server that products are pushed to.
type FTP struct {
	push.FTPConfig `yaml:",inline"`
}

// SFTP is the SSH server that products are pushed to.
type SFTP struct {
	push.SFTPConfig `yaml:",inline"`
}

// UnmarshalYAML fills in the defaults before the keys are read.
func (f *FTP) UnmarshalYAML(unmarshal func(any) error) error {
	type plain FTP
	*f = FTP{push.DefaultFTPConfig()}
	return unmarshal((*plain)(f))
}

// UnmarshalYAML fills in the defaults before the keys are read.
func (f *SFTP) UnmarshalYAML(unmarshal func(any) error) error {
	type plain SFTP
	*f = SFTP{push.DefaultSFTPConfig()}
	return unmarshal((*plain)(f))
}

// pushKinds are the kinds of sinks that push products to a server.
var pushKinds = []kind{
	{
		key: "ftp",
		name: func(c Config) string {
			if c.FTP == nil {
				return ""
			}
			return c.FTP.Name()
		},
		validate: func(c Config) error { return c.FTP.Validate() },
		secrets:  func(c Config) map[string]string { return map[string]string{"password_file": c.FTP.PasswordFile} },
		open: func(c Config, _ disk.Store, _ *slog.Logger) (Placed, func(), error) {
			return opened(push.NewFTP(c.FTP.FTPConfig, c.Folders))
		},
		trial: func(c Config) Trial { return pushed("FTP server "+c.FTP.Address, c.FTP.Root, "publish.ftp") },
	},
	{
		key: "sftp",
		name: func(c Config) string {
			if c.SFTP == nil {
				return ""
			}
			return c.SFTP.Name()
		},
		validate: func(c Config) error { return c.SFTP.Validate() },
		secrets: func(c Config) map[string]string {
			return map[string]string{"password_file": c.SFTP.PasswordFile, "key_file": c.SFTP.KeyFile}
		},
		open: func(c Config, _ disk.Store, _ *slog.Logger) (Placed, func(), error) {
			return opened(push.NewSFTP(c.SFTP.SFTPConfig, c.Folders))
		},
		trial: func(c Config) Trial { return pushed("SFTP server "+c.SFTP.Address, c.SFTP.Root, "publish.sftp") },
	},
}

func opened(sink *push.Sink, err error) (Placed, func(), error) {
	if err != nil {
		return nil, func() {}, err
	}
	return sink, sink.Close, nil
}

func pushed(what, root, key string) Trial {
	return Trial{what, "files can be written, renamed, read and removed in " + root, "mend " + key + " or the rights on the server as the message says"}
}
