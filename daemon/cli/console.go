package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// console is a log handler for people: the time of day, the message, then the
// attributes, with the long ones last.
type console struct {
	mu    *sync.Mutex // guards w
	w     io.Writer
	level slog.Leveler
	attrs []slog.Attr
}

// NewConsole returns a log handler for people, which writes records of a level and
// above to w.
func NewConsole(w io.Writer, level slog.Leveler) slog.Handler {
	return &console{mu: &sync.Mutex{}, w: w, level: level}
}

func (h *console) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level.Level() }

// WithAttrs returns a handler that writes attrs with every record.
func (h *console) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *h
	next.attrs = append(append([]slog.Attr(nil), h.attrs...), attrs...)
	return &next
}

// WithGroup is not used by the daemon's logs: groups are written flat.
func (h *console) WithGroup(string) slog.Handler { return h }

func (h *console) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s ", r.Time.Format("15:04:05"))
	if r.Level != slog.LevelInfo {
		fmt.Fprintf(&b, "%s ", strings.ToLower(r.Level.String()))
	}
	b.WriteString(plain(r.Message))
	named := false // a file is named after its granule: one of them is enough
	r.Attrs(func(a slog.Attr) bool { named = named || a.Key == "file"; return true })
	write := func(a slog.Attr) bool {
		switch {
		case a.Key == "component", named && a.Key == "granule":
		case speaksForItself[a.Key]:
			fmt.Fprintf(&b, "  %s", plain(a.Value.String()))
		default:
			key, unit := cutUnit(a.Key)
			fmt.Fprintf(&b, "  %s %s%s", plain(strings.ReplaceAll(key, "_", " ")), plain(a.Value.String()), unit)
		}
		return true
	}
	for _, a := range h.attrs {
		write(a)
	}
	r.Attrs(write)
	b.WriteByte('\n')
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := io.WriteString(h.w, b.String())
	return err
}

// plain returns text as it may go to a terminal, in quotes and escaped where it
// has characters that do not print: names of files come from archives, and a
// line break in one would write a line of its own, an escape sequence would
// steer the terminal, and a mark of direction would turn the rest of the line
// around.
func plain(text string) string {
	for _, r := range text {
		if !strconv.IsPrint(r) || r == utf8.RuneError {
			return strconv.Quote(text)
		}
	}
	return text
}

// speaksForItself are the keys whose values need no name beside them.
var speaksForItself = map[string]bool{"dataset": true, "archive": true, "granule": true, "file": true, "url": true}

// cutUnit splits the unit off a key that ends in one.
func cutUnit(key string) (name, unit string) {
	for suffix, sign := range map[string]string{"_percent": " %", "_seconds": " s"} {
		if name, ok := strings.CutSuffix(key, suffix); ok {
			return name, sign
		}
	}
	return key, ""
}
