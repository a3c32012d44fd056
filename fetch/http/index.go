package http

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"

	"golang.org/x/net/html"

	"lacuna/fetch"
	"lacuna/fetch/web"
)

// listing is one listing of the archive under way.
type listing struct {
	archive *Archive
	auth    auth
	scope   fetch.Scope
	rows    []row // files that the host must be asked about
	names   map[string]bool
	objects []fetch.Object
	unread  fetch.Unread
	bound   *fetch.Bound
}

// row is the line of a file on a page or in a manifest.
type row struct {
	name             string // below the root
	text             string // text beside the name; the host is asked again where it differs
	md5, digest, tag string // from the manifest; they outrank the host's answer
}

// folder reads the index page of a folder, a path below the root, and those of
// the folders below it. Its error means that nothing else can be listed.
func (l *listing) folder(ctx context.Context, name string, depth int) error {
	rows, folders, err := l.page(ctx, name)
	var status *web.StatusError
	switch {
	case name != "" && errors.As(err, &status) && !errors.Is(err, fetch.ErrPermanent):
		l.unread.Add(err)
		return nil
	case err != nil && !errors.Is(err, fetch.ErrUnacceptable):
		return err
	}
	for _, r := range rows {
		l.add(r)
	}
	if err != nil {
		return err
	}
	for _, below := range folders {
		if !l.scope.Reaches(below) {
			continue
		}
		if depth >= l.archive.cfg.Depth {
			l.unread.Add(fmt.Errorf("folder %s lies deeper than depth %d", below, l.archive.cfg.Depth))
			continue
		}
		if err := l.folder(ctx, below, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// add adds a row, once.
func (l *listing) add(r row) {
	if l.names == nil {
		l.names = map[string]bool{}
	}
	if l.names[r.name] || fetch.Unfinished(r.name) || !l.scope.Holds(r.name) {
		return
	}
	l.names[r.name] = true
	l.rows = append(l.rows, r)
}

// page reads the index page of one folder.
func (l *listing) page(ctx context.Context, name string) (rows []row, folders []string, err error) {
	folder := name
	if folder != "" {
		folder += "/"
	}
	resp, err := l.document(ctx, folder)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	links, err := readIndex(resp.Body, resp.Request.URL, l.bound)
	if err != nil {
		err = fmt.Errorf("read index of %q: %w", name, err)
	}
	for _, link := range links {
		below := path.Join(name, strings.TrimSuffix(link.name, "/"))
		switch {
		case !strings.HasSuffix(link.name, "/"):
			rows = append(rows, row{name: below, text: link.text})
		case !fetch.Unfinished(below):
			folders = append(folders, below)
		}
	}
	return rows, folders, err
}

// document gets a page or manifest. A redirect is refused: a login page, or the
// page of another folder, would pass for an archive without files.
func (l *listing) document(ctx context.Context, name string) (*http.Response, error) {
	resp, err := l.get(ctx, http.MethodGet, name)
	if err != nil {
		return nil, err
	}
	asked, got := l.archive.at(name), resp.Request.URL
	if got.Scheme != asked.Scheme || got.Host != asked.Host || got.Path != asked.Path {
		resp.Body.Close()
		return nil, fmt.Errorf("%s leads to %s; set url to where the files are", web.Shown(asked), web.Shown(got))
	}
	return resp, nil
}

// get makes a request for something below the root. That the host forbids a
// listing is permanent.
func (l *listing) get(ctx context.Context, method, name string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, l.archive.at(name).String(), nil)
	if err != nil {
		return nil, err
	}
	if err := l.auth.sign(req); err != nil {
		return nil, err
	}
	resp, err := l.archive.client.Do(req, l.auth.secrets()...)
	var status *web.StatusError
	if errors.As(err, &status) && status.Code == http.StatusForbidden && method == http.MethodGet && name == l.archive.cfg.Manifest {
		return nil, fmt.Errorf("%w: %w; ask for access or correct url", fetch.ErrPermanent, err)
	}
	return resp, err
}

// errNoIndex keeps a page that says something else, such as that the host is
// under repair, from passing for an archive without files.
var errNoIndex = errors.New("it does not look like an index; correct url or give a manifest")

const (
	// maxTextBytes is the longest text kept beside a link: names, times and
	// sizes have a hundred bytes.
	maxTextBytes = 512
	// maxTokenBytes bounds a piece of a page between two tags, scripts among
	// them.
	maxTokenBytes = 1 << 20
)

// readIndex returns the links of an index page that lead to files and folders
// directly below it, with the text beside them. Links to sort the page, to the
// folder above and to anywhere else are none of these. Where bound is reached,
// the links up to there come with the error.
func readIndex(page io.Reader, at *url.URL, bound *fetch.Bound) ([]row, error) {
	var links []row
	var open, index bool // beside a link that counts; something of an index was seen
	tokens := html.NewTokenizer(bound.Reader(page))
	tokens.SetMaxBuf(maxTokenBytes)
	for {
		switch tokens.Next() {
		case html.ErrorToken:
			err := tokens.Err()
			switch {
			case !errors.Is(err, io.EOF):
				return links, err
			case len(links) == 0 && !index:
				return nil, errNoIndex
			}
			return links, nil
		case html.TextToken:
			text := strings.TrimSpace(string(tokens.Text()))
			index = index || announces(text)
			if last := len(links) - 1; open && len(links[last].text) < maxTextBytes {
				links[last].text += " " + text[:min(len(text), maxTextBytes)]
			}
		case html.StartTagToken:
			token := tokens.Token()
			if token.Data != "a" {
				continue
			}
			name, ok := below(at, token.Attr)
			open = ok
			if !ok || len(links) > 0 && links[len(links)-1].name == name { // its picture is a link too
				continue
			}
			if err := bound.Entry(); err != nil {
				return links, err
			}
			links = append(links, row{name: name})
		}
	}
}

// announces reports whether text is a heading that servers give an index, or a
// link to the parent folder.
func announces(text string) bool {
	text = strings.ToLower(text)
	return text == "../" || text == ".." || strings.HasPrefix(text, "index of") ||
		strings.HasPrefix(text, "directory listing") || strings.HasPrefix(text, "parent directory")
}

// below returns the last part of where a link leads, if that lies directly
// below the page.
func below(at *url.URL, attributes []html.Attribute) (string, bool) {
	for _, attribute := range attributes {
		if attribute.Key != "href" {
			continue
		}
		to, err := at.Parse(attribute.Val)
		if err != nil || to.Scheme != at.Scheme || to.Host != at.Host || to.RawQuery != "" || to.ForceQuery || to.Fragment != "" {
			return "", false
		}
		folder := at.Path[:strings.LastIndex(at.Path, "/")+1]
		name, ok := strings.CutPrefix(to.Path, folder)
		inner := strings.TrimSuffix(name, "/")
		return name, ok && inner != "" && inner != "." && inner != ".." && !strings.Contains(inner, "/")
	}
	return "", false
}

// askers is the number of HEAD requests at a time; the pacer spaces them out.
const askers = 8

// ask completes the rows that the host has not been asked about, or that look
// different since, and adds their objects.
func (l *listing) ask(ctx context.Context) error {
	found := make([]*fetch.Object, len(l.rows))
	errs := make([]error, len(l.rows))
	next := make(chan int)
	enough, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	for range min(askers, len(l.rows)) {
		wg.Go(func() {
			for i := range next {
				if found[i], errs[i] = l.describe(enough, l.rows[i]); errs[i] != nil {
					stop() // the others would fail alike, or are asked next time
				}
			}
		})
	}
	for i := range l.rows {
		if enough.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	wg.Wait()
	for _, o := range found {
		if o != nil {
			l.objects = append(l.objects, *o)
		}
	}
	for _, err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
	}
	return ctx.Err()
}

// describe returns the object of a row; nil if it has vanished.
func (l *listing) describe(ctx context.Context, r row) (*fetch.Object, error) {
	a := l.archive
	a.mu.Lock()
	seen, ok := a.known[r.name]
	a.mu.Unlock()
	if ok && seen.row == r.text && strings.ContainsAny(r.text, "0123456789") {
		return &seen.object, nil
	}
	resp, err := l.get(ctx, http.MethodHead, r.name)
	var status *web.StatusError
	if errors.As(err, &status) && (status.Code == http.StatusNotFound || status.Code == http.StatusGone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	resp.Body.Close()
	if l.scope.Progress != nil {
		l.scope.Progress()
	}
	if resp.ContentLength < 0 {
		return nil, fmt.Errorf("the host does not give the length of %s, so a cut download could pass for a whole one", r.name)
	}
	o := fetch.Object{Name: r.name, Size: resp.ContentLength, ETag: web.Tag(resp.Header.Get("ETag"))}
	if modified, err := http.ParseTime(resp.Header.Get("Last-Modified")); err == nil {
		o.ModTime = modified.UTC()
	}
	o.MD5, o.Digest = r.md5, r.digest
	if r.tag != "" {
		o.ETag = r.tag
	}
	a.mu.Lock()
	a.known[r.name] = sighting{row: r.text, object: o}
	a.mu.Unlock()
	return &o, nil
}
