package daemon

import (
	"bytes"
	"context"
	"flag"
	"image/png"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

var pictures = flag.String("pictures", "", "host:port of a running service, such as that of make run: draw the pictures in docs/img from it")

// pictureBytes bounds a picture of the README, so that pages with it load fast.
const pictureBytes = 300_000

func TestDrawPictures(t *testing.T) {
	if *pictures == "" {
		t.Skip("pictures are drawn with -pictures HOST:PORT only")
	}
	status := fetchStatus(t, *pictures)
	shown := status.Products[len(status.Products)/2]
	granule := "/granule?" + url.Values{"dataset": {shown.Dataset}, "name": {shown.Granule}}.Encode()
	b := openBrowser(t, "http://"+*pictures)
	for _, p := range []struct {
		name, path    string
		width, height int64
		dark          bool
	}{
		{"overview", "/", 1280, 820, false},
		{"calendar", "/datasets/" + shown.Dataset, 1280, 430, false},
		{"granule", granule, 1280, 940, false},
		{"granule-dark", granule, 1280, 940, true},
		{"models", "/models", 1280, 480, false},
		{"phone", granule, 390, 844, true},
	} {
		b.window(t, p.width, p.height, p.dark)
		b.open(t, p.path)
		if p.path == granule {
			b.await(t, "the map", `document.getElementById("maps").dataset.ready`)
			b.point(t, "map-after", input.DispatchMouseEventTypeMouseMoved, 0.45, 0.55)
			ask[bool](t, b, `(scrollTo(0, 0), true)`)
		}
		b.await(t, "the pictures", `[...document.images].every((i) => i.complete || i.getBoundingClientRect().top > innerHeight)`)
		picture := b.picture(t)
		if _, err := png.Decode(bytes.NewReader(picture)); err != nil || len(picture) > pictureBytes {
			t.Errorf("picture %s: %v, %d bytes, want at most %d", p.name, err, len(picture), pictureBytes)
		}
		if err := os.WriteFile(filepath.Join("..", "docs", "img", p.name+".png"), picture, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if faults := strings.Join(b.faults(), "; "); faults != "" {
		t.Errorf("the browser says %s", faults)
	}
}

// picture returns a screenshot of the window.
func (b *browser) picture(t *testing.T) []byte {
	t.Helper()
	picture, err := chromedp.Run(b.ctx, func(context.Context, *chromedp.Target) ([]byte, error) {
		shot, err := chromedp.Call(b.ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatPng})
		return shot.Data, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return picture
}
