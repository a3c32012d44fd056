package ops

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
)

// handler answers requests. Its pages are made in memory first, so that a
// failure never leaves half a page behind a 200.
type handler struct {
	status func(context.Context) (Status, error)
	page   *page
	log    *slog.Logger
}

// newHandler returns the routes of the server.
func newHandler(products string, status func(context.Context) (Status, error), log *slog.Logger) http.Handler {
	h := &handler{status: status, page: newPage(), log: log}
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", h.serveStatus("text/html; charset=utf-8", h.page.render))
	mux.HandleFunc("/status.json", h.serveStatus("application/json", renderJSON))
	mux.HandleFunc("/style.css", serveAsset("text/css; charset=utf-8", styleCSS))
	mux.HandleFunc("/icon.svg", serveAsset("image/svg+xml", iconSVG))
	mux.HandleFunc("/healthz", serveHealth)
	mux.HandleFunc("/readyz", h.serveReady)
	mux.Handle("/products/", http.StripPrefix("/products/", productFiles{folder: products}))
	return readOnly(secured(mux))
}

// serveStatus answers with the status as render writes it.
func (h *handler) serveStatus(contentType string, render func(*bytes.Buffer, Status) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		status, err := h.status(r.Context())
		var body bytes.Buffer
		if err == nil {
			err = render(&body, status)
		}
		if err != nil {
			h.fail(w, r, err)
			return
		}
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Cache-Control", "no-store") // yesterday's status is worse than none
		_, _ = w.Write(body.Bytes())                // fails only where the client has left
	}
}

// serveReady answers 200 once every stage runs, for those who wait for it.
func (h *handler) serveReady(w http.ResponseWriter, r *http.Request) {
	status, err := h.status(r.Context())
	switch {
	case err != nil:
		h.fail(w, r, err)
	case !status.Ready:
		http.Error(w, "starting or stopping", http.StatusServiceUnavailable)
	default:
		writeLine(w, "ready")
	}
}

// fail answers that there is no status now. The reason goes to the log, where
// only the operator reads it.
func (h *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() == nil { // else the client left, which is no event
		h.log.Warn("status not available", "path", r.URL.Path, "err", err)
	}
	http.Error(w, "status not available; the log says why", http.StatusServiceUnavailable)
}

// serveHealth answers 200 while the process answers at all.
func serveHealth(w http.ResponseWriter, _ *http.Request) { writeLine(w, "ok") }

func writeLine(w http.ResponseWriter, line string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = io.WriteString(w, line+"\n") // fails only where the client has left
}

// renderJSON writes s for programs.
func renderJSON(body *bytes.Buffer, s Status) error {
	enc := json.NewEncoder(body)
	enc.SetIndent("", "  ")
	return enc.Encode(withLists(s))
}

// withLists returns s with empty lists for absent ones, for programs stumble
// over null.
func withLists(s Status) Status {
	s.Datasets = append([]Dataset{}, s.Datasets...)
	s.Products = append([]Product{}, s.Products...)
	s.Quarantine = append([]Quarantined{}, s.Quarantine...)
	s.Sinks = append([]Sink{}, s.Sinks...)
	s.Disks = append([]Disk{}, s.Disks...)
	for i := range s.Datasets {
		s.Datasets[i].States = append([]StateCount{}, s.Datasets[i].States...)
	}
	return s
}

// readOnly refuses everything but reading.
func readOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "this server is read-only", http.StatusMethodNotAllowed)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// secured sets the headers that keep a browser from doing more with an answer
// than showing it: no scripts, nothing from elsewhere, no frames, no guessing
// of types.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", "default-src 'self'; script-src 'none'; object-src 'none'; "+
			"base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		next.ServeHTTP(w, r)
	})
}
