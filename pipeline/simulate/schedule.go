package simulate

import (
	"cmp"
	"slices"
	"time"

	"lacuna/internal/cdl"
	"lacuna/pipeline/field"
)

// A Delivery is the arrival of one version of one granule.
type Delivery struct {
	Name     string    // file name; a replacement has the name of the first version
	Day      int       // day of the world that the granule shows
	Revision int       // 1: first version; 2: the better version that replaces it
	At       time.Time // time of arrival
	Late     bool      // arrives days after its turn
	Empty    bool      // the sensors were off: the file holds no observation
}

// A fate is the way in which the granule of one day arrives.
type fate int

const (
	punctual fate = iota
	late          // comes 1..3 days after its turn
	replaced      // comes incomplete, and again when complete
	empty         // comes without a single observation
)

const (
	// fateBlock is the number of days of which one granule is late and one is
	// replaced; emptyBlock that of which one is empty.
	fateBlock  = 10
	emptyBlock = 30

	arrivalHours  = 3  // after the end of the day: the usual time of arrival
	jitterMinutes = 90 // largest delay of a punctual granule
	replaceDays   = 4  // the better version follows 4..7 days after the first
)

// Schedule returns all deliveries in the order of their arrival.
func (w *World) Schedule() []Delivery {
	var out []Delivery
	for n := range w.cfg.Days {
		jitter := time.Duration(unit(w.draw(n, 1))*jitterMinutes*60) * time.Second
		d := Delivery{
			Name: w.name(n), Day: n, Revision: 1,
			At: w.cfg.Start.AddDate(0, 0, n+1).Add(arrivalHours*time.Hour + jitter),
		}
		switch w.fate(n) {
		case late:
			d.Late = true
			d.At = d.At.AddDate(0, 0, 1+int(w.draw(n, 2)%3))
		case empty:
			d.Empty = true
		case replaced:
			better := d
			better.Revision = 2
			better.At = d.At.AddDate(0, 0, replaceDays+int(w.draw(n, 3)%4))
			out = append(out, better)
		}
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b Delivery) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Day, b.Day))
	})
	return out
}

// fate returns the fate of day n. In each block one day is late and another
// is replaced, so that even short feeds have both.
func (w *World) fate(n int) fate {
	if n%emptyBlock == int(w.draw(-1-n/emptyBlock, 4)%emptyBlock) {
		return empty
	}
	block := -1 - n/fateBlock
	lateDay := int(w.draw(block, 5) % fateBlock)
	replacedDay := (lateDay + 1 + int(w.draw(block, 6)%(fateBlock-1))) % fateBlock
	switch n % fateBlock {
	case lateDay:
		return late
	case replacedDay:
		return replaced
	}
	return punctual
}

func (w *World) draw(n int, what uint64) uint64 {
	return mix(w.cfg.Seed, seedSchedule, what, uint64(int64(n)))
}

func (w *World) name(n int) string {
	return w.recipe.fileName(w.recipe, w.time(n).Format("20060102"))
}

// A Granule is a file of the feed: its name and its content.
type Granule struct {
	Name string
	Seen field.Field // the values of File that a user of the product would use
	File cdl.File
}

// Granule returns the granule of a delivery.
func (w *World) Granule(d Delivery) Granule {
	c := wholeDay
	switch {
	case d.Empty:
		c = noData
	case d.Revision == 1 && w.fate(d.Day) == replaced:
		c = firstHalf
	}
	return w.granule(d, w.observe(d.Day, w.tracer(d.Day), c))
}

// TruthGranule returns the truth of day n in the layout of the feed, under
// the name that the day's granule has.
func (w *World) TruthGranule(n int) Granule {
	values := w.physical(w.tracer(n))
	s := sight{values, make([]int8, len(values)), make([]int32, len(values))}
	for i, sea := range w.chart.sea {
		if sea {
			s.quality[i] = w.recipe.best
		}
	}
	d := Delivery{Name: w.name(n), Day: n, Revision: 1, At: w.cfg.Start.AddDate(0, 0, n+1)}
	return w.granule(d, s)
}

func (w *World) granule(d Delivery, s sight) Granule {
	sheet := &sheet{
		recipe: w.recipe, chart: w.chart, delivery: d, time: w.time(d.Day), sight: s,
		climate: func(cell int) float64 { return w.basin.water.climate(cell, float64(w.origin+d.Day)) },
	}
	file := w.recipe.layout(sheet)
	if w.mapped != nil {
		file = w.mapped.file(file)
	}
	return Granule{Name: d.Name, Seen: w.field(d.Day, w.seen(s)), File: file}
}
