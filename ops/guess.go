package ops

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"lacuna/internal/pause"
)

// Limits on wrong tokens. A token that people make up, at five guesses a second
// from everywhere, stands 1.6e8 guesses a year.
const (
	wrongBurst  = 5   // wrong tokens of a client that are checked at once: typing errors
	wrongRate   = 0.5 // wrong tokens a second of a client after that
	globalBurst = 50  // wrong tokens of all clients together: ten people who mistype
	globalRate  = 5.0 // wrong tokens a second of all clients after that
	// A request whose turn has not come waits, so that others' wrong guesses do
	// not turn the right token away: two turns of a client.
	guessPatience = 10 * time.Second
	mostWaiting   = 4    // waiting requests of a client; more are refused
	mostClients   = 1024 // remembered clients; the one seen longest ago is forgotten
)

// guesses limits the rate at which tokens are checked. No token is checked
// before its turn, the right one included, for every check helps a guesser.
// Three things keep the guesses of one client from holding up another: each
// client has a limit of its own; behind a proxy on this machine the client is
// the one that the proxy names; and a client that has shown the right token
// gets a pass, a cookie that no guesser has, and shares no limit with others.
type guesses struct {
	now func() time.Time
	key []byte // signs the passes; a restart makes a new one

	mu      sync.Mutex // guards the fields below
	all     allowance
	clients map[string]*client
}

// client is a sender of tokens.
type client struct {
	allowance
	waiting int
	seen    time.Time
}

func newGuesses(now func() time.Time) *guesses {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails
	return &guesses{now: now, key: key, all: allowance{burst: globalBurst, rate: globalRate}, clients: map[string]*client{}}
}

// allowance is a number of wrong tokens that grows with time up to burst.
type allowance struct {
	burst, rate float64
	spent       float64
	at          time.Time // time of spent
}

// settle brings spent up to now.
func (a *allowance) settle(now time.Time) {
	a.spent = max(0, a.spent-a.rate*now.Sub(a.at).Seconds())
	a.at = now
}

// wait returns the time until one may be spent.
func (a *allowance) wait(now time.Time) time.Duration {
	a.settle(now)
	return time.Duration(max(0, a.spent+1-a.burst) / a.rate * float64(time.Second))
}

// turn waits until the token of a request may be checked; false: it may not.
// Otherwise settled must be called with the result of the check.
func (g *guesses) turn(ctx context.Context, who string, known bool) (settled func(right bool), ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.client(who)
	for began := g.now(); ; {
		now := g.now()
		wait := c.wait(now)
		if !known {
			wait = max(wait, g.all.wait(now))
		}
		if wait == 0 {
			break
		}
		if c.waiting >= mostWaiting || now.Add(wait).Sub(began) > guessPatience {
			return nil, false
		}
		c.waiting++
		g.mu.Unlock()
		over := pause.For(ctx, wait)
		g.mu.Lock()
		c.waiting--
		if !over {
			return nil, false
		}
	}
	g.spend(c, known, 1)
	return func(right bool) {
		if right {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.spend(c, known, -1)
		}
	}, true
}

// spend counts a token as wrong before it is checked: otherwise many could be
// checked at once. The lock is held.
func (g *guesses) spend(c *client, known bool, n float64) {
	c.spent += n
	if !known {
		g.all.spent += n
	}
}

// client returns the client of that name. The lock is held.
func (g *guesses) client(who string) *client {
	now := g.now()
	c, ok := g.clients[who]
	if !ok {
		if len(g.clients) >= mostClients {
			g.forget()
		}
		c = &client{allowance: allowance{burst: wrongBurst, rate: wrongRate}}
		g.clients[who] = c
	}
	c.seen = now
	return c
}

// forget makes room for a client. The wrong tokens of the forgotten one still
// count in the limit of all.
func (g *guesses) forget() {
	oldest := ""
	for name, c := range g.clients {
		if oldest == "" || c.seen.Before(g.clients[oldest].seen) {
			oldest = name
		}
	}
	delete(g.clients, oldest)
}

// passCookie is the name of the cookie with a pass.
const passCookie = "lacuna_pass"

// pass returns a pass for token: a random name, and a MAC of it and the token.
func (g *guesses) pass(token string) *http.Cookie {
	name := rand.Text()
	return &http.Cookie{
		Name: passCookie, Value: name + "." + g.seal(name, token), Path: "/actions/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
		MaxAge: int((30 * day).Seconds()),
	}
}

func (g *guesses) seal(name, token string) string {
	mac := hmac.New(sha256.New, g.key)
	mac.Write([]byte(name + "\n" + token))
	return hex.EncodeToString(mac.Sum(nil))
}

// who returns the name of the client of a request; known: it has a pass for
// token.
func (g *guesses) who(r *http.Request, token string) (name string, known bool) {
	if cookie, err := r.Cookie(passCookie); err == nil {
		name, seal, _ := strings.Cut(cookie.Value, ".")
		if hmac.Equal([]byte(seal), []byte(g.seal(name, token))) {
			return "pass " + name, true
		}
	}
	return clientAddress(r), false
}

// clientAddress returns the origin of a request: the other end of the
// connection or, where that is on this machine, the address that a proxy
// forwards. A program on this machine can forge it; the limit of all clients
// holds for it. Of an IPv6 address the network counts, for a machine has as
// many addresses as it likes.
func clientAddress(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	ip := net.ParseIP(host)
	if ip.IsLoopback() {
		said := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
		if last := net.ParseIP(strings.TrimSpace(said[len(said)-1])); last != nil {
			ip = last
		}
	}
	switch {
	case ip == nil:
		return host
	case ip.To4() == nil:
		return ip.Mask(net.CIDRMask(64, 128)).String()
	}
	return ip.String()
}
