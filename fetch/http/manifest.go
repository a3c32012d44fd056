package http

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"lacuna/fetch"
)

// sha256Tag begins the tag of an object whose SHA-256 the manifest gives: as a
// version tag it is as good as any.
const sha256Tag = "sha256:"

// manifest reads the manifest. Complete lines become objects at once, the host
// is asked about the others.
func (l *listing) manifest(ctx context.Context) error {
	resp, err := l.document(ctx, l.archive.cfg.Manifest)
	if err != nil {
		return fmt.Errorf("read manifest: %w", err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(l.bound.Reader(resp.Body))
	for number := 1; lines.Scan(); number++ {
		if err := l.bound.Entry(); err != nil {
			return fmt.Errorf("read manifest: %w", err)
		}
		line := strings.TrimRight(lines.Text(), "\r")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if len(l.names) == 0 && strings.HasPrefix(strings.TrimSpace(line), "<") {
			return errors.New("read manifest: it is a web page; correct manifest")
		}
		o, err := parseLine(line)
		if err != nil {
			l.unread.Add(fmt.Errorf("manifest line %d: %w", number, err))
			continue
		}
		l.take(o)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read manifest: %w", err)
	}
	return nil
}

// take adds the object of a line, or a question where the line leaves size or
// time open.
func (l *listing) take(o fetch.Object) {
	before := len(l.rows)
	claim := row{name: o.Name, text: o.MD5 + o.ETag, md5: o.MD5, digest: o.Digest, tag: o.ETag}
	if l.add(claim); len(l.rows) == before {
		return
	}
	if o.Size >= 0 && !o.ModTime.IsZero() {
		l.rows = l.rows[:before]
		l.objects = append(l.objects, o)
	}
}

// entry is a line of a manifest in JSON.
type entry struct {
	Name   string    `json:"name"`
	Size   *int64    `json:"size"` // bytes
	MTime  time.Time `json:"mtime"`
	MD5    string    `json:"md5"`
	SHA256 string    `json:"sha256"`
}

// parseLine reads a JSON object, a checksum and a name as md5sum and sha256sum
// print them, or a bare name.
func parseLine(line string) (fetch.Object, error) {
	if strings.HasPrefix(line, "{") {
		var e entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			return fetch.Object{}, err
		}
		return e.object()
	}
	e := entry{Name: line}
	if sum, name, ok := strings.Cut(line, " "); ok && isHex(sum) && len(name) > 1 && (name[0] == ' ' || name[0] == '*') {
		switch len(sum) {
		case 32:
			e = entry{Name: name[1:], MD5: sum}
		case 64:
			e = entry{Name: name[1:], SHA256: sum}
		}
	}
	return e.object()
}

func (e entry) object() (fetch.Object, error) {
	name := strings.TrimPrefix(e.Name, "./")
	switch {
	case name == "" || strings.HasPrefix(name, "/"):
		return fetch.Object{}, fmt.Errorf("name is %q, must be a path below the folder", e.Name)
	case e.Size != nil && *e.Size < 0:
		return fetch.Object{}, fmt.Errorf("size of %q is %d, must not be negative", name, *e.Size)
	case e.MD5 != "" && (len(e.MD5) != 32 || !isHex(e.MD5)):
		return fetch.Object{}, fmt.Errorf("md5 of %q is not 32 hexadecimal digits", name)
	case e.SHA256 != "" && (len(e.SHA256) != 64 || !isHex(e.SHA256)):
		return fetch.Object{}, fmt.Errorf("sha256 of %q is not 64 hexadecimal digits", name)
	}
	o := fetch.Object{Name: name, Size: -1, ModTime: e.MTime.UTC(), MD5: strings.ToLower(e.MD5)}
	if e.Size != nil {
		o.Size = *e.Size
	}
	if e.SHA256 != "" {
		o.Digest = strings.ToLower(e.SHA256)
		o.ETag = sha256Tag + o.Digest
	}
	return o, nil
}

func isHex(s string) bool {
	_, err := hex.DecodeString(s)
	return err == nil
}

// forgettingReader makes the next listing ask again about an object that
// turned out to be another.
type forgettingReader struct {
	io.ReadCloser
	forget func()
}

// Read reads on.
func (r *forgettingReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if errors.Is(err, fetch.ErrChanged) {
		r.forget()
	}
	return n, err
}
