package ops

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
)

// handler answers requests. Its pages are made in memory first, so that a
// failure never leaves half a page behind a 200.
type handler struct {
	src   Sources
	pages pages
	feed  *feed
	maps  *mapCache
	acts  *actions
	log   *slog.Logger
}

func newHandler(src Sources, tokenFile string, log *slog.Logger) *handler {
	return &handler{
		src: src, pages: newPages(), feed: newFeed(src.Status), maps: newMapCache(src.Granules),
		acts: newActions(src, tokenFile, log), log: log,
	}
}

// routes returns the handlers of all paths.
func (h *handler) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", h.page(h.overview))
	mux.HandleFunc("/datasets/{dataset}", h.page(h.calendar))
	mux.HandleFunc("/datasets/{dataset}/{day}", h.page(h.day))
	mux.HandleFunc("/granule", h.page(h.granule))
	mux.HandleFunc("/models", h.page(h.models))
	mux.HandleFunc("/models/{picture}", h.servePicture)
	mux.HandleFunc("/map", h.serveMap)
	mux.HandleFunc("/status.json", h.serveJSON)
	mux.Handle("/events", h.feed)
	for name, contentType := range assets() {
		mux.HandleFunc("/"+name, serveAsset(name, contentType))
	}
	mux.HandleFunc("/healthz", serveHealth)
	mux.HandleFunc("/readyz", h.serveReady)
	mux.HandleFunc("/products/{dataset}/{$}", h.serveListing)
	mux.HandleFunc("/products/{dataset}/latest", h.serveLatest)
	files := http.StripPrefix("/products/", productFiles{folder: h.src.Products})
	mux.Handle("/products/{file}", files) // else it would be redirected to a listing
	mux.Handle("/products/", files)
	all := http.NewServeMux()
	all.Handle("/actions/", h.acts)
	all.Handle("/", readOnly(mux))
	return secured(all)
}

// page answers with the page that fill makes of the status and the request.
// Fill may return an *elsewhere, which redirects.
func (h *handler) page(fill func(ctx context.Context, r *http.Request, v *view) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		status, err := h.src.Status(r.Context())
		v := view{
			Status: status, Stamp: stampOf(status), HasModels: h.src.Models != nil, Acts: h.acts.offered(),
		}
		if err == nil {
			err = fill(r.Context(), r, &v)
		}
		var body bytes.Buffer
		if err == nil {
			err = h.pages.render(&body, v)
		}
		var moved *elsewhere
		switch {
		case errors.As(err, &moved):
			http.Redirect(w, r, moved.path, http.StatusSeeOther)
		case err != nil:
			h.fail(w, r, err)
		default:
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.Header().Set("Cache-Control", "no-store") // yesterday's status is worse than none
			_, _ = w.Write(body.Bytes())                // fails only where the client has left
		}
	}
}

// elsewhere redirects to another path of this server.
type elsewhere struct{ path string }

func (e *elsewhere) Error() string { return "to be found at " + e.path }

// serveJSON answers with the status for programs.
func (h *handler) serveJSON(w http.ResponseWriter, r *http.Request) {
	status, err := h.src.Status(r.Context())
	var body bytes.Buffer
	if err == nil {
		err = renderJSON(&body, status)
	}
	if err != nil {
		h.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(body.Bytes()) // fails only where the client has left
}

// serveReady answers 200 while every stage runs and makes progress.
func (h *handler) serveReady(w http.ResponseWriter, r *http.Request) {
	status, err := h.src.Status(r.Context())
	switch {
	case err != nil:
		h.fail(w, r, err)
	case !status.Ready:
		http.Error(w, whyNotReady(status), http.StatusServiceUnavailable)
	default:
		writeLine(w, "ready")
	}
}

// whyNotReady returns why a service is not ready.
func whyNotReady(s Status) string {
	if s.Hung != "" {
		return s.Hung + " is at work and shows no sign of life"
	}
	for _, d := range s.Datasets {
		if d.Stalled {
			return "intake of " + d.Name + " gets on with nothing"
		}
	}
	return "starting or stopping"
}

// fail answers 404, or 503 for other errors. The reason goes to the log, where
// only the operator reads it.
func (h *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, ErrNotFound) {
		http.NotFound(w, r)
		return
	}
	if r.Context().Err() == nil { // else the client left, which is no event
		h.log.Warn("page not available", "path", r.URL.Path, "err", err)
	}
	http.Error(w, "not available now; the log says why", http.StatusServiceUnavailable)
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
	s.Alarms = append([]Alarm{}, s.Alarms...)
	if s.Fleet != nil {
		fleet := *s.Fleet
		fleet.Workers = append([]FleetWorker{}, fleet.Workers...)
		s.Fleet = &fleet
	}
	for i := range s.Datasets {
		s.Datasets[i].States = append([]StateCount{}, s.Datasets[i].States...)
	}
	return s
}
