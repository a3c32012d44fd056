package jobs

import (
	"lacuna/daemon/fill"
)

// packScreened puts the masks of what was taken out of a job into the folder.
func (f Folder) packScreened(job fill.Job) (*Screened, error) {
	s := job.Screened
	if s.Counts == nil {
		return nil, nil
	}
	out := &Screened{Tests: s.Tests, Counts: s.Counts}
	var err error
	if out.Target, err = f.packMask(s.Taken); err != nil {
		return nil, err
	}
	for _, taken := range s.History {
		sum, err := f.packMask(taken)
		if err != nil {
			return nil, err
		}
		out.History = append(out.History, sum)
	}
	return out, nil
}

// unpackScreened takes out of the granules of a job what the daemon has taken out.
func (f Folder) unpackScreened(s *Screened, job *fill.Job) error {
	if s == nil {
		return nil
	}
	job.Screened = fill.Screened{Tests: s.Tests, Counts: s.Counts}
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
