package chaos

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"lacuna/daemon/feed"
	"lacuna/pipeline/simulate"
)

// producer puts granules into the archives, and now and then something that is
// none.
type producer struct {
	archives *archives
	scratch  string
	world    *simulate.World
	schedule []simulate.Delivery
	random   *rand.Rand
	hostile  float64 // share of objects that are no granules

	current map[string]string // sha256 of the objects in the archives, by name
	spoiled map[string]bool   // those that are no granules
	newest  string            // name of the granule with the latest day
	changed time.Time         // when the last object was put there
}

func newProducer(t testing.TB, a *archives, scratch string, seed uint64) *producer {
	t.Helper()
	w, err := simulate.New(simulate.Config{Product: "blk-chl", Height: 32, Width: 32, Days: 4000, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	// Day after day, and one in ten replaced: days that come late have their neighbours
	// made anew, one after the other, which is most of the time of a recovery.
	schedule := slices.DeleteFunc(w.Schedule(), func(d simulate.Delivery) bool { return d.Revision > 1 && d.Day%10 != 0 })
	slices.SortStableFunc(schedule, func(a, b simulate.Delivery) int { return cmp.Compare(a.Day, b.Day) })
	return &producer{
		archives: a, scratch: scratch, world: w, schedule: schedule, random: rand.New(rand.NewPCG(seed, 3)),
		current: map[string]string{}, spoiled: map[string]bool{}, changed: time.Now().Add(-time.Hour),
	}
}

// deliver puts the next granule there and returns its name.
func (p *producer) deliver(ctx context.Context) (string, error) {
	for { // a day of which nothing was seen is left out: it is filled without a granule
		d := p.schedule[0]
		p.schedule = p.schedule[1:]
		g := p.world.Granule(d)
		if g.Seen.ObservedMask().Count() == 0 {
			continue
		}
		content, err := p.encode(g)
		if err != nil {
			return "", err
		}
		if p.random.Float64() < p.hostile {
			if err := p.spoil(ctx, d.Name, content); err != nil {
				return "", err
			}
		}
		p.newest = max(p.newest, d.Name)
		return d.Name, p.put(ctx, d.Name, content)
	}
}

// lately returns a day that is earlier than those of what was delivered in the last
// strikes.
func (p *producer) lately() string {
	day, err := time.Parse("20060102", p.newest[:8])
	if err != nil {
		panic(err) // the names of this world begin with the day
	}
	return day.AddDate(0, 0, -10).Format(time.DateOnly)
}

// spoil puts something there that looks like the granule beside it, and is none.
func (p *producer) spoil(ctx context.Context, beside string, content []byte) error {
	name := fmt.Sprintf("%s_hostile%d.nc", beside[:8], len(p.spoiled))
	switch p.random.IntN(4) {
	case 0:
		content = content[:len(content)/3]
	case 1:
		content = []byte("<html><body>Please log in</body></html>")
	case 2: // dimensions of four billion
		content = append([]byte("CDF\x02"), bytes.Repeat([]byte{0xff}, 200)...)
	case 3:
		content = bytes.Repeat([]byte{0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'}, 50)
	}
	p.spoiled[name] = true
	return p.put(ctx, name, content)
}

// correct replaces the content of a granule by another.
func (p *producer) correct(ctx context.Context, name string) error {
	for _, d := range p.world.Schedule() {
		if d.Name != name {
			continue
		}
		g := p.world.Granule(d)
		for _, v := range g.File.Vars {
			if v.Name != "CHL" {
				continue
			}
			for raw := v.Raw; len(raw) >= 4; raw = raw[4:] {
				if value := math.Float32frombits(binary.LittleEndian.Uint32(raw)); value > 0 { // neither land nor a gap
					binary.LittleEndian.PutUint32(raw, math.Float32bits(value*1.01))
				}
			}
		}
		content, err := p.encode(g)
		if err != nil {
			return err
		}
		return p.put(ctx, name, content)
	}
	return fmt.Errorf("no granule %s", name)
}

// encode returns the file of a granule.
func (p *producer) encode(g simulate.Granule) ([]byte, error) {
	file := filepath.Join(p.scratch, "granule.nc")
	if err := feed.Write(file, g); err != nil {
		return nil, err
	}
	return os.ReadFile(file)
}

// put gives an object content. FTP shows changes by the second.
func (p *producer) put(ctx context.Context, name string, content []byte) error {
	p.changed = p.changed.Add(2 * time.Second)
	if now := time.Now(); now.After(p.changed) {
		p.changed = now
	}
	if err := p.archives.put(ctx, name, content, p.changed); err != nil {
		return err
	}
	p.current[name] = sumOf(content)
	return nil
}

func sumOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func TestACorrectionHasAnotherContent(t *testing.T) {
	a, err := newArchives(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	p := newProducer(t, a, t.TempDir(), 1)
	for range 3 {
		name, err := p.deliver(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		before := p.current[name]
		if err := p.correct(t.Context(), name); err != nil || p.current[name] == before {
			t.Errorf("the content of %s is as it was, %v", name, err)
		}
	}
}
