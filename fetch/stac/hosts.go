package stac

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"lacuna/fetch"
	"lacuna/fetch/web"
)

// allows returns an error where a place may not be asked. A catalogue is
// written by others: without a bound it could send the daemon to hosts that
// only this machine can reach, and anybody on the way could choose the bytes of
// granules. Hosts that get credentials need not be named twice.
func (a *Archive) allows(u *url.URL) error {
	if web.SameOrigin(&a.root, u) || among(slices.Concat(a.cfg.Hosts, a.cfg.TokenHosts), u) {
		return nil
	}
	if auth, err := a.auth(); err == nil && u.Scheme == "https" {
		if _, named := auth.netrc[strings.ToLower(u.Hostname())]; named {
			return nil
		}
	}
	return fmt.Errorf("%w: %s is not on a host that the setting hosts allows; add its host there if you trust it",
		fetch.ErrUnacceptable, web.Shown(u))
}

// among reports whether u is on one of hosts: data.example.org, also with a port,
// *.example.org for all below it, each over https; or http://data.example.org.
func among(hosts []string, u *url.URL) bool {
	for _, host := range hosts {
		if below, ok := strings.CutPrefix(host, "*."); ok {
			if u.Scheme == "https" && u.Port() == "" && strings.HasSuffix(strings.ToLower(u.Hostname()), "."+strings.ToLower(below)) {
				return true
			}
			continue
		}
		if !strings.Contains(host, "://") {
			host = "https://" + host
		}
		if at, err := url.Parse(host); err == nil && web.SameOrigin(at, u) {
			return true
		}
	}
	return false
}

// isHost reports whether text can stand among hosts.
func isHost(text string) bool {
	u, err := url.Parse(text)
	if err != nil || !strings.Contains(text, "://") {
		u, err = url.Parse("https://" + strings.TrimPrefix(text, "*."))
	}
	return err == nil && u.Host != "" && u.User == nil && (u.Path == "" || u.Path == "/") && u.RawQuery == ""
}
