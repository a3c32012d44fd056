package s3

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"lacuna/fetch"
	"lacuna/fetch/web"
)

// List returns the objects below the prefix, page by page. The objects before a
// failed page come with the error.
func (a *Archive) List(ctx context.Context, scope fetch.Scope) ([]fetch.Object, error) {
	keys, err := a.keys()
	if err != nil {
		return nil, err
	}
	var objects []fetch.Object
	names := map[string]bool{}
	bound := scope.Bound("max_objects", a.cfg.MaxObjects)
	for _, root := range scope.Roots() {
		empty := 0 // pages in a row
		for token := ""; ; {
			p, err := a.page(ctx, keys, root, token, bound)
			if err != nil {
				return objects, fmt.Errorf("list bucket %s: %w", a.cfg.Bucket, listRefused(explain(err)))
			}
			if empty++; len(p.contents) > 0 {
				empty = 0
			}
			if empty > maxEmptyPages {
				return objects, fmt.Errorf("list bucket %s: %w: %d pages in a row show nothing and announce more", a.cfg.Bucket, fetch.ErrUnacceptable, empty)
			}
			found, err := a.objects(p, root, names)
			objects = append(objects, found...)
			if err != nil {
				return objects, fmt.Errorf("list bucket %s: %w", a.cfg.Bucket, err)
			}
			if !p.truncated {
				break
			}
			if p.next == "" || p.next == token {
				return objects, fmt.Errorf("list bucket %s: more pages are announced, but not how to ask for them", a.cfg.Bucket)
			}
			token = p.next
		}
	}
	return objects, nil
}

// maxPageBytes bounds a page: 10,000 keys, which some hosts send for 1000, of
// 1024 bytes, with room.
const maxPageBytes = 16 << 20

// maxEmptyPages is the number of pages in a row that may show nothing and
// announce another: hosts that skip deleted objects send a few.
const maxEmptyPages = 10

func (a *Archive) page(ctx context.Context, k keys, root, token string, bound *fetch.Bound) (*page, error) {
	query := url.Values{
		"list-type":     {"2"},
		"prefix":        {a.prefix + root},
		"max-keys":      {strconv.Itoa(a.cfg.PageObjects)},
		"encoding-type": {"url"}, // XML cannot hold every name
	}
	if token != "" {
		query.Set("continuation-token", token)
	}
	u := a.at("", query)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	if err := k.sign(req); err != nil {
		return nil, err
	}
	resp, err := a.client.Do(req, k.secrets()...)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	p, err := readPage(bound.Reader(io.LimitReader(resp.Body, maxPageBytes)), bound)
	if err != nil {
		return nil, fmt.Errorf("read listing: %w", noEOF(err))
	}
	return p, nil
}

// noEOF makes the early end of a listing an error that nobody takes for io.EOF.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// objects returns the objects of root on page p. Folder markers and unfinished
// names are left out; a name outside root, or one that another page showed,
// means that the host answers another question than was asked.
func (a *Archive) objects(p *page, root string, names map[string]bool) ([]fetch.Object, error) {
	var objects []fetch.Object
	for _, c := range p.contents {
		key := c.Key
		if p.encoding == "url" {
			if plain, err := url.QueryUnescape(key); err == nil {
				key = plain
			}
		}
		if !strings.HasPrefix(key, a.prefix+root) {
			return objects, fmt.Errorf("the listing of %q shows %q", a.prefix+root, key)
		}
		name := key[len(a.prefix):]
		if names[name] {
			return objects, fmt.Errorf("the listing shows %q twice", key)
		}
		names[name] = true
		if name == "" || strings.HasSuffix(name, "/") || fetch.Unfinished(name) {
			continue
		}
		tag := web.Tag(c.ETag)
		objects = append(objects, fetch.Object{
			Name: name, Size: c.Size, ModTime: c.LastModified.UTC(), ETag: tag, MD5: a.md5(tag),
		})
	}
	return objects, nil
}

// md5 returns the MD5 in a tag, or nothing. The tag of an object uploaded in
// parts is a hash of hashes with a dash, not an MD5 of its bytes.
func (a *Archive) md5(tag string) string {
	if !a.cfg.ETagIsMD5 || len(tag) != 32 || strings.Trim(strings.ToLower(tag), "0123456789abcdef") != "" {
		return ""
	}
	return strings.ToLower(tag)
}

// explain adds the code of S3 to a refusal, which tells more than the status:
// some of them mean that no request will succeed with these keys.
func explain(err error) error {
	var status *web.StatusError
	if err == nil || !errors.As(err, &status) {
		return err
	}
	var told struct {
		XMLName xml.Name `xml:"Error"`
		Code    string
	}
	if xml.Unmarshal([]byte(status.Body), &told) != nil || !isCode(told.Code) {
		return err
	}
	switch told.Code {
	case "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "AccountProblem":
		return fmt.Errorf("%w: %s: %w; correct access_key and secret_key", fetch.ErrPermanent, told.Code, err)
	}
	return fmt.Errorf("%s: %w", told.Code, err)
}

// isCode keeps other texts than error codes of S3 out of messages.
func isCode(code string) bool {
	for _, r := range code {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return false
		}
	}
	return code != "" && len(code) <= 64
}

// listRefused marks a refusal to list as permanent: unlike that of one object,
// it leaves nothing to read. A wrong clock, which also is refused, may be put
// right.
func listRefused(err error) error {
	var status *web.StatusError
	if errors.As(err, &status) && status.Code == http.StatusForbidden &&
		!strings.Contains(status.Body, "RequestTimeTooSkewed") && !errors.Is(err, fetch.ErrPermanent) {
		return fmt.Errorf("%w: %w; give keys that may list the bucket", fetch.ErrPermanent, err)
	}
	return err
}
