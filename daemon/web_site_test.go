package daemon

import (
	"bytes"
	"context"
	"image"
	"image/png"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/pages"
	"lacuna/daemon/version"
	"lacuna/modelstore"
	"lacuna/pipeline/simulate"
)

// site is a daemon with real products behind its pages.
type site struct {
	*bench
	at    string
	world *simulate.World
	days  []simulate.Delivery // the deliveries, by day
	token string
}

// openSite runs a daemon on n days of a simulated sea, with the third day missing
// and a last one that cannot be read.
func openSite(t *testing.T, height, width, n int) *site {
	t.Helper()
	s := &site{bench: newBench(t), world: world(t, height, width), token: "a token that nobody guesses"}
	s.days = firstVersions(s.world, n)
	for i, d := range s.days {
		if i != 2 {
			put(t, s.archive(), s.world.Granule(d))
		}
	}
	last := s.time(n - 1)
	spoilt := filepath.Join(s.archive(), last.AddDate(0, 0, 1).Format("20060102")+"_chl<i>.nc")
	tokenFile := filepath.Join(t.TempDir(), "token")
	for file, text := range map[string]string{spoilt: "this is no NetCDF file", tokenFile: s.token + "\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.cfg.Web.TokenFile, s.cfg.Publish.QuickLook = tokenFile, true
	s.cfg.Datasets[0].Name = "black-sea"
	s.cfg.Datasets[0].Fill.Method = "oi"
	s.cfg.Train.Store = filepath.Join(t.TempDir(), "models")
	s.run(t, last.Add(30*time.Hour))
	done := func() bool {
		status := fetchStatus(t, strings.TrimPrefix(s.at, "http://"))
		return len(status.Quarantine) == 1 && len(status.Products) >= min(n-1, pages.RecentRows) && status.Datasets[0].Queue == 0 &&
			status.Datasets[0].NoGranule > 0 // the product in the place of the missing day
	}
	for deadline := time.Now().Add(time.Minute + 5*time.Second*time.Duration(n)); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the products were not made in time")
		}
	}
	return s
}

// run runs the daemon with a clock that begins at now.
func (s *site) run(t *testing.T, now time.Time) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	d, err := New(s.cfg, Parts{
		Log: slog.New(slog.NewTextHandler(&journal{}, nil)), Child: []string{self, "decode"},
		Now: func() time.Time { return now.Add(time.Since(began)) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Run() = %v", err)
		}
	})
	until(t, "the server", func() bool { return d.Addr() != "" })
	s.at = "http://" + d.Addr()
}

// time returns the time of the i-th day.
func (s *site) time(i int) time.Time { return s.world.Granule(s.days[i]).Seen.Time.UTC() }

// day returns the path of the page of the i-th day.
func (s *site) day(i int) string {
	return "/datasets/black-sea/" + s.time(i).Format(time.DateOnly)
}

// product returns the file of the product of the i-th day.
func (s *site) product(t *testing.T, i int) string {
	t.Helper()
	day := s.time(i).Format("20060102")
	for _, file := range s.products(t) {
		if strings.Contains(filepath.Base(file), day) && !strings.Contains(file, ".revisions") {
			return file
		}
	}
	t.Fatalf("no product of %s", day)
	return ""
}

// addModels puts two versions into the store, the second of them the champion.
func (s *site) addModels(t *testing.T) (champion string) {
	t.Helper()
	store := modelstore.New(s.cfg.Train.Store, func() time.Time { return s.time(1) })
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 4, 4))); err != nil {
		t.Fatal(err)
	}
	for i, mse := range []float64{0.31, 0.25} {
		v, err := store.Write(t.Context(), modelstore.Card{
			Schema: modelstore.CardSchema, Kind: "trained", Dataset: "black-sea", Variable: "CHL", Created: s.time(i), Parent: champion, Lacuna: version.String(),
			Scores: modelstore.Comparison{On: "12 overlays", Challenger: map[string]float64{"mse": mse, "cbgd": 1.01}, Champion: map[string]float64{"mse": 0.31}},
		}, map[string]io.Reader{modelstore.PictureFile: bytes.NewReader(picture.Bytes())})
		if err != nil {
			t.Fatal(err)
		}
		champion = v.ID
		if _, err := store.Promote(t.Context(), modelstore.Change{Version: v.ID, By: "gate <b>", Why: []string{"its error is lower"}}); err != nil {
			t.Fatal(err)
		}
	}
	return champion
}
