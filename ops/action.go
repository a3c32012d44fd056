package ops

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"
)

const (
	shortestToken = 16       // bytes: too long to guess at the rate allowed here
	actionBytes   = 16 << 10 // limit of a request: a name and a sentence
)

// actions carries out the requests of visitors with the token. The token
// travels in a header that no browser adds by itself, so a page from elsewhere
// cannot act for a visitor; requests that come from such a page are refused
// before.
type actions struct {
	do        Actions
	tokenFile string
	log       *slog.Logger
	machine   Machine
	guesses   *guesses
	foreign   *http.CrossOriginProtection
}

func newActions(src Sources, tokenFile string, log *slog.Logger) *actions {
	return &actions{
		do: src.Actions, tokenFile: tokenFile, log: log, machine: src.Machine, guesses: newGuesses(time.Now),
		foreign: http.NewCrossOriginProtection(),
	}
}

// offered reports whether visitors may act at all.
func (a *actions) offered() bool { return a.do != nil && a.tokenFile != "" }

// ServeHTTP answers POST /actions/retry, /actions/redo and /actions/train.
func (a *actions) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !a.offered() {
		http.Error(w, "no action is allowed here; set web.token_file", http.StatusForbidden)
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "an action is a POST", http.StatusMethodNotAllowed)
		return
	}
	if err := a.foreign.Check(r); err != nil {
		http.Error(w, "a page from elsewhere asked for this", http.StatusForbidden)
		return
	}
	if !a.admit(w, r) {
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, actionBytes)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "the request cannot be read", http.StatusBadRequest)
		return
	}
	told, err := a.act(r.Context(), r)
	switch {
	case errors.Is(err, ErrNotFound):
		http.Error(w, "there is nothing of that name", http.StatusNotFound)
	case err != nil:
		a.log.Warn("action refused", "action", r.URL.Path, "err", err)
		http.Error(w, err.Error(), http.StatusConflict)
	default:
		a.log.Info("action taken", "action", r.URL.Path, "dataset", r.PostForm.Get("dataset"),
			"granule", r.PostForm.Get("granule"), "day", r.PostForm.Get("day"), "order", r.PostForm.Get("order"))
		writeLine(w, told)
	}
}

// admit reports whether a request has the token, and answers those without.
func (a *actions) admit(w http.ResponseWriter, r *http.Request) bool {
	token, err := readToken(a.machine, a.tokenFile)
	if err != nil {
		a.log.Warn("no action can be taken", "err", err)
		http.Error(w, "the token of this server cannot be read; the log says why", http.StatusServiceUnavailable)
		return false
	}
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		refuseToken(w)
		return false // no token was shown, so no guess is counted
	}
	who, known := a.guesses.who(r, token)
	settled, ok := a.guesses.turn(r.Context(), who, known)
	if !ok {
		w.Header().Set("Retry-After", "10")
		http.Error(w, "too many wrong tokens came, and this one was not looked at: wait a little", http.StatusTooManyRequests)
		return false
	}
	// Hashes, so that the time of the comparison does not depend on the length.
	want, have := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(given))
	right := subtle.ConstantTimeCompare(want[:], have[:]) == 1
	settled(right)
	switch {
	case !right:
		refuseToken(w)
	case !known:
		http.SetCookie(w, a.guesses.pass(token))
	}
	return right
}

func refuseToken(w http.ResponseWriter) {
	w.Header().Set("WWW-Authenticate", `Bearer realm="lacuna"`)
	http.Error(w, "the token is missing or wrong", http.StatusUnauthorized)
}

// act carries out a request and returns a sentence about it.
func (a *actions) act(ctx context.Context, r *http.Request) (string, error) {
	dataset := r.PostForm.Get("dataset")
	switch r.URL.Path {
	case "/actions/retry":
		return "it is taken up again", a.do.Retry(ctx, dataset, r.PostForm.Get("granule"))
	case "/actions/redo":
		day, err := time.Parse(time.DateOnly, r.PostForm.Get("day"))
		if err != nil {
			return "", errors.New("day must be a date like 2024-05-20")
		}
		why := strings.TrimSpace(r.PostForm.Get("why"))
		if why == "" {
			return "", errors.New("say why: the reason is kept with the new revision")
		}
		return "the day is made again", a.do.RedoDay(ctx, dataset, day, why)
	case "/actions/train":
		return a.do.Steer(ctx, dataset, r.PostForm.Get("order"))
	}
	return "", ErrNotFound
}

// CheckToken reports whether the token in a file can be used.
func CheckToken(m Machine, file string) error {
	_, err := readToken(m, file)
	return err
}

// readToken returns the token in a file. It is read anew each time, so that it
// can be changed without a restart.
func readToken(m Machine, file string) (string, error) {
	text, err := m.secret(file)
	if err != nil {
		return "", fmt.Errorf("read web.token_file: %w", err)
	}
	token := strings.TrimSpace(text)
	if len(token) < shortestToken {
		return "", fmt.Errorf("read web.token_file: the token has %d bytes, must have at least %d", len(token), shortestToken)
	}
	return token, nil
}
