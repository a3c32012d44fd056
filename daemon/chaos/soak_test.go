package chaos

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/feed"
	"lacuna/ledger"
	"lacuna/pipeline/simulate"
)

const (
	hoursEnv = "LACUNA_SOAK_HOURS"
	plotEnv  = "LACUNA_SOAK_PLOT" // file of the picture
)

// A service takes a granule a second for hours. What it holds on to stays, and a
// granule costs as much disk at the end as at the beginning.
func TestSoak(t *testing.T) {
	hours, err := strconv.ParseFloat(os.Getenv(hoursEnv), 64)
	if err != nil || hours <= 0 {
		t.Skip("takes hours; make soak runs it")
	}
	s := newSoak(t)
	lasting := time.Duration(hours * float64(time.Hour))
	s.run(t, lasting)
	if file := os.Getenv(plotEnv); file != "" {
		if err := os.WriteFile(file, []byte(plot(s.curves)), 0o644); err != nil {
			t.Error(err)
		}
	}
	for _, c := range s.curves {
		grows, sure := c.growth()
		t.Logf("%s: %.4g at the end, %+.2f ± %.2f %% over the second half", c.name, c.y[len(c.y)-1], 100*grows, 100*sure)
		if why := c.notFlat(); why != "" {
			t.Error(why)
		}
	}
}

// soak is a service that takes a granule a second.
type soak struct {
	*site
	world  *simulate.World
	forms  []simulate.Delivery
	made   int
	curves []curve
}

func newSoak(t *testing.T) *soak {
	t.Helper()
	top, err := os.MkdirTemp("", "lacuna-soak-")
	if err != nil {
		t.Fatal(err)
	}
	s := &soak{site: &site{t: t, top: top, program: os.Args[0], broker: newBroker(t, true), listen: freePort(t)}}
	t.Cleanup(s.close)
	s.config, s.clock = s.path("lacuna.yaml"), s.path("clock")
	for _, dir := range []string{"archive", "tmp"} {
		if err := os.Mkdir(s.path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	text := fmt.Sprintf(`state_dir: %[1]s/state
products_dir: %[1]s/products
web: {listen: %[2]q}
publish:
  quick_look: false
  poll: 200ms
  disk: {floor_mib: 0}
  zarr: {dir: %[1]s/zarr}
  kafka: {brokers: [%[3]q]}
datasets:
  - name: sea
    archive: {dir: %[1]s/archive, poll_interval: 500ms, settle: 0s, disk_floor: 0}
    fill: {method: persistence, past_days: 3, future_days: 1}
    reanalysis: {settle: 500ms}
`, top, s.listen, s.broker.address)
	if err := os.WriteFile(s.config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if s.world, err = simulate.New(simulate.Config{Product: "blk-chl", Height: 16, Width: 16, Days: 60, Seed: 3}); err != nil {
		t.Fatal(err)
	}
	for _, d := range s.world.Schedule() {
		if s.world.Granule(d).Seen.ObservedMask().Count() > 0 {
			s.forms = append(s.forms, d)
		}
	}
	s.daemon = s.newProcess("daemon", "run", s.config)
	s.daemon.keep()
	return s
}

// run delivers a granule a second and samples the service sixty times, or once in
// two minutes.
func (s *soak) run(t *testing.T, lasting time.Duration) {
	t.Helper()
	every := max(lasting/60, 5*time.Second)
	began, next := time.Now(), time.Now().Add(every)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	bytes := map[string]float64{}
	granules := 0.0
	for time.Since(began) < lasting {
		<-tick.C
		if err := s.deliver(); err != nil {
			t.Fatal(err)
		}
		if time.Now().Before(next) {
			continue
		}
		next = next.Add(every)
		now, err := s.sample(t.Context())
		if err != nil {
			t.Logf("no sample: %v", err)
			continue
		}
		hour := time.Since(began).Hours()
		done := now["granules"]
		if done <= granules {
			t.Fatalf("no granule was done in %v; %d were delivered", every, s.made)
		}
		for _, name := range []string{"resident MiB", "heap MiB", "goroutines", "descriptors", "granules behind"} {
			s.add(name, hour, now[name])
		}
		for _, name := range []string{"ledger", "disk"} { // they grow with the granules, by the same for each
			s.add(name+" KiB a granule", hour, (now[name]-bytes[name])/(done-granules)/1024)
			bytes[name] = now[name]
		}
		granules = done
	}
	t.Logf("%d granules delivered in %v, %.0f of them done", s.made, lasting, granules)
}

func (s *soak) add(name string, x, y float64) {
	i := slices.IndexFunc(s.curves, func(c curve) bool { return c.name == name })
	if i < 0 {
		i = len(s.curves)
		s.curves = append(s.curves, curve{name: name, room: rooms[name]})
	}
	s.curves[i].x, s.curves[i].y = append(s.curves[i].x, x), append(s.curves[i].y, y)
}

// rooms are what figures may vary by without being a leak.
var rooms = map[string]float64{"resident MiB": 8, "heap MiB": 24, "goroutines": 10, "descriptors": 10, "granules behind": 20, "ledger KiB a granule": 2, "disk KiB a granule": 40}

// deliver puts the next day there, and takes one away that is a month old.
func (s *soak) deliver() error {
	first := time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC)
	name := func(n int) string { return first.AddDate(0, 0, n).Format("20060102") + "_sea.nc" }
	g := s.world.Granule(s.forms[s.made%len(s.forms)])
	g.Name, g.File.Vars = name(s.made), slices.Clone(g.File.Vars)
	for i, v := range g.File.Vars {
		if v.Name == "time" { // seconds since 1981
			seconds := first.AddDate(0, 0, s.made).Sub(time.Date(1981, 1, 1, 0, 0, 0, 0, time.UTC)) / time.Second
			g.File.Vars[i].Raw = binary.LittleEndian.AppendUint32(nil, uint32(seconds))
		}
	}
	_ = os.Remove(s.path("archive/" + name(s.made-40)))
	err := feed.Write(s.path("archive/"+g.Name), g)
	s.made++
	return err
}

// sample measures the service.
func (s *soak) sample(ctx context.Context) (map[string]float64, error) {
	now := map[string]float64{}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.listen+"/metrics", http.NoBody)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		name, text, _ := strings.Cut(lines.Text(), " ")
		value, _ := strconv.ParseFloat(text, 64)
		switch name {
		case "process_resident_memory_bytes":
			now["resident MiB"] = value / (1 << 20)
		case "go_memstats_heap_alloc_bytes":
			now["heap MiB"] = value / (1 << 20)
		case "go_goroutines":
			now["goroutines"] = value
		case "process_open_fds":
			now["descriptors"] = value
		}
	}
	book, err := ledger.Join(ctx, s.path("state/ledger.db"))
	if err != nil {
		return nil, err
	}
	defer book.Close()
	rows, err := book.Window(ctx, "sea", time.Time{}, time.Now()) // the newest revision of each granule
	for _, g := range rows {
		if g.State == ledger.Announced && !g.Absent {
			now["granules"]++
		}
	}
	now["granules behind"] = float64(s.made) - now["granules"]
	for _, file := range []string{"state/ledger.db", "state/ledger.db.journal"} {
		if info, err := os.Stat(s.path(file)); err == nil {
			now["ledger"] += float64(info.Size())
		}
	}
	for _, top := range []string{"state", "products", "zarr"} {
		_ = filepath.WalkDir(s.path(top), func(_ string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				if info, err := d.Info(); err == nil {
					now["disk"] += float64(info.Size())
				}
			}
			return nil
		})
	}
	return now, err
}
