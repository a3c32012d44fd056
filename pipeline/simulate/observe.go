package simulate

import "math"

// A view holds the conditions of the retrieval at one cell.
type view struct {
	clear        float64 // see scene
	across       float64 // place across the swath, -1..1
	coastKM      float64
	interference float64 // strength of foreign transmitters, unit variance
}

// A reading is the result of a retrieval: a quality (0: no value), and the error
// of the value in the space where the tracer is additive.
type reading struct {
	quality   int8
	std, bias float64
}

// A sight is the content of a product's file for a day.
type sight struct {
	values  []float32 // physical; NaN: no value
	quality []int8    // 0: no value
	sensors []int32   // bits of the sensors that saw the cell
}

// A coverage says which version of a day is observed.
type coverage int

const (
	wholeDay  coverage = iota
	firstHalf          // without the late passes, and with a stricter cloud screening
	noData             // the sensors were off
)

// timidity is how much clearer the sky must be for the first version of a
// granule that is replaced later, in standard deviations of the cloud field.
const timidity = 0.15

// observe returns the sensors' observations of the tracer on day n. The error of
// a cell depends on the day and the cell only, so two versions of a day agree
// where both have the same quality.
func (w *World) observe(n int, tracer []float32, c coverage) sight {
	cells := len(tracer)
	s := sight{make([]float32, cells), make([]int8, cells), make([]int32, cells)}
	nan := float32(math.NaN())
	for i := range s.values {
		s.values[i] = nan
	}
	if c == noData {
		return s
	}
	day := w.origin + n
	sky, unsteady, read := w.sky, w.cfg.DayBias, func(v float64) float64 { return v }
	if change := w.cfg.Change; change.since(n) {
		sky, read = w.later, change.read
		if change.DayBias > 0 {
			unsteady = change.DayBias
		}
	}
	shared := unsteady * gauss(mix(w.cfg.Seed, seedDayBias, uint64(day)))
	sc := sky.scene(day, c == wholeDay)
	margin := 0.0
	if c == firstHalf && w.recipe.weather.cover > 0 {
		margin = timidity
	}
	interference := w.foreign.at(float64(day))
	veil := w.veil(tracer)
	w.chart.eachRow(func(i int) {
		for j := range w.chart.w {
			at := i*w.chart.w + j
			if math.IsInf(float64(sc.clear[at]), -1) {
				continue
			}
			v := view{
				clear: float64(sc.clear[at]) - margin - veil(at), across: float64(sc.across[at]),
				coastKM: float64(w.chart.coastKM[at]),
			}
			if w.recipe.weather.cover == 0 {
				v.interference = interference.value(w.chart.point(float64(i), float64(j)))
			}
			r := w.recipe.retrieve(v)
			if r.quality == 0 {
				continue
			}
			noise, own := r.std*gauss(mix(w.cfg.Seed, seedNoise, uint64(day), uint64(at))), w.cfg.Sensor
			if own.Number > 0 {
				noise = own.Bias + math.Hypot(r.std, own.Noise)*gauss(mix(w.cfg.Seed, seedNoise, uint64(day), uint64(at), uint64(own.Number)))
			}
			s.values[at] = w.toPhysical(read(float64(tracer[at]) + shared + r.bias + noise))
			s.quality[at] = r.quality
			s.sensors[at] = sc.sensors[at]
		}
	})
	return s
}

// veil returns how much cloudier than elsewhere the sky is over a cell, in
// standard deviations of the cloud field: see Config.CloudBias.
func (w *World) veil(tracer []float32) func(cell int) float64 {
	bias := w.cfg.CloudBias
	if bias == 0 {
		return func(int) float64 { return 0 }
	}
	sum, square, n := 0.0, 0.0, 0.0
	for i, v := range tracer {
		if w.chart.sea[i] {
			sum, square, n = sum+float64(v), square+float64(v)*float64(v), n+1
		}
	}
	mean := sum / n
	sd := math.Sqrt(max(square/n-mean*mean, 1e-12)) // a sea of one value has no veil
	return func(cell int) float64 { return bias * (float64(tracer[cell]) - mean) / sd }
}

// foreignSignals is the strength of transmitters in the band of a radiometer:
// they stand for weeks and spoil regions the size of a country.
func foreignSignals() turbulence {
	return turbulence{longestKM: 3000, shortestKM: 400, slope: 0.5, memoryDays: 60}
}

// seen returns the values that a user of the product would use.
func (w *World) seen(s sight) []float32 {
	out := make([]float32, len(s.values))
	for i, v := range s.values {
		out[i] = v
		if !w.recipe.good(s.quality[i]) {
			out[i] = float32(math.NaN())
		}
	}
	return out
}
