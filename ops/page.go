package ops

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"lacuna/internal/figure"
)

//go:embed web
var web embed.FS

// pages are the templates, by name. Each is one HTML page that needs nothing
// from elsewhere and reads without a script.
type pages map[string]*template.Template

// newPages parses the embedded templates. That they parse is a matter of the
// build, so it panics where they do not.
func newPages() pages {
	all := pages{}
	base := template.Must(template.New("base.html").Funcs(pageFuncs()).ParseFS(web, "web/base.html", "web/parts.html"))
	for _, name := range []string{"overview", "calendar", "day", "granule", "listing", "models"} {
		all[name] = template.Must(template.Must(base.Clone()).ParseFS(web, "web/"+name+".html"))
	}
	return all
}

// view is the data of a page.
type view struct {
	Page      string
	Title     string
	Status    Status
	Stamp     string // stamp of the status, see feed
	HasModels bool
	Acts      bool // actions are offered
	Body      any
}

func (p pages) render(body *bytes.Buffer, v view) error { return p[v.Page].Execute(body, v) }

func pageFuncs() template.FuncMap {
	return template.FuncMap{
		"action":   actionOf,
		"ago":      figure.Ago,
		"base":     path.Base,
		"bytes":    figure.Bytes,
		"calendar": calendarPath,
		"count":    figure.Count,
		"day":      dayOf,
		"dayPath":  dayPath,
		"granule":  granulePath,
		"lag":      func(now, t time.Time) string { return figure.Duration(max(0, now.Sub(t))) },
		"mark":     markOf,
		"moment":   func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") },
		"number":   figure.Number,
		"outcome":  outcomeOf,
		"percent":  figure.Percent,
		"product":  ProductURL,
		"stand":    standOf,
		"state":    stateClass,
		"tall":     func(s DayState) int { _, tall := s.bar(); return tall },
		"top":      func(s DayState) int { top, _ := s.bar(); return top },
		"utc":      utc,
	}
}

// assets are the embedded files that pages refer to, with their types. The
// content security policy wants them as files of their own.
func assets() map[string]string {
	return map[string]string{
		"style.css": "text/css; charset=utf-8", "icon.svg": "image/svg+xml",
		"live.js": javaScript, "calendar.js": javaScript, "map.js": javaScript, "view.js": javaScript, "steer.js": javaScript, "colour.js": javaScript, "act.js": javaScript,
	}
}

const javaScript = "text/javascript; charset=utf-8"

// serveAsset answers with an embedded file.
func serveAsset(name, contentType string) http.HandlerFunc {
	asset, err := web.ReadFile("web/" + name)
	if err != nil {
		panic("ops: no embedded file " + name)
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Cache-Control", "no-cache") // the next version of the program may have another
		_, _ = w.Write(asset)                       // fails only where the client has left
	}
}

// dayOf is the date, with the time of day where it is not midnight.
func dayOf(t time.Time) string {
	t = t.UTC()
	switch {
	case t.IsZero():
		return "–"
	case t.Equal(t.Truncate(24 * time.Hour)):
		return t.Format(time.DateOnly)
	default:
		return t.Format("2006-01-02 15:04")
	}
}

// utc is t for machines.
func utc(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// marked is a text with the class that shows how it is meant: the shape of its
// mark and its colour.
type marked struct{ Class, Text string }

// actionOf returns the word for an entry of the log of promotions.
func actionOf(action string) marked {
	switch action {
	case "promote":
		return marked{"good", "promoted"}
	case "rollback":
		return marked{"warn", "rolled back to"}
	case "refuse":
		return marked{"warn", "refused"}
	case "unjudged":
		return marked{"bad", "could not be judged"}
	}
	return marked{"idle", action}
}

// outcomeOf returns the word for the end of a training.
func outcomeOf(state string) marked {
	switch state {
	case "promoted", "refused", "unjudged":
		return actionOf(map[string]string{"promoted": "promote", "refused": "refuse", "unjudged": "unjudged"}[state])
	case "waiting":
		return marked{"busy", "won, and waits for an operator"}
	case "written":
		return marked{"idle", "written, and not to be promoted"}
	case "failed":
		return marked{"bad", "failed"}
	case "cancelled":
		return marked{"idle", "cancelled"}
	}
	return marked{"idle", state}
}

// standOf returns the word for what a training is at.
func standOf(state string) marked {
	switch state {
	case "training":
		return marked{"busy", "training"}
	case "paused":
		return marked{"warn", "paused"}
	case "resting", "window", "unfinished":
		return marked{"idle", map[string]string{"resting": "rests", "window": "waits for its time", "unfinished": "half done"}[state]}
	case "shadow":
		return marked{"busy", "in shadow days"}
	}
	return marked{"idle", "not training"}
}

// stateClass returns the class of a state of a version.
func stateClass(state string) string {
	switch {
	case strings.HasPrefix(state, "champion"):
		return "good"
	case state == "refused", state == "rolled back":
		return "warn"
	case state == "not judged":
		return "bad"
	}
	return ""
}

// markOf takes the mark of the gate off a reason.
func markOf(reason string) marked {
	if text, against := strings.CutPrefix(reason, "against: "); against {
		return marked{"bad", text}
	}
	return marked{"", strings.TrimPrefix(reason, "ok: ")}
}

// ProductURL returns the path at which a file below the folder of products is
// served, given its name with slashes.
func ProductURL(file string) string {
	parts := strings.Split(file, "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return "/products/" + strings.Join(parts, "/")
}

func calendarPath(dataset string) string { return "/datasets/" + url.PathEscape(dataset) }

func dayPath(dataset string, t time.Time) string {
	return calendarPath(dataset) + "/" + t.UTC().Format(time.DateOnly)
}

// granulePath is the page of a granule; revision 0 is the newest.
func granulePath(dataset, name string, revision int) string {
	query := url.Values{"dataset": {dataset}, "name": {name}}
	if revision > 0 {
		query.Set("revision", strconv.Itoa(revision))
	}
	return "/granule?" + query.Encode()
}
