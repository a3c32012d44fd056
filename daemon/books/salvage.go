package books

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"lacuna/daemon/quarantine"
	"lacuna/ledger"
	"lacuna/pipeline/field"
	"lacuna/pipeline/ingest"
	"lacuna/publish"
	"lacuna/publish/disk"
	"lacuna/publish/netcdf"
)

// Salvage collects the traces of granules and products on the disk, from which a
// ledger is restored.
type Salvage struct {
	Keeper
	facts map[revisionKey]ledger.Fact
	grids map[string]ledger.Grid
	aside map[string]string // reasons of quarantined files, by dataset and sha256
	// Entries of the manifests: the current products.
	entries map[granuleKey]publish.Entry
	lost    int
}

type granuleKey struct{ dataset, granule string }

type revisionKey struct {
	granuleKey
	revision int
}

// Salvage returns an empty collection.
func (k Keeper) Salvage() *Salvage {
	return &Salvage{
		Keeper: k, facts: map[revisionKey]ledger.Fact{}, grids: map[string]ledger.Grid{}, aside: map[string]string{},
		entries: map[granuleKey]publish.Entry{},
	}
}

// collect reads the journal, the quarantine and the manifests. A product that the
// journal does not mention is read itself.
func (s *Salvage) collect(ctx context.Context) error {
	for f, err := range ledger.Journal(s.State.Ledger()) {
		if err != nil {
			return err
		}
		s.addFact(f)
	}
	if err := s.collectAside(); err != nil {
		return err
	}
	return s.eachManifest(func(m publish.Manifest) error {
		for _, e := range m.Products {
			if err := s.Add(ctx, m.Dataset, e); err != nil {
				return err
			}
		}
		return nil
	})
}

// addFact keeps a line of the journal. Of several lines on a revision the last
// one holds, with the publication and the tags of an earlier one where it has
// none.
func (s *Salvage) addFact(f ledger.Fact) {
	if f.Name == "" {
		s.grids[f.Dataset] = ledger.Grid{Fingerprint: f.Fingerprint, JSON: string(f.Grid), Since: f.Recorded, Why: f.Why}
		if f.Fingerprint == "" { // the grid was reset
			delete(s.grids, f.Dataset)
		}
		return
	}
	key := revisionKey{granuleKey{f.Dataset, f.Name}, f.Revision}
	before := s.facts[key]
	if f.Publication == nil {
		f.Publication, f.Times = before.Publication, before.Times
	}
	f.ETag, f.MD5 = cmp.Or(f.ETag, before.ETag), cmp.Or(f.MD5, before.MD5)
	s.facts[key] = f
}

// collectAside notes the files in quarantine with their reasons.
func (s *Salvage) collectAside() error {
	return filepath.WalkDir(s.State.Quarantine(), func(file string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil || e.IsDir() || strings.HasSuffix(file, quarantine.WhySuffix):
			return err
		}
		sum, err := sumFile(file)
		if err != nil {
			return err
		}
		reason, err := os.ReadFile(file + quarantine.WhySuffix)
		if err != nil { // a crash came before the reason was written
			reason = []byte("its reason was lost with the ledger; 'lacuna quarantine retry --all' finds it again")
		}
		s.aside[filepath.Base(filepath.Dir(file))+" "+sum] = strings.TrimSpace(string(reason))
		return nil
	})
}

func sumFile(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// eachManifest calls visit with every manifest in the folder of products.
func (s *Salvage) eachManifest(visit func(publish.Manifest) error) error {
	return filepath.WalkDir(s.Store.Root, func(file string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case e.IsDir() && e.Name() != "." && strings.HasPrefix(e.Name(), ".") && file != s.Store.Root:
			return fs.SkipDir
		case e.IsDir() || !publish.IsManifest(e.Name()):
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		m, err := publish.ParseManifest(text)
		if err != nil {
			s.Log.Warn("manifest passed over", "file", file, "err", err)
			return nil
		}
		return visit(m)
	})
}

// hasProducts reports whether the folder of products holds any product of a
// configured dataset.
func (k Keeper) hasProducts() bool {
	found := errors.New("found")
	return errors.Is(k.Salvage().eachManifest(func(m publish.Manifest) error {
		if k.Configured(m.Dataset) {
			return found
		}
		return nil
	}), found)
}

// Configured reports whether a dataset is configured.
func (k Keeper) Configured(dataset string) bool {
	_, ok := k.Datasets[dataset]
	return ok
}

// Add notes an entry of a manifest, and makes a fact of a product that the
// journal does not mention.
func (s *Salvage) Add(ctx context.Context, dataset string, e publish.Entry) error {
	key := granuleKey{dataset, e.Granule}
	s.entries[key] = e
	options, configured := s.Datasets[dataset]
	if s.facts[revisionKey{key, e.Revision}].Publication != nil || !configured {
		return nil
	}
	visible, err := s.Store.Visible(dataset, e.Time, e.File)
	if err != nil {
		return err
	}
	file := s.Store.RevisionFile(disk.Item{Dataset: dataset, Granule: e.Granule, Name: e.File, Time: e.Time, Revision: e.Revision})
	if !exists(file) && exists(visible) {
		file = visible
	}
	product, err := s.Reader.Read(ctx, file, options)
	if err != nil {
		s.Log.Warn("what a product was made from is lost", "file", file, "err", err)
	}
	f, err := s.factOf(dataset, file, e, product)
	if err != nil {
		return err
	}
	f.Publication.Product.Path = visible
	s.addFact(f)
	return ctx.Err()
}

// unknownContent stands for the hash of a granule of which only the product is
// known. A file under its name in the archive is then another revision: the
// published one is not made a second time.
const unknownContent = "unknown"

// factOf returns the fact of a granule that a manifest and a product give.
// product may be empty.
func (s *Salvage) factOf(dataset, file string, e publish.Entry, product ingest.Granule) (ledger.Fact, error) {
	p := publish.Product{
		Dataset: dataset, Granule: e.Granule, Name: e.File, Time: e.Time, Revision: e.Revision, Size: e.Size, SHA256: e.SHA256, Path: file,
		BBox: e.BBox, Variable: product.Source.Variable, Model: e.Model, Mode: e.Mode, Input: e.Input, CoverageBefore: e.CoverageBefore,
		CoverageAfter: e.CoverageAfter, MeanUncertainty: e.MeanUncertainty, Created: e.Created,
	}
	if m := e.Members; m != nil {
		p.Members = &publish.Members{Name: m.File, Path: disk.MembersPath(file), Size: m.Size, SHA256: m.SHA256, Count: m.Count}
		if beside := publish.MembersName(file); !exists(p.Members.Path) && exists(beside) {
			p.Members.Path = beside // file is the visible one
		}
	}
	body, err := json.Marshal(p)
	if err != nil {
		return ledger.Fact{}, err
	}
	hash, absent := madeFrom(product)
	f := ledger.Fact{
		Dataset: dataset, Name: e.Granule, Revision: e.Revision, SHA256: hash, Absent: absent, Recorded: e.Created, Times: []time.Time{e.Time},
		Publication: &ledger.PublishedFact{
			Time: e.Time, File: file, Size: e.Size, Body: body, Stored: e.Created,
			Product: ledger.Product{SHA256: e.SHA256, Observed: e.CoverageBefore, Covered: e.CoverageAfter},
		},
	}
	if len(product.Fields) > 0 {
		f.Times = field.Times(product.Fields)
	}
	if absent {
		return f, nil
	}
	f.SpoolPath = filepath.Join(s.State.Spool(), f.SHA256[:2], f.SHA256, path.Base(path.Clean("/"+e.Granule)))
	if info, err := os.Stat(f.SpoolPath); err == nil {
		f.Size, f.ModTime = info.Size(), info.ModTime()
	}
	return f, nil
}

// madeFrom returns the hash of the granule that a product was made from; absent
// is true where it was made from the granules of other times only.
func madeFrom(product ingest.Granule) (hash string, absent bool) {
	for _, a := range product.Source.Attrs {
		text, ok := a.Value.(string)
		if !ok || a.Name != "lacuna_inputs" || text == "" {
			continue
		}
		target, _, _ := strings.Cut(text, "\n")
		_, behind, _ := strings.Cut(target, " sha256:")
		sum, role, _ := strings.Cut(behind, " ")
		switch {
		case len(sum) != 2*sha256.Size:
			return unknownContent, false
		case role != "" && role != netcdf.RoleTarget:
			return ledger.NoContent, true
		}
		return sum, false
	}
	return unknownContent, false
}

// Found returns the revisions to be restored, in the order of their making. A
// revision of which no file is left is counted as lost.
func (s *Salvage) Found() []ledger.Found {
	newest := map[granuleKey]int{}
	for key := range s.facts {
		newest[key.granuleKey] = max(newest[key.granuleKey], key.revision)
	}
	now := s.Now()
	var all []ledger.Found
	for key, fact := range s.facts {
		f := ledger.Found{Fact: fact, At: now}
		reason, aside := s.aside[key.dataset+" "+fact.SHA256]
		switch {
		case fact.SHA256 == "":
			continue // refused unread, and refused again when it is next seen
		case fact.Absent && fact.Publication == nil:
			continue // recorded again, if its granule is still missing
		case fact.Publication != nil:
			f.State = ledger.Stored
			f.Retracted, f.Sinks = s.audience(key, fact, newest[key.granuleKey])
		case aside && reason != "":
			f.State, f.Reason = ledger.Quarantined, reason
		case newest[key.granuleKey] > key.revision && s.facts[revisionKey{key.granuleKey, newest[key.granuleKey]}].SHA256 == fact.SHA256:
			continue // a later revision has the same content
		case exists(fact.SpoolPath):
			f.State = ledger.Fetched
		default:
			s.lost++
			continue
		}
		all = append(all, f)
	}
	sortFound(all)
	return all
}

// audience returns the sinks that a product is queued to: all of them for a
// current product whose file is there, because a sink that has it changes
// nothing, and none for any other. It also returns the reason of a retraction.
func (s *Salvage) audience(key revisionKey, fact ledger.Fact, newest int) (retracted string, sinks []string) {
	e, listed := s.entries[key.granuleKey]
	if listed && e.Retracted && e.Revision >= key.revision {
		return cmp.Or(e.Why, "it was retracted before the ledger was lost"), s.Sinks
	}
	superseded := key.revision < newest && s.facts[revisionKey{key.granuleKey, newest}].Publication != nil
	if superseded || !exists(fact.Publication.File) || listed && e.Absent && e.Revision == key.revision && !exists(fact.Publication.File) {
		return "", nil
	}
	return "", s.Sinks
}

// orphans counts the files in the spool that no fact mentions.
func (s *Salvage) orphans() int {
	known := map[string]bool{}
	for _, f := range s.facts {
		known[f.SHA256] = true
	}
	n := 0
	_ = filepath.WalkDir(s.State.Spool(), func(file string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && len(filepath.Base(filepath.Dir(file))) == 2*sha256.Size && !known[filepath.Base(filepath.Dir(file))] {
			n++
		}
		return nil // the count is for people: unreadable folders are left out
	})
	return n
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
