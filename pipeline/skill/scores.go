package skill

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Options hold the settings of Scores.
type Options struct {
	Range         float64   // range of the values of the held-out set, in normalised units; 0: no PSNR
	DistanceEdges []float64 // upper ends of the distance classes, in cells, ascending
	PatchCells    int       // side of the patches for spectra; 0: no spectra
	Bootstrap     Bootstrap
}

// DefaultOptions returns options that suit windows of 64 cells and more.
func DefaultOptions() Options {
	return Options{
		// Powers of two: error grows fast near an observation and slowly far
		// from it.
		DistanceEdges: []float64{1, 2, 4, 8, 16, 32},
		// Large enough for waves of a few scales, small enough to find clear
		// sky under real clouds.
		PatchCells: 16,
		Bootstrap:  DefaultBootstrap(),
	}
}

// Scores accumulates samples of one method. The zero value is not usable, and
// only one goroutine may use it at a time.
type Scores struct {
	opt       Options
	days      map[time.Time]bool
	pixels    int
	nonFinite int
	rows      []row
	weighted  Loss
	bias      float64
	physical  struct{ squares, bias float64 }
	psnr      Loss // Pixels counts samples
	boundary  Boundary
	gaussian  *tally
	ensemble  *tally
	classes   []class
	mean      *Spectrometer
	member    *Spectrometer
}

// A row holds the sums of one sample.
type row struct {
	day                 time.Time
	pixels              float64
	squares             float64
	gaussian, ensemble  float64 // sums of CRPS
	claimed, drawn      float64 // numbers of pixels in these sums
	inside              float64 // truths in the 90 % interval of sigma, and of members
	insideMembers       float64
	hasSigma, hasMember bool
}

// A class accumulates a DistanceClass.
type class struct {
	losses   []Loss
	pixels   int
	distance float64
	bias     float64
}

// NewScores returns Scores without any sample.
func NewScores(opt Options) *Scores {
	if !slices.IsSorted(opt.DistanceEdges) {
		panic("skill: edges of distance classes do not ascend")
	}
	s := &Scores{opt: opt, days: map[time.Time]bool{}, classes: make([]class, len(opt.DistanceEdges)+1)}
	if opt.PatchCells > 0 {
		s.mean, s.member = NewSpectrometer(opt.PatchCells), NewSpectrometer(opt.PatchCells)
	}
	return s
}

// Add scores one sample. An error means that the sample cannot be scored, and
// leaves s as it was; ErrTooFewPixels is one of them. All samples must have
// members in the same number, all centred or all not, or none.
func (s *Scores) Add(x Sample) error {
	if err := x.check(); err != nil {
		return fmt.Errorf("score the sample of %s: %w", x.Day.Format(time.DateOnly), err)
	}
	if n := len(x.Members); n > 0 && s.ensemble != nil && s.ensemble.members != n {
		return fmt.Errorf("score the sample of %s: %d members after samples of %d",
			x.Day.Format(time.DateOnly), n, s.ensemble.members)
	}
	if len(x.Members) > 0 && s.ensemble != nil && s.ensemble.centred != x.Centred {
		return fmt.Errorf("score the sample of %s: centred members among others", x.Day.Format(time.DateOnly))
	}
	if s.gaussian == nil && x.Sigma != nil {
		s.gaussian = newTally(0, false)
	}
	if s.ensemble == nil && len(x.Members) > 0 {
		s.ensemble = newTally(len(x.Members), x.Centred)
	}
	s.days[x.Day.UTC().Truncate(day)] = true
	s.rows = append(s.rows, s.addPixels(x))
	s.boundary = s.boundary.Plus(x.MeasureBoundary(x.Mean))
	for _, m := range x.Members {
		s.ensemble.boundary = s.ensemble.boundary.Plus(x.MeasureBoundary(m))
	}
	if s.mean != nil {
		s.mean.AddSample(x, x.Mean)
		if len(x.Members) > 0 {
			s.member.AddSample(x, x.Members[0])
		}
	}
	return nil
}

// addPixels sums up the errors of the scored pixels.
func (s *Scores) addPixels(x Sample) row {
	r := row{day: x.Day, hasSigma: x.Sigma != nil, hasMember: len(x.Members) > 0}
	distance := Distances(x.Visible, x.Height, x.Width)
	byClass := make([]Loss, len(s.classes))
	members := make([]float64, len(x.Members))
	for c, scored := range x.Scored {
		if !scored {
			continue
		}
		if !finite(x.Mean[c]) {
			s.nonFinite++
			continue
		}
		truth, mean := float64(x.Truth[c]), float64(x.Mean[c])
		miss := mean - truth
		s.pixels++
		r.pixels++
		r.squares += miss * miss
		s.bias += miss
		if x.Weights != nil {
			s.weighted.Sum += float64(x.Weights[c]) * miss * miss
			s.weighted.Pixels += float64(x.Weights[c])
		}
		inUnits := x.Physical.Inverse(mean) - x.Physical.Inverse(truth)
		s.physical.squares += inUnits * inUnits
		s.physical.bias += inUnits
		k, _ := slices.BinarySearch(s.opt.DistanceEdges, distance[c])
		byClass[k].Sum += miss * miss
		byClass[k].Pixels++
		s.classes[k].pixels++
		s.classes[k].distance += distance[c]
		s.classes[k].bias += miss
		s.addUncertainty(x, c, members, &r)
	}
	for k, l := range byClass {
		l.Day = x.Day
		s.classes[k].losses = append(s.classes[k].losses, l)
	}
	s.addPSNR(r)
	return r
}

// addUncertainty scores the sigma and the members of cell c. A cell without a
// finite sigma, or with a member that is not finite, counts as non-finite
// output.
func (s *Scores) addUncertainty(x Sample, c int, members []float64, r *row) {
	truth := float64(x.Truth[c])
	sound := true
	if x.Sigma != nil {
		if sigma := x.Sigma[c]; finite(sigma) && sigma >= 0 {
			before := s.gaussian.covered()
			r.gaussian += s.gaussian.addGaussian(float64(x.Mean[c]), float64(sigma), truth)
			r.claimed++
			r.inside += s.gaussian.covered() - before
		} else {
			sound = false
		}
	}
	whole := len(members) > 0
	for k, m := range x.Members {
		members[k] = float64(m[c])
		whole = whole && finite(m[c])
	}
	if whole {
		before := s.ensemble.covered()
		r.ensemble += s.ensemble.addMembers(members, truth)
		r.drawn++
		r.insideMembers += s.ensemble.covered() - before
	}
	if !sound || whole != (len(members) > 0) {
		s.nonFinite++
	}
}

// addPSNR adds 10 log₁₀(range² / MSE) of one sample, and nothing for a sample
// without error.
func (s *Scores) addPSNR(r row) {
	if s.opt.Range > 0 && r.squares > 0 {
		s.psnr.Sum += 10 * math.Log10(s.opt.Range*s.opt.Range*r.pixels/r.squares)
		s.psnr.Pixels++
	}
}

// SquaredErrors returns the squared error of each sample, for Bootstrap.Paired.
func (s *Scores) SquaredErrors() []Loss {
	out := make([]Loss, len(s.rows))
	for i, r := range s.rows {
		out[i] = Loss{Day: r.day, Sum: r.squares, Pixels: r.pixels}
	}
	return out
}

// GaussianCRPS returns the CRPS of mean and sigma of each sample that has a
// sigma, for Bootstrap.Paired.
func (s *Scores) GaussianCRPS() []Loss {
	var out []Loss
	for _, r := range s.rows {
		if r.hasSigma {
			out = append(out, Loss{Day: r.day, Sum: r.gaussian, Pixels: r.claimed})
		}
	}
	return out
}

// EnsembleCRPS returns the CRPS of the members of each sample that has some,
// for Bootstrap.Paired.
func (s *Scores) EnsembleCRPS() []Loss {
	var out []Loss
	for _, r := range s.rows {
		if r.hasMember {
			out = append(out, Loss{Day: r.day, Sum: r.ensemble, Pixels: r.drawn})
		}
	}
	return out
}

// Covered returns how many truths of each sample lay in its 90 % interval, of the
// members where there are some, else of mean and sigma, for Bootstrap.Share: how
// sure a coverage is.
func (s *Scores) Covered() []Loss {
	var out []Loss
	for _, r := range s.rows {
		switch {
		case r.hasMember:
			out = append(out, Loss{Day: r.day, Sum: r.insideMembers, Pixels: r.drawn})
		case r.hasSigma && s.ensemble == nil:
			out = append(out, Loss{Day: r.day, Sum: r.inside, Pixels: r.claimed})
		}
	}
	return out
}

// Summary returns the scores of all samples added so far.
func (s *Scores) Summary() Summary {
	n := float64(s.pixels)
	out := Summary{
		Samples: len(s.rows), Days: len(s.days), Pixels: s.pixels, NonFinite: s.nonFinite,
		MSE: present(pooled(s.SquaredErrors())), MSEOfSamples: present(s.meanOfSamples()),
		WeightedMSE: present(s.weighted.Sum / s.weighted.Pixels), Bias: present(s.bias / n),
		PSNR:         present(s.psnr.Sum / s.psnr.Pixels),
		RMSEPhysical: present(math.Sqrt(s.physical.squares / n)), BiasPhysical: present(s.physical.bias / n),
		Gaussian: s.gaussian.calibration(), Ensemble: s.ensemble.calibration(),
		ByDistance: s.byDistance(), DistanceUnit: "cells",
		BootstrapConfidence: s.opt.Bootstrap.Confidence,
	}
	if ratio, known := s.boundary.CBGD(); known {
		out.CBGD, out.CBGDError = present(ratio), present(math.Abs(ratio-1))
	}
	if s.mean != nil {
		out.SpectrumPatchCells = s.opt.PatchCells
		out.Spectrum, out.MemberSpectrum = s.mean.Spectrum(), s.member.Spectrum()
		if out.Spectrum != nil {
			if cells, known := out.Spectrum.ResolvedScale(); known {
				out.ResolvedScaleCells = present(cells)
			}
		}
	}
	return out
}

// meanOfSamples returns the mean of the samples' own mean squared errors.
func (s *Scores) meanOfSamples() float64 {
	sum, n := 0.0, 0.0
	for _, r := range s.rows {
		if r.pixels > 0 {
			sum += r.squares / r.pixels
			n++
		}
	}
	return sum / n
}

// byDistance returns the classes that have pixels.
func (s *Scores) byDistance() []DistanceClass {
	var out []DistanceClass
	for k, c := range s.classes {
		if c.pixels == 0 {
			continue
		}
		n := float64(c.pixels)
		d := DistanceClass{Pixels: c.pixels, Mean: c.distance / n, MSE: pooled(c.losses), Bias: c.bias / n}
		if k > 0 {
			d.Above = s.opt.DistanceEdges[k-1]
		}
		if k < len(s.opt.DistanceEdges) {
			d.UpTo = present(s.opt.DistanceEdges[k])
		}
		if in, known := s.opt.Bootstrap.Mean(c.losses); known {
			d.MSEIn = &in
		}
		out = append(out, d)
	}
	return out
}
