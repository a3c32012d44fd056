package daemon

import (
	"context"
	"fmt"
	"iter"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// browser is a real browser, with the errors of its pages.
type browser struct {
	ctx context.Context
	at  string // address of the server

	heard sync.WaitGroup // the goroutine that collects events

	mu    sync.Mutex // guards wrong
	wrong []string
}

// openBrowser starts Chromium, or skips the test where there is none.
func openBrowser(t *testing.T, at string) *browser {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser takes too long for the short run")
	}
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed: apt-get install chromium")
	}
	b := &browser{at: at}
	t.Cleanup(b.heard.Wait)                                                                                    // last, because closing the browser ends the goroutine
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox) // root cannot use the sandbox
	alloc, end := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
	t.Cleanup(end)
	ctx, closeTab := chromedp.NewContext(alloc)
	t.Cleanup(closeTab)
	b.ctx = ctx
	b.do(t, b.command(func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
		return err
	}))
	b.listen()
	limited, cancel := context.WithTimeout(ctx, 3*time.Minute)
	t.Cleanup(cancel)
	b.ctx = limited
	return b
}

// command is a step of the protocol.
func (b *browser) command(do func(ctx context.Context) error) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(context.Context, *chromedp.Target) error { return do(b.ctx) })
}

// listen collects the errors in the console, and every request that fails.
func (b *browser) listen() {
	hear(b, chromedp.Console(b.ctx), func(m chromedp.ConsoleMessage) {
		if m.IsException() || m.Type == "error" || m.Type == "warning" || m.Type == "assert" {
			b.note("console: " + m.String())
		}
	})
	hear(b, chromedp.Events(b.ctx, network.ResponseReceived), func(e network.EventResponseReceived) {
		if e.Response.Status >= 400 {
			b.note(fmt.Sprintf("%d for %s", e.Response.Status, e.Response.URL))
		}
	})
	hear(b, chromedp.Events(b.ctx, network.LoadingFailed), func(e network.EventLoadingFailed) {
		if !e.Canceled && e.ErrorText != "net::ERR_ABORTED" { // aborted by leaving the page
			b.note(fmt.Sprintf("%s not loaded: %s", e.Type, e.ErrorText))
		}
	})
}

// hear handles events until the browser is closed.
func hear[E any](b *browser, events iter.Seq2[E, error], take func(E)) {
	b.heard.Go(func() {
		for e, err := range events {
			if err != nil {
				return
			}
			take(e)
		}
	})
}

func (b *browser) note(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wrong = append(b.wrong, text)
}

// faults returns the errors since the last call.
func (b *browser) faults() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	wrong := b.wrong
	b.wrong = nil
	return wrong
}

func (b *browser) do(t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		t.Fatalf("%v; the browser says %q", err, b.faults())
	}
}

// open goes to a page of the server and waits until it is live.
func (b *browser) open(t *testing.T, path string) {
	t.Helper()
	b.do(t, chromedp.Navigate(b.at+path), chromedp.WaitReady(chromedp.CSS(`#live[data-state="live"]`)))
}

// window sets the size and the theme.
func (b *browser) window(t *testing.T, width, height int64, dark bool) {
	t.Helper()
	theme := "light"
	if dark {
		theme = "dark"
	}
	b.do(t, chromedp.EmulateViewport(width, height), b.command(func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}},
		})
		return err
	}))
}

// ask evaluates an expression in the page.
func ask[T any](t *testing.T, b *browser, expression string) T {
	t.Helper()
	answer, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		t.Fatalf("%s: %v; the browser says %q", expression, err, b.faults())
	}
	return answer
}

// await waits until an expression is true in the page.
func (b *browser) await(t *testing.T, what, expression string) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !ask[bool](t, b, "Boolean("+expression+")") {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not come to pass; the browser says %q", what, b.faults())
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// text returns the text of an element.
func (b *browser) text(t *testing.T, selector string) string {
	t.Helper()
	return strings.Join(strings.Fields(ask[string](t, b, fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector))), " ")
}
