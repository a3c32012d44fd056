package cmems

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
// only this machine can reach, or let anybody on the way choose the bytes of
// granules. Hosts of the operator's own settings need not be named twice.
func (c Config) allows(u *url.URL) error {
	for _, named := range slices.Concat(c.Hosts, c.ConfigURLs, []string{c.AuthURL}) {
		if at, err := url.Parse(origin(named)); err == nil && web.SameOrigin(at, u) {
			return nil
		}
	}
	return fmt.Errorf("%w: %s is not https on a host that the setting hosts allows; add its host there if it belongs to Copernicus Marine",
		fetch.ErrUnacceptable, web.Shown(u))
}

// origin returns an entry of hosts as an address; without a scheme it is https.
func origin(host string) string {
	if strings.Contains(host, "://") {
		return host
	}
	return "https://" + host
}
