package jobs

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"lacuna/daemon/fill"
	"lacuna/daemon/version"
	"lacuna/modelstore"
	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/parts"
)

// Packing is what a message has beside its fill.Job.
type Packing struct {
	Granule string // name in the archive
	Product string // name of the product's file, but for its mode
	Picture bool
	Score   string // chooses the day whose gaps hide a part of it; empty: it is filled
	Options ingest.Options
	Filled  time.Time
	Path    func(sha256 string) string // where the file of a granule is
	// Around are the neighbours that an absent granule is made like; nil: there is a
	// granule.
	Around  []ingest.Granule
	Version *modelstore.Version // of the job's model; nil: it has none
	Before  string              // file of the product to compare with; empty: there is none
}

// outline returns the message of a job without what has to be put into a folder to be named.
func outline(job fill.Job, p Packing) (Message, error) {
	first, _ := field.Span(job.Granule.Fields)
	m := Message{
		Program: version.String(), Dataset: job.Dataset, Granule: p.Granule, Revision: job.Revision, Time: first.UTC(), Product: p.Product, Picture: p.Picture, Score: p.Score,
		Options: p.Options, SeaMask: job.SeaMask, Fill: job.Fill, Constants: job.Constants, Widening: job.Widening, Trust: job.Trust,
		Interpolated: job.Interpolated, Centre: job.Centre, Backlog: job.Backlog, Created: job.Created.UTC(), Published: job.Published.UTC(), Fetched: job.Fetched.UTC(), Filled: p.Filled.UTC(),
		Credits: job.Credits, Layout: job.Layout,
	}
	if job.Scored != (p.Score != "") {
		return m, errors.New("a job is either scored or not")
	}
	m.History = filesOf(job.History)
	m.Target.File = File{Name: job.Granule.Name, SHA256: job.Granule.SHA256}
	if p.Around != nil {
		m.Target = Target{File: File{Name: p.Granule}, Absent: true, First: m.Time, Around: filesOf(p.Around)}
	}
	return m, nil
}

func filesOf(granules []ingest.Granule) (all []File) {
	for _, g := range granules {
		all = append(all, File{Name: g.Name, SHA256: g.SHA256})
	}
	return all
}

// Pack returns a job as a message, and puts all that it needs into the folder.
func (f Folder) Pack(job fill.Job, p Packing) (Message, error) {
	m, err := outline(job, p)
	if err != nil {
		return m, err
	}
	err = f.addGranules(m, p)
	if err == nil {
		err = f.packMaps(&m, job)
	}
	if err == nil && p.Before != "" {
		m.Before, err = f.packProduct(p.Before)
	}
	if err == nil && job.Model != nil {
		m.Model, err = f.packModel(job.Model.Name(), p.Version)
	}
	if err != nil {
		return m, fmt.Errorf("pack the job of %s: %w", p.Granule, err)
	}
	return m, nil
}

// addGranules puts the files of a message's granules into the folder.
func (f Folder) addGranules(m Message, p Packing) error {
	files := slices.Concat(m.History, m.Target.Around)
	if !m.Target.Absent {
		files = append(files, m.Target.File)
	}
	for _, g := range files {
		if err := f.Add(p.Path(g.SHA256), g.SHA256); err != nil {
			return err
		}
	}
	return nil
}

func (f Folder) packMaps(m *Message, job fill.Job) (err error) {
	if m.Sea, err = f.packMask(job.Sea); err != nil {
		return err
	}
	if m.Seen, err = f.packMask(job.Seen); err != nil {
		return err
	}
	if m.Explained, err = f.packExplained(job.Explained); err != nil {
		return err
	}
	if m.Screened, err = f.packScreened(job); err != nil || job.Scaling == nil {
		return err
	}
	s := parts.NewScaling(job.Granule.Fields[0].Grid, job.Granule.Transform, job.Scaling.Scaling)
	content, err := json.Marshal(s)
	if err != nil {
		return err
	}
	m.Scaling = &Scaling{Days: job.Scaling.Days}
	m.Scaling.SHA256, err = f.AddBytes(content)
	return err
}

func (f Folder) packProduct(path string) (*File, error) {
	sum, err := f.AddFile(path)
	return &File{Name: filepath.Base(path), SHA256: sum}, err
}

func (f Folder) packModel(name string, v *modelstore.Version) (*Model, error) {
	if v == nil || v.ID != name {
		return nil, fmt.Errorf("the files of model %s are not known", name)
	}
	m := &Model{Version: v.ID}
	for _, file := range v.Card.Files {
		if !wanted(file.Name) {
			continue
		}
		there, err := f.Touch(object(file.SHA256))
		if err != nil {
			return nil, err
		}
		if !there {
			content, err := v.ReadFile(file.Name)
			if err != nil {
				return nil, err
			}
			if _, err := f.AddBytes(content); err != nil {
				return nil, err
			}
		}
		m.Files = append(m.Files, File{Name: file.Name, SHA256: file.SHA256})
	}
	return m, nil
}

func wanted(file string) bool {
	for _, name := range fill.ModelFiles() {
		if name == file {
			return true
		}
	}
	return false
}

// packMask puts a mask into the folder as its number of cells and a bit for each.
func (f Folder) packMask(mask field.Mask) (string, error) {
	if mask == nil {
		return "", nil
	}
	content := binary.AppendUvarint(nil, uint64(len(mask)))
	bits := make([]byte, (len(mask)+7)/8)
	for i, set := range mask {
		if set {
			bits[i/8] |= 1 << (i % 8)
		}
	}
	return f.AddBytes(append(content, bits...))
}

func (f Folder) unpackMask(sum string) (field.Mask, error) {
	if sum == "" {
		return nil, nil
	}
	content, err := f.Read(sum)
	if err != nil {
		return nil, err
	}
	cells, n := binary.Uvarint(content)
	bits := content[max(n, 0):]
	if n <= 0 || uint64(len(bits)) != (cells+7)/8 {
		return nil, fmt.Errorf("mask %s is damaged", sum)
	}
	mask := make(field.Mask, cells)
	for i := range mask {
		mask[i] = bits[i/8]&(1<<(i%8)) != 0
	}
	return mask, nil
}
