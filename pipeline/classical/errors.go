package classical

// meanSquareError returns the mean square of the errors that observations of the
// series come with; 0 where none does.
func (s Series) meanSquareError() float64 {
	sum, n := 0.0, 0
	for f, frame := range s.Frames {
		for c, e := range frame.Errors {
			if known(e) && s.observed(f, c) {
				sum += float64(e) * float64(e)
				n++
			}
		}
	}
	return sum / max(float64(n), 1)
}

// known reports whether an error is one.
func known(e float32) bool { return e > 0 && e-e == 0 }

// excess returns by how much the noise of an observation exceeds the nugget, in
// units of the spread. The nugget is the noise of an observation in the mean, of
// which a part ē² is error of measurement and the rest variation below the scale of
// the grid, which is the same for all. An observation with the error e has
//
//	(e²/ē² - 1) · min(ē²/sd², Nugget)
//
// more than that. So the noise is the nugget in the mean, and never negative; and
// observations that err alike weigh alike, whatever their errors are said to be.
func (a *analysis) excess(errors []float32, cell int) float64 {
	if errors == nil || !known(errors[cell]) {
		return 0
	}
	share := a.oi.Nugget
	if sd := float64(a.bg.sd[cell]); sd > 0 {
		share = min(share, a.erring/(sd*sd))
	}
	e := float64(errors[cell])
	return (e*e/a.erring - 1) * share
}
