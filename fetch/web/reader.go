package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"lacuna/fetch"
)

// errSilent says that a host stopped sending.
var errSilent = errors.New("no byte came in time")

// body is the body of an answer that must keep coming.
type body struct {
	src    io.ReadCloser
	parent context.Context // context of the request; its end is reported to the caller
	cancel context.CancelCauseFunc
	idle   time.Duration // most that a Read may wait
	what   string
}

// Read reads on, or fails after a silence.
func (b *body) Read(p []byte) (int, error) {
	alarm := time.AfterFunc(b.idle, func() { b.cancel(errSilent) })
	n, err := b.src.Read(p)
	silent := !alarm.Stop()
	switch {
	case err == nil || errors.Is(err, io.EOF):
		return n, err
	case b.parent.Err() != nil:
		return n, b.parent.Err()
	case silent:
		return n, fmt.Errorf("%s: %w (%v)", b.what, errSilent, b.idle)
	}
	return n, fmt.Errorf("%s: %w", b.what, plain(b.parent, err))
}

// Close ends the answer.
func (b *body) Close() error {
	err := b.src.Close()
	b.cancel(nil)
	return err
}

// Get asks for an object.
type Get struct {
	URL     *url.URL
	Object  fetch.Object
	Offset  int64                     // position of the first byte wanted
	Sign    func(*http.Request) error // adds a signature or credentials; may be nil
	Secrets []fetch.Secret            // kept out of errors
	// Digest finds the SHA-256 of the whole object, in hex, among the headers
	// of an answer that is not about a part of it; may be nil.
	Digest func(http.Header) string
}

// Open returns the bytes of g.Object from g.Offset on. The host is asked for
// the listed object by its tag, or else by its time; and because not all hosts
// heed conditions, tag, time and length of the answer are compared too.
func (c *Client) Open(ctx context.Context, g Get) (io.ReadCloser, error) {
	method := http.MethodGet
	if g.atEnd() {
		method = http.MethodHead // a range without bytes cannot be asked for
	}
	req, err := g.request(ctx, method)
	if err != nil {
		return nil, err
	}
	resp, err := c.Do(req, g.Secrets...)
	if err != nil {
		return nil, err
	}
	skip, rest, err := g.extent(resp)
	if err != nil {
		resp.Body.Close()
		return nil, fmt.Errorf("%s %s: %w", method, Shown(g.URL), err)
	}
	r := &objectReader{body: resp.Body, skip: skip, rest: rest}
	if g.Digest != nil {
		r.digest = c.digest(ctx, g, resp)
	}
	if g.atEnd() {
		resp.Body.Close()
		r.body, r.skip, r.rest = http.NoBody, 0, 0
	}
	return r, nil
}

// digest returns the hash of the whole object. An answer with a part of it may
// have that of the part, so the host is asked once more then, unless the object
// has an MD5 to be checked by. A host that does not say has none.
func (c *Client) digest(ctx context.Context, g Get, resp *http.Response) string {
	switch {
	case resp.StatusCode != http.StatusPartialContent:
		return g.Digest(resp.Header)
	case g.Object.MD5 != "":
		return ""
	}
	g.Offset = 0
	req, err := g.request(ctx, http.MethodHead)
	if err != nil {
		return ""
	}
	whole, err := c.Do(req, g.Secrets...)
	if err != nil {
		return ""
	}
	whole.Body.Close()
	return g.Digest(whole.Header)
}

func (g Get) atEnd() bool { return g.Offset > 0 && g.Offset == g.Object.Size }

func (g Get) request(ctx context.Context, method string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, g.URL.String(), nil)
	if err != nil {
		return nil, err
	}
	as := *g.URL // String and Parse need not agree on odd names
	req.URL = &as
	tag := g.Object.ETag
	switch {
	case tag != "" && !weak(tag):
		req.Header.Set("If-Match", quoted(tag))
	case !g.Object.ModTime.IsZero():
		req.Header.Set("If-Unmodified-Since", g.Object.ModTime.UTC().Format(http.TimeFormat))
	}
	if g.Offset > 0 && !g.atEnd() {
		req.Header.Set("Range", "bytes="+strconv.FormatInt(g.Offset, 10)+"-")
		switch {
		case tag != "" && !weak(tag):
			req.Header.Set("If-Range", quoted(tag))
		case !g.Object.ModTime.IsZero():
			req.Header.Set("If-Range", g.Object.ModTime.UTC().Format(http.TimeFormat))
		}
	}
	if g.Sign != nil {
		return req, g.Sign(req)
	}
	return req, nil
}

// extent compares the answer with the object and returns how many bytes of it
// come too early and how many are wanted; -1 where the host does not say.
func (g Get) extent(resp *http.Response) (skip, rest int64, err error) {
	if err := g.same(resp); err != nil {
		return 0, 0, err
	}
	total := resp.ContentLength
	skip = g.Offset // the answer is the whole object: the host does not support ranges
	if resp.StatusCode == http.StatusPartialContent {
		first, length, ok := contentRange(resp.Header.Get("Content-Range"))
		if !ok || first != g.Offset {
			return 0, 0, fmt.Errorf("asked for bytes from %d, the answer is %q", g.Offset, resp.Header.Get("Content-Range"))
		}
		total, skip = length, 0
	}
	size := g.Object.Size
	if size >= 0 && total >= 0 && size != total {
		return 0, 0, fmt.Errorf("%w: it has %d bytes, listed were %d", fetch.ErrChanged, total, size)
	}
	if size < 0 {
		size = total
	}
	if size < 0 {
		return skip, -1, nil
	}
	return skip, size - g.Offset, nil
}

// same compares tag and time of the answer with the listed ones.
func (g Get) same(resp *http.Response) error {
	listed, now := g.Object.ETag, Tag(resp.Header.Get("ETag"))
	if listed != "" && now != "" {
		if strings.TrimPrefix(listed, "W/") != strings.TrimPrefix(now, "W/") {
			return fmt.Errorf("%w: its tag is %s, listed was %s", fetch.ErrChanged, now, listed)
		}
		return nil
	}
	modified, err := http.ParseTime(resp.Header.Get("Last-Modified"))
	if err == nil && !g.Object.ModTime.IsZero() && modified.After(g.Object.ModTime) {
		return fmt.Errorf("%w: it was modified at %v, listed was %v", fetch.ErrChanged, modified, g.Object.ModTime)
	}
	return nil
}

// maxTagBytes is the longest version tag that is kept: hosts make them of
// hashes and times.
const maxTagBytes = 1 << 10

// Tag returns the text of an ETag header without its quotes; a weak one keeps
// its mark. One that is too long to be a tag is dropped.
func Tag(header string) string {
	if len(header) > maxTagBytes {
		return ""
	}
	mark := ""
	if weak(header) {
		mark, header = "W/", header[2:]
	}
	return mark + strings.Trim(header, `"`)
}

func weak(tag string) bool { return strings.HasPrefix(tag, "W/") }

func quoted(tag string) string { return `"` + tag + `"` }

// contentRange reads "bytes 5-9/10"; the length is -1 where it is a star.
func contentRange(header string) (first, length int64, ok bool) {
	extent, total, ok := strings.Cut(strings.TrimPrefix(header, "bytes "), "/")
	if !ok {
		return 0, 0, false
	}
	start, _, _ := strings.Cut(extent, "-")
	first, err := strconv.ParseInt(start, 10, 64)
	if err != nil {
		return 0, 0, false
	}
	length, err = strconv.ParseInt(total, 10, 64)
	if err != nil {
		length = -1
	}
	return first, length, true
}

// objectReader delivers as many bytes as the object has, no fewer and no more.
type objectReader struct {
	body io.ReadCloser
	skip int64 // bytes to drop first
	rest int64 // bytes to come; -1: not known

	digest string
}

// Digest returns the SHA-256 that the host gives of the whole object.
func (r *objectReader) Digest() string { return r.digest }

// Read delivers the next bytes of the object.
func (r *objectReader) Read(p []byte) (int, error) {
	if r.skip > 0 {
		n, err := io.CopyN(io.Discard, r.body, r.skip)
		r.skip -= n
		if err != nil {
			return 0, unexpected(err)
		}
	}
	n, err := r.body.Read(p)
	if r.rest < 0 {
		return n, err
	}
	if int64(n) > r.rest {
		return 0, fmt.Errorf("%w: it has more bytes than listed", fetch.ErrChanged)
	}
	r.rest -= int64(n)
	if errors.Is(err, io.EOF) && r.rest > 0 {
		return n, unexpected(err)
	}
	return n, err
}

// unexpected turns an end that came too early into an error.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Close ends the answer.
func (r *objectReader) Close() error { return r.body.Close() }
