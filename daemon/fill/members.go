package fill

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"

	"lacuna/pipeline/infer"
	"lacuna/publish/netcdf"
)

// members returns the members of a granule, each with all of its fields.
func members(analyses []infer.Analysis, count int) [][]float32 {
	if count == 0 {
		return nil
	}
	all := make([][]float32, count)
	for k := range all {
		for _, a := range analyses {
			all[k] = append(all[k], a.Members[k]...)
		}
	}
	return all
}

// samplingOf returns how the networks filled the last field of a granule, the
// newest; nil: they had no part in it.
func samplingOf(analyses []infer.Analysis) *netcdf.Sampling {
	s := analyses[len(analyses)-1].Sampling
	if s.Tier == "" {
		return nil
	}
	return &netcdf.Sampling{Tier: string(s.Tier), Members: s.Members, Sampler: s.Sampler, Mean: string(s.Centre)}
}

// Write writes the product of an outcome to path and its members, if it has
// some, to membersPath; name is the name by which the product refers to them. The
// members come first: the product carries their hash, so that a product is never
// without them.
func (o Outcome) Write(path, membersPath, name string) (size int64, _ *netcdf.MembersFile, err error) {
	p := o.Product
	if len(o.Members) > 0 {
		if err := netcdf.WriteMembers(membersPath, p, o.Members); err != nil {
			return 0, nil, err
		}
		p.Members = &netcdf.MembersFile{Name: name, Count: len(o.Members)}
		if p.Members.SHA256, size, err = sum(membersPath); err != nil {
			return 0, nil, err
		}
	}
	return size, p.Members, netcdf.WriteProduct(path, p)
}

// sum returns the sha256 and the size of a file.
func sum(path string) (_ string, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := sha256.New()
	size, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), size, err
}
