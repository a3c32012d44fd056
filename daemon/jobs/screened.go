package jobs

import (
	"lacuna/daemon/fill"
	"lacuna/pipeline/field"
)

// packScreened puts the masks of what was taken out of a job into the folder.
func (f Folder) packScreened(job fill.Job) (*Screened, error) {
	s := job.Screened
	if s.Counts == nil {
		return nil, nil
	}
	out := &Screened{Tests: s.Tests, Counts: s.Counts, SeaIce: s.SeaIce, FillIce: s.FillIce}
	var err error
	if out.Target, err = f.packMask(s.Taken); err != nil {
		return nil, err
	}
	if out.History, err = f.packMasks(s.History); err != nil {
		return nil, err
	}
	if out.Ice, err = f.packMasks(s.Ice); err == nil && s.IcePercent != nil {
		out.Percent, err = f.AddBytes(s.IcePercent)
	}
	return out, err
}

func (f Folder) packMasks(masks []field.Mask) (sums []string, err error) {
	for _, mask := range masks {
		sum, err := f.packMask(mask)
		if err != nil {
			return nil, err
		}
		sums = append(sums, sum)
	}
	return sums, nil
}

// unpackScreened takes out of the granules of a job what the daemon has taken out.
func (f Folder) unpackScreened(s *Screened, job *fill.Job) error {
	if s == nil {
		return nil
	}
	job.Screened = fill.Screened{Tests: s.Tests, Counts: s.Counts, SeaIce: s.SeaIce, FillIce: s.FillIce}
	for _, sum := range s.Ice {
		mask, err := f.unpackMask(sum)
		if err != nil {
			return err
		}
		job.Screened.Ice = append(job.Screened.Ice, mask)
	}
	if s.Percent != "" {
		var err error
		if job.Screened.IcePercent, err = f.Read(s.Percent); err != nil {
			return err
		}
	}
	taken, err := f.unpackMask(s.Target)
	if err != nil {
		return err
	}
	job.Granule = fill.TakeOut(job.Granule, taken)
	for i, sum := range s.History {
		if taken, err = f.unpackMask(sum); err != nil {
			return err
		}
		if i < len(job.History) {
			job.History[i] = fill.TakeOut(job.History[i], taken)
		}
	}
	return nil
}
