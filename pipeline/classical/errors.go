package classical

// Erring returns the error of the better ones among the observations of the series that
// come with an error, as a mean square: the harmonic mean of the squares, to which an
// observation adds as much as it tells. Errors below a tenth of the root mean square count
// as that, so that a few that are close to zero do not stand for all. It is 0 where no
// observation has an error.
func (s Series) Erring() float64 {
	sum, n := 0.0, 0.0
	s.eachError(func(square float64) { sum, n = sum+square, n+1 })
	if n == 0 {
		return 0
	}
	least, tell := sum/n/100, 0.0
	s.eachError(func(square float64) { tell += 1 / max(square, least) })
	return n / tell
}

// eachError calls f with the square of every error of an observation.
func (s Series) eachError(f func(square float64)) {
	for frame := range s.Frames {
		for c, e := range s.Frames[frame].Errors {
			if known(e) && s.observed(frame, c) {
				f(float64(e) * float64(e))
			}
		}
	}
}

// known reports whether an error is one.
func known(e float32) bool { return e > 0 && e-e == 0 }

// excess returns by how much the noise of an observation exceeds the nugget, in
// units of the spread. The nugget is the noise of one of the better observations (Erring),
// of which a part ē² is error of measurement and the rest variation below the scale of
// the grid, which is the same for all. An observation with the error e has
//
//	(e² - ē²) / sd²                     where e is above ē
//	(e²/ē² - 1) · min(ē²/sd², Nugget)   where it is below
//
// more than that. So noise is never negative, a sensor has the less weight the more it
// errs, however small the nugget is, and observations that err alike weigh alike, whatever
// their errors are said to be.
func (a *analysis) excess(errors []float32, cell int) float64 {
	if errors == nil || !known(errors[cell]) {
		return 0
	}
	e := float64(errors[cell])
	over := e*e/a.erring - 1
	sd := a.bg.deviation(cell)
	switch share := a.erring / (sd * sd); {
	case sd == 0:
		return over * a.oi.Nugget
	case over < 0:
		return over * min(share, a.oi.Nugget)
	default:
		return over * share
	}
}
