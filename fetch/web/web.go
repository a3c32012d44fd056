// Package web is HTTP as archives speak it: GET and HEAD with timeouts, pace,
// a private certificate authority and a User-Agent, and readers of objects
// that resume at an offset and notice when the object is no longer the listed
// one.
//
// Every call ends: connecting, waiting for an answer and waiting for the next
// bytes have a time limit each, while a download that makes progress may take
// as long as it needs. Errors hold no query, no user and no secret, and no
// credential follows a redirect to another scheme, host or port.
//
// Package web knows nothing of listings, buckets or catalogues.
package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"lacuna/fetch"
	"lacuna/internal/session"
)

// Config is the way to reach a host.
type Config struct {
	CAFile  string        `yaml:"ca_file"` // PEM; trusted beside the authorities of the system
	Timeout time.Duration `yaml:"timeout"` // for an answer to begin, and between two of its pieces
	// Allow returns why no request may go to a place, as an error that wraps
	// fetch.ErrUnacceptable. Nil allows every place.
	Allow func(u *url.URL) error `yaml:"-"`
	// Login adds the credentials of another host to a request that was sent on
	// to it, and of no other. With it answers may set cookies, as the login pages
	// between an archive and its bytes do. Nil: no such host has any.
	Login func(req *http.Request) `yaml:"-"`
}

// DefaultConfig returns the settings that hold where a file is silent.
func DefaultConfig() Config {
	return Config{Timeout: 60 * time.Second} // enough for catalogues under load
}

// Validate reports everything wrong with c.
func (c Config) Validate() error {
	if c.Timeout <= 0 {
		return fmt.Errorf("timeout is %v, must be positive", c.Timeout)
	}
	return nil
}

// dialTimeout bounds connecting and the TLS handshake, each: three
// retransmissions of a lost packet.
const dialTimeout = 10 * time.Second

// Client makes requests. It is safe for concurrent use.
type Client struct {
	cfg        Config
	politeness fetch.Politeness
	http       func() (*http.Client, error) // made at the first request, for it reads a file
}

// New returns a Client. It touches neither the network nor the disk.
func New(cfg Config, politeness fetch.Politeness) *Client {
	return &Client{cfg: cfg, politeness: politeness, http: sync.OnceValues(func() (*http.Client, error) {
		return newHTTP(cfg)
	})}
}

func newHTTP(cfg Config) (*http.Client, error) {
	trust, err := session.TLS(cfg.CAFile)
	if err != nil {
		return nil, err
	}
	client := &http.Client{CheckRedirect: cfg.redirect}
	if cfg.Login != nil {
		jar, err := cookiejar.New(nil)
		if err != nil {
			return nil, err
		}
		client.Jar = jar
	}
	client.Transport = &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSClientConfig:       trust,
		TLSHandshakeTimeout:   dialTimeout,
		ResponseHeaderTimeout: cfg.Timeout,
		IdleConnTimeout:       90 * time.Second, // shorter than a poll interval would be too short to be of use
		MaxIdleConnsPerHost:   8,                // enough for all readers at a time
		ForceAttemptHTTP2:     true,
		// Headers have a few kilobytes, and some are kept for each object.
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true, // offsets and lengths are of the bytes that are stored
	}
	return client, nil
}

// StatusError is an answer with a status of failure. It wraps fs.ErrNotExist,
// ErrChanged or ErrPermanent where the status means that.
type StatusError struct {
	Request string // method and URL, without its query
	Code    int
	Body    string // the beginning of the answer, for those who parse it; not shown
}

// Error names the request and the status.
func (e *StatusError) Error() string {
	return fmt.Sprintf("%s: %d %s", e.Request, e.Code, http.StatusText(e.Code))
}

// Unwrap returns the meaning of the status for an archive. That one object is
// forbidden says nothing of the others; whether a forbidden listing is
// permanent, the archive decides.
func (e *StatusError) Unwrap() error {
	switch e.Code {
	case http.StatusNotFound, http.StatusGone:
		return fs.ErrNotExist
	case http.StatusPreconditionFailed, http.StatusRequestedRangeNotSatisfiable:
		return fetch.ErrChanged
	case http.StatusUnauthorized, http.StatusProxyAuthRequired:
		return fetch.ErrPermanent
	}
	return nil
}

// Do makes a request and returns its answer if that is a success. The caller
// closes the body. Errors hold none of secrets.
func (c *Client) Do(req *http.Request, secrets ...fetch.Secret) (*http.Response, error) {
	if err := c.cfg.allows(req.URL); err != nil {
		return nil, err
	}
	client, err := c.http()
	if err != nil {
		return nil, err
	}
	if err := c.politeness.Pacer.Wait(req.Context(), req.URL.Host); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	parent := req.Context()
	req = req.WithContext(ctx)
	req.Header.Set("User-Agent", c.politeness.UserAgent)
	asked, shown := req.URL, req.Method+" "+Shown(req.URL)
	resp, err := client.Do(req)
	if err != nil {
		cancel(nil)
		return nil, fetch.Scrub(fmt.Errorf("%s: %w", shown, plain(parent, err)), secrets...)
	}
	resp.Body = &body{src: resp.Body, parent: parent, cancel: cancel, idle: c.cfg.Timeout, what: shown}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	err = c.refusal(shown, resp)
	if refused := resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden; refused && !SameOrigin(asked, resp.Request.URL) {
		err = fmt.Errorf("%w; it was sent on to %s, without credentials: name that address if it may have them", err, Shown(resp.Request.URL))
	}
	return nil, fetch.Scrub(err, secrets...)
}

// refusal returns the error of an answer, and closes it.
func (c *Client) refusal(shown string, resp *http.Response) error {
	defer resp.Body.Close()
	const enough = 4 << 10 // S3 errors are a few hundred bytes
	text, _ := io.ReadAll(io.LimitReader(resp.Body, enough))
	err := &StatusError{Request: shown, Code: resp.StatusCode, Body: string(text)}
	if after := RetryAfter(resp.Header.Get("Retry-After"), time.Now()); after > 0 {
		c.politeness.Pacer.Hold(resp.Request.URL.Host, after)
		return &fetch.RetryAfterError{After: after, Err: err}
	}
	return err
}

// maxRetryAfter is the longest Retry-After that is believed.
const maxRetryAfter = 24 * time.Hour

// RetryAfter reads the header of that name, a number of seconds or a date. It
// is 0 where the header is missing, unreadable or in the past.
func RetryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseInt(header, 10, 32); err == nil {
		return max(0, min(time.Duration(seconds)*time.Second, maxRetryAfter))
	}
	if date, err := http.ParseTime(header); err == nil {
		return max(0, min(date.Sub(now), maxRetryAfter))
	}
	return 0
}

// Root returns the address below which an archive lies, without a slash at its
// end, or what is wrong with it: like is an example, and instead says where its
// users and queries belong.
func Root(text, like, instead string) (url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		u = &url.URL{} // its text may hold a password
	}
	if u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return url.URL{}, fmt.Errorf("is %q, must be like %s", Shown(u), like)
	}
	if u.User != nil || u.RawQuery != "" {
		return url.URL{}, fmt.Errorf("holds a user or a query; %s", instead)
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath, u.Fragment = "", ""
	return *u, nil
}

// Shown returns u as it may be shown: without user and query.
func Shown(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}

// plain takes the URL, which may hold a user, out of an error of net/http.
func plain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return unexpected(err) // a connection that ends is not the end of an object
}
