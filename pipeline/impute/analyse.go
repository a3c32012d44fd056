package impute

import (
	"lacuna/pipeline/classical"
	"lacuna/pipeline/samples"
)

// OI is an Analyser: optimal interpolation of the same cells that a network sees.
type OI struct {
	Days interface {
		Analyse(r samples.Ref, visible []bool, cfg samples.BackgroundConfig) (value, sigma []float32, err error)
	}
	Settings classical.OI
}

// QuickOI returns settings of optimal interpolation that are fast enough to
// make analyses for training: half of the neighbours, on one core. A network
// that learned from them is judged, and serves, with all neighbours.
func QuickOI(o classical.OI) classical.OI {
	o.Neighbours, o.Spacing, o.Overlays, o.Workers = 24, min(o.Spacing, 2), 0, 1
	return o
}

// ServingOI returns settings of the analyses that a network is judged with:
// those of serving, but on one core, because many are made at a time. A network
// has its own calibration.
func ServingOI(o classical.OI) classical.OI {
	o.Overlays, o.Workers = 0, 1
	return o
}

// Analyse implements Analyser.
func (o OI) Analyse(r samples.Ref, visible []bool, mode Mode) (value, sigma []float32, err error) {
	cfg := samples.BackgroundConfig{OI: o.Settings}
	cfg.PastDays, cfg.FutureDays = mode.Window()
	return o.Days.Analyse(r, visible, cfg)
}
