package ops

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// overviewBody is the data of the overview beside the status.
type overviewBody struct {
	Rows                  []row
	Products              []Product // the newest
	StripDays, StripWidth int
}

// shownProducts is the number of products on the overview: two rows of
// pictures.
const shownProducts = 6

// mostStrips bounds the strips of the overview: each reads the ledger.
const mostStrips = 24

func (h *handler) overview(ctx context.Context, _ *http.Request, v *view) error {
	v.Page, v.Title = "overview", "Overview"
	body := overviewBody{Products: v.Status.Products[:min(shownProducts, len(v.Status.Products))], StripDays: stripDays, StripWidth: stripDays * stripStep}
	for i, d := range v.Status.Datasets {
		r := newRow(d, v.Status.Alarms)
		if h.src.Days != nil && i < mostStrips {
			var err error
			if r.Strip, err = h.strip(ctx, d.Name); err != nil {
				return err
			}
		}
		body.Rows = append(body.Rows, r)
	}
	v.Body = body
	return nil
}

func (h *handler) strip(ctx context.Context, dataset string) (*strip, error) {
	first, last, err := h.src.Days.Span(ctx, dataset)
	if err != nil || last.IsZero() {
		return nil, err
	}
	days, err := h.src.Days.Days(ctx, dataset, last.AddDate(0, 0, -stripDays), last)
	return newStrip(first, last, days), err
}

func (h *handler) calendar(ctx context.Context, r *http.Request, v *view) error {
	dataset := r.PathValue("dataset")
	if h.src.Days == nil {
		return ErrNotFound
	}
	first, last, err := h.src.Days.Span(ctx, dataset)
	if err != nil {
		return err
	}
	v.Page, v.Title = "calendar", dataset
	if last.IsZero() {
		v.Body = calendar{Dataset: dataset}
		return nil
	}
	shown := last
	if until := r.URL.Query().Get("until"); until != "" {
		year, err := strconv.Atoi(until)
		if err != nil || year < first.Year() || year > last.Year() {
			return ErrNotFound
		}
		if year < last.Year() {
			shown = time.Date(year, time.December, 31, 0, 0, 0, 0, time.UTC)
		}
	}
	from := time.Date(shown.Year()-calendarYears+1, time.January, 1, 0, 0, 0, 0, time.UTC)
	days, err := h.src.Days.Days(ctx, dataset, from, shown.AddDate(0, 0, 1))
	if err != nil {
		return err
	}
	c := newCalendar(dataset, first, shown, days)
	if from.After(first) {
		c.Older = from.Year() - 1
	}
	if shown.Before(last) {
		c.Newer = min(shown.Year()+calendarYears, last.Year())
	}
	v.Body = c
	return nil
}

// dayBody is the data of the page of a day.
type dayBody struct {
	Dataset  string
	Day      time.Time
	Granules []GranuleLine
}

// day shows the granules of a day. A day of one granule is that granule.
func (h *handler) day(ctx context.Context, r *http.Request, v *view) error {
	dataset := r.PathValue("dataset")
	date, err := time.Parse(time.DateOnly, r.PathValue("day"))
	if err != nil || h.src.Granules == nil {
		return ErrNotFound
	}
	granules, err := h.src.Granules.OfDay(ctx, dataset, date)
	if err != nil {
		return err
	}
	if len(granules) == 1 {
		id := granules[0].ID
		return &elsewhere{granulePath(id.Dataset, id.Name, id.Revision)}
	}
	v.Page, v.Title = "day", date.Format(time.DateOnly)+" "+dataset
	v.Body = dayBody{Dataset: dataset, Day: date, Granules: granules}
	return nil
}

// granuleBody is the data of the page of a granule.
type granuleBody struct {
	Granule       Granule
	Map           string // path of its maps; empty: none
	Field         int    // counted from 1
	Before, After string // the pages of the days around it
}

func (h *handler) granule(ctx context.Context, r *http.Request, v *view) error {
	id, field, err := granuleOf(r.URL.Query())
	if err != nil || h.src.Granules == nil {
		return ErrNotFound
	}
	g, err := h.src.Granules.Granule(ctx, id)
	if err != nil {
		return err
	}
	v.Page, v.Title = "granule", g.ID.Dataset+" "+g.ID.Name
	body := granuleBody{Granule: g, Field: field + 1}
	if g.Fields > 0 {
		body.Map = mapPath(g.ID)
	}
	if !g.First.IsZero() {
		v.Title = g.First.Format(time.DateOnly) + " " + g.ID.Dataset
		body.Before, body.After = dayPath(id.Dataset, g.First.AddDate(0, 0, -1)), dayPath(id.Dataset, g.First.AddDate(0, 0, 1))
	}
	v.Body = body
	return nil
}

// granuleOf reads which granule a request is about, and which of its fields,
// counted from 0.
func granuleOf(query url.Values) (id GranuleID, field int, err error) {
	id = GranuleID{Dataset: query.Get("dataset"), Name: query.Get("name")}
	for key, dst := range map[string]*int{"revision": &id.Revision, "field": &field} {
		if text := query.Get(key); text != "" {
			if *dst, err = strconv.Atoi(text); err != nil || *dst < 1 {
				return id, 0, fmt.Errorf("%s is %q, must be a number from 1", key, text)
			}
		}
	}
	if id.Dataset == "" || id.Name == "" {
		return id, 0, errors.New("the address lacks dataset or name")
	}
	return id, max(0, field-1), nil
}

// modelsBody is the data of the page of the models.
type modelsBody struct {
	Book    ModelBook
	Trained []Dataset // those that are trained
	Plots   []plot
	Others  []string // datasets whose plot is on a page of its own
}

// mostPlots bounds the plots of skill on a page, each of which has hundreds of dots.
const mostPlots = 6

type plot struct {
	Dataset, Drift string
	SVG            template.HTML
}

// models shows the models, and the skill of the dataset that was asked for; else of
// all, or of those that drift and the first of the others.
func (h *handler) models(ctx context.Context, r *http.Request, v *view) error {
	if h.src.Models == nil {
		return ErrNotFound
	}
	book, err := h.src.Models.Models(ctx)
	if err != nil {
		return err
	}
	body := modelsBody{Book: book}
	all := slices.Clone(v.Status.Datasets)
	for _, d := range all {
		if d.Train != nil {
			body.Trained = append(body.Trained, d)
		}
	}
	asked := r.URL.Query().Get("dataset")
	turn := func(d Dataset) int {
		switch {
		case d.Name == asked:
			return 0
		case d.Drift != "":
			return 1
		}
		return 2
	}
	slices.SortStableFunc(all, func(a, b Dataset) int { return turn(a) - turn(b) })
	most := mostPlots
	if len(all) > 0 && all[0].Name == asked {
		most = 1
	}
	for _, d := range all {
		if len(body.Plots) == most {
			if d.Skill != nil {
				body.Others = append(body.Others, d.Name)
			}
			continue
		}
		points, err := h.src.Models.Skill(ctx, d.Name, skillsShown)
		if err != nil {
			return err
		}
		if len(points) > 0 {
			body.Plots = append(body.Plots, plot{Dataset: d.Name, Drift: d.Drift, SVG: plotSkill(d.Name, points)})
		}
	}
	v.Page, v.Title, v.Body = "models", "Models", body
	return nil
}

// servePicture answers with the picture of a version, which never changes.
func (h *handler) servePicture(w http.ResponseWriter, r *http.Request) {
	version, ok := strings.CutSuffix(r.PathValue("picture"), ".png")
	if !ok || h.src.Models == nil {
		http.NotFound(w, r)
		return
	}
	picture, err := h.src.Models.Picture(r.Context(), version)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "image/png")
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	w.Header().Set("Content-Length", strconv.Itoa(len(picture)))
	_, _ = w.Write(picture) // a visitor who left is none
}
