package samples

// Reach of composites in days. Thirty days back gained 5 % of MSE over
// ten; ahead, a delayed-mode product does not wait longer than ten.
const (
	LastDays = 30
	NextDays = 10
)

// A Composite is, for each cell of a window, the observation nearest in time.
type Composite struct {
	Value     []float32 // normalised anomaly; 0 without an observation
	Freshness []float32 // 3/(2+age in days), 1 for yesterday; 0: no observation
}

// Last returns the last observation of each cell before the day of r, not
// older than maxDays.
func (a *archive) Last(r Ref, maxDays int) Composite {
	c := newComposite(r.Window)
	first, _ := a.placeOf[r.Day].Days()
	for day := r.Day - 1; day >= first && a.numbers[r.Day]-a.numbers[day] <= int64(maxDays); day-- {
		a.merge(c, r.Window, day, a.numbers[r.Day]-a.numbers[day])
	}
	return c
}

// Next returns the next observation of each cell after the day of r, not
// later than maxDays.
func (a *archive) Next(r Ref, maxDays int) Composite {
	c := newComposite(r.Window)
	_, end := a.placeOf[r.Day].Days()
	for day := r.Day + 1; day < end && a.numbers[day]-a.numbers[r.Day] <= int64(maxDays); day++ {
		a.merge(c, r.Window, day, a.numbers[day]-a.numbers[r.Day])
	}
	return c
}

// Yesterday returns the observation mask of the window on the day before r,
// all false if that day is missing.
func (a *archive) Yesterday(r Ref) []bool {
	if r.Day == a.placeOf[r.Day].first || a.numbers[r.Day]-a.numbers[r.Day-1] != 1 {
		return make([]bool, r.Window.Len())
	}
	return Patch{Values: a.placeOf[r.Day].CutMap(a.days[r.Day-1].Values, r.Window)}.Observed()
}

func newComposite(w Window) Composite {
	return Composite{Value: make([]float32, w.Len()), Freshness: make([]float32, w.Len())}
}

// merge fills the cells that no observation nearer in time has filled.
func (a *archive) merge(c Composite, w Window, day int, age int64) {
	values, fresh := a.days[day].Values, 3/(2+float32(age))
	a.placeOf[day].rows(w, func(dst, src, n int) {
		for i, v := range values[src : src+n] {
			if v == v && c.Freshness[dst+i] == 0 { // not NaN
				c.Value[dst+i], c.Freshness[dst+i] = v, fresh
			}
		}
	})
}
