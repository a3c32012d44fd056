package ops

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"
)

//go:embed web/status.html
var statusHTML string

//go:embed web/style.css
var styleCSS []byte

//go:embed web/icon.svg
var iconSVG []byte

// page is the status for people: one HTML page that needs no script and
// nothing from elsewhere.
type page struct{ template *template.Template }

// newPage parses the embedded template. That it parses is a matter of the
// build, so it panics where it does not.
func newPage() *page {
	return &page{template: template.Must(template.New("status").Funcs(template.FuncMap{
		"ago":     ago,
		"base":    path.Base,
		"day":     day,
		"percent": percent,
		"product": productURL,
		"total":   total,
		"utc":     utc,
	}).Parse(statusHTML))}
}

func (p *page) render(body *bytes.Buffer, s Status) error { return p.template.Execute(body, s) }

// serveAsset answers with an embedded file. The content security policy wants
// the look of the page as a file of its own.
func serveAsset(contentType string, asset []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Cache-Control", "no-cache") // the next version of the program may have another
		_, _ = w.Write(asset)                       // fails only where the client has left
	}
}

// ago says how long before now t was, as coarsely as people do.
func ago(now, t time.Time) string {
	d := now.Sub(t)
	switch {
	case t.IsZero():
		return "never"
	case d < time.Second:
		return "just now"
	case d < time.Minute:
		return fmt.Sprintf("%d s ago", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", d/time.Hour)
	default:
		return fmt.Sprintf("%d days ago", d/(24*time.Hour))
	}
}

// day is the date, with the time of day where it is not midnight.
func day(t time.Time) string {
	t = t.UTC()
	switch {
	case t.IsZero():
		return "-"
	case t.Equal(t.Truncate(24 * time.Hour)):
		return t.Format(time.DateOnly)
	default:
		return t.Format("2006-01-02 15:04")
	}
}

// utc is t for machines.
func utc(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// percent writes a share. All but complete is not complete: it never rounds
// up to 100.
func percent(share float64) string {
	if share < 1 && share > 0.999 {
		return "99.9 %"
	}
	return fmt.Sprintf("%.1f %%", 100*share)
}

// productURL is where a file of the product folder is served.
func productURL(file string) string {
	parts := strings.Split(file, "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return "/products/" + strings.Join(parts, "/")
}

func total(states []StateCount) int {
	n := 0
	for _, s := range states {
		n += s.Granules
	}
	return n
}
