package ops

import (
	"fmt"
	"net"
	"regexp"
	"strconv"
)

// Config is the address of the status page, its host names and its token.
type Config struct {
	Listen    string   `yaml:"listen"`     // host:port; port 0 takes a free one
	Hosts     []string `yaml:"hosts"`      // names by which browsers and proxies ask for the page, beside localhost and any address
	TokenFile string   `yaml:"token_file"` // file with the token that actions need; empty: the pages are read-only
}

// DefaultConfig returns the settings that hold where a file is silent.
func DefaultConfig() Config {
	return Config{Listen: "127.0.0.1:8087", Hosts: []string{}} // loopback: to show it to others, put a proxy with a login in front
}

// plainHost is a host by its name.
var plainHost = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)

// Validate reports the first fault of c.
func (c Config) Validate() error {
	_, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return fmt.Errorf("listen is %q, must be host:port like 127.0.0.1:8087", c.Listen)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("listen is %q, its port must be a number from 0 to 65535", c.Listen)
	}
	for _, host := range c.Hosts {
		if !plainHost.MatchString(host) {
			return fmt.Errorf("hosts has %q, must be names like lacuna.example.org, without scheme and port", host)
		}
	}
	return nil
}
