package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"lacuna/fetch"
)

// maxRedirects is the most redirects of a request: object stores send to a
// region and then to a server, and a ring must end.
const maxRedirects = 5

// carried are the headers that may follow a request to another host: they say
// which bytes are wanted, and nothing of who asks.
var carried = map[string]bool{
	"User-Agent": true, "Accept": true, "Range": true, "If-Range": true, "If-Match": true, "If-Unmodified-Since": true,
}

// redirect decides whether a redirect is followed. Credentials go to the
// scheme, host and port that the operator named and to no other, also not by
// way of a third host. A redirect from https to http, which anybody on the way
// can read and alter, is refused, and so is one that would repeat a form.
func (c Config) redirect(req *http.Request, via []*http.Request) error {
	first, last := via[0].URL, via[len(via)-1].URL
	switch {
	case len(via) > maxRedirects:
		return fmt.Errorf("%w: sent elsewhere more than %d times", fetch.ErrUnacceptable, maxRedirects)
	case last.Scheme == "https" && req.URL.Scheme != "https":
		return fmt.Errorf("%w: sent from https to %s, where anybody could read along; ask the host to mend it, or name an address that is not sent on",
			fetch.ErrUnacceptable, Shown(req.URL))
	}
	if err := c.allows(req.URL); err != nil {
		return err
	}
	left := !SameOrigin(first, req.URL)
	for _, r := range via {
		left = left || !SameOrigin(first, r.URL)
	}
	if !left {
		return nil
	}
	if req.Body != nil && req.Body != http.NoBody {
		return fmt.Errorf("%w: a form was sent on to %s; correct the address of the login", fetch.ErrUnacceptable, Shown(req.URL))
	}
	for name := range req.Header {
		if !carried[name] {
			req.Header.Del(name)
		}
	}
	if c.Login != nil {
		c.Login(req)
	}
	return nil
}

// allows returns an error where a request may not go to u.
func (c Config) allows(u *url.URL) error {
	if c.Allow == nil {
		return nil
	}
	return c.Allow(u)
}

// SameOrigin reports whether scheme, host and port are the same.
func SameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

// port returns the port of u, that of its scheme where it names none.
func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}
