package ops

import (
	"net"
	"net/http"
	"slices"
	"strings"
)

// ownHosts refuses requests whose Host is not a name of this server. By DNS
// rebinding, a foreign page could otherwise be of the same origin as ours to a
// browser, and read it; the Host that the browser then sends is the name of the
// foreign page. Requests by address, and those without a Host, pass: browsers
// send neither in that attack.
func ownHosts(cfg Config, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !cfg.answersTo(r.Host) {
			w.Header().Set("Cache-Control", "no-store")
			http.Error(w, "this server does not go by that name; list the name under web.hosts, or ask by address", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// answersTo reports whether the Host of a request names this server.
func (c Config) answersTo(host string) bool {
	name := hostName(host)
	listen, _, _ := net.SplitHostPort(c.Listen) // checked by Validate
	switch {
	case name == "", name == "localhost", strings.HasSuffix(name, ".localhost"), net.ParseIP(name) != nil:
		return true
	case name == hostName(listen):
		return true
	}
	return slices.ContainsFunc(c.Hosts, func(own string) bool { return hostName(own) == name })
}

// hostName is the name or address in host or host:port, as names are compared:
// in small letters, without the dot at the end, the brackets of IPv6 and its
// zone.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	if address, _, zoned := strings.Cut(host, "%"); zoned {
		host = address
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}
