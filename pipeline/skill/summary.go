package skill

// A Summary holds the scores of one method over many samples. A score that the
// samples cannot give is absent.
type Summary struct {
	Samples   int `json:"samples"`
	Days      int `json:"days"`       // number of different days
	Pixels    int `json:"pixels"`     // number of scored pixels
	NonFinite int `json:"non_finite"` // scored pixels that the method left NaN or infinite; not part of other scores

	MSE          *float64 `json:"mse,omitempty"`            // pooled over pixels
	MSEOfSamples *float64 `json:"mse_of_samples,omitempty"` // mean of the samples' MSE
	WeightedMSE  *float64 `json:"weighted_mse,omitempty"`   // pooled with the weights of the samples
	Bias         *float64 `json:"bias,omitempty"`           // mean of estimate less truth
	PSNR         *float64 `json:"psnr,omitempty"`           // dB, mean of the samples' PSNR, with Options.Range

	RMSEPhysical *float64 `json:"rmse_physical,omitempty"`
	BiasPhysical *float64 `json:"bias_physical,omitempty"`

	CBGD      *float64 `json:"cbgd,omitempty"`       // 1 is seamless
	CBGDError *float64 `json:"cbgd_error,omitempty"` // |CBGD - 1|

	Gaussian *Calibration `json:"gaussian,omitempty"` // calibration of mean and sigma
	Ensemble *Calibration `json:"ensemble,omitempty"` // calibration of the members

	ByDistance []DistanceClass `json:"by_distance,omitempty"`

	Spectrum            *Spectrum `json:"spectrum,omitempty"` // spectrum of the mean
	ResolvedScaleCells  *float64  `json:"resolved_scale_cells,omitempty"`
	MemberSpectrum      *Spectrum `json:"member_spectrum,omitempty"` // spectrum of the first member
	SpectrumPatchCells  int       `json:"spectrum_patch_cells,omitempty"`
	DistanceUnit        string    `json:"distance_unit"`
	BootstrapConfidence float64   `json:"bootstrap_confidence"`
}

// A DistanceClass holds the errors of the pixels within a range of distances
// from the nearest visible one.
type DistanceClass struct {
	Above  float64   `json:"above"`            // cells
	UpTo   *float64  `json:"up_to,omitempty"`  // cells; absent: no end
	Mean   float64   `json:"mean_distance"`    // cells
	Pixels int       `json:"pixels"`           // more than 0
	MSE    float64   `json:"mse"`              // normalised units
	Bias   float64   `json:"bias"`             // normalised units
	MSEIn  *Interval `json:"mse_in,omitempty"` // bootstrap interval of MSE
}

// Named returns the scores that versions of models are compared by, by the names
// that their cards have; those that were not measured are left out.
func (s Summary) Named() map[string]float64 {
	all := map[string]float64{}
	for name, v := range map[string]*float64{
		"mse": s.MSE, "cbgd": s.CBGD, "rmse_physical": s.RMSEPhysical, "bias_physical": s.BiasPhysical,
	} {
		if v != nil {
			all[name] = *v
		}
	}
	const nominal = 0.9
	if share, known := s.Gaussian.Covers(nominal); known {
		all["coverage90"], all["crps"] = share, s.Gaussian.CRPS
	}
	return all
}
