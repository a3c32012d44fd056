package intake

import (
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"lacuna/daemon/sources"
	"lacuna/daemon/state"
	"lacuna/daemon/version"
	"lacuna/fetch"
	"lacuna/internal/bbox"
	"lacuna/internal/convert"
	"lacuna/pipeline/ingest"
)

// Dataset is the part of a dataset's settings that its intake needs.
type Dataset struct {
	Name    string
	Archive Archive
	Options ingest.Options // how its granules are read
	Sources []Source       // several archives in place of one, the reference first; Archive is then that of the first
}

// Series returns the archives of a dataset, each as a dataset with one: its own
// series in the ledger where there are several.
func (d Dataset) Series() []Dataset {
	if len(d.Sources) == 0 {
		return []Dataset{d}
	}
	return convert.Each(d.Sources, func(s Source) Dataset {
		return Dataset{Name: sources.Series(d.Name, s.Name), Archive: s.Archive, Options: s.Over(d.Options)}
	})
}

// Parts are shared by all intakes.
type Parts struct {
	State   state.Dir
	Spool   *fetch.Spool           // one for all datasets, so that they share the disk fairly
	Manners fetch.PolitenessConfig // limits of the load on the hosts of archives
	Reader  Reader
	Now     func() time.Time
	Log     *slog.Logger
}

// Archives open the archives of datasets and bring their granules in. Requests
// to one host are paced together, whichever dataset they are for.
type Archives struct {
	Parts
	polite   fetch.Politeness
	versions sync.Mutex // held while the memory of versions is read and written
	merging  *locks
}

// New returns the archives. It touches nothing.
func New(parts Parts) (*Archives, error) {
	pacer, err := fetch.NewPacer(parts.Manners.Pace)
	if err != nil {
		return nil, err
	}
	return &Archives{Parts: parts, polite: fetch.Politeness{UserAgent: "lacuna/" + version.String(), Pacer: pacer}, merging: &locks{}}, nil
}

// Connection is an archive with pacing and retries, and the bare one below it.
type Connection struct {
	fetch.Archive
	Bare    fetch.Archive
	readers int // largest number of open readers; 0: no limit
}

// Close closes the connections that the archive holds open.
func (c Connection) Close() error {
	if closer, ok := c.Bare.(io.Closer); ok {
		return closer.Close()
	}
	return nil
}

// Open returns the archive of a dataset. It touches neither the network nor the
// disk.
func (s *Archives) Open(set Dataset) (Connection, error) {
	box, err := bbox.Of(set.Options.BBox)
	if err != nil {
		return Connection{}, fmt.Errorf("archive of dataset %s: %w", set.Name, err)
	}
	bare, err := set.Archive.within(box).bare(s.polite, s.State, set.Name)
	if err != nil {
		return Connection{}, fmt.Errorf("archive of dataset %s: %w", set.Name, err)
	}
	kind := set.Archive.kind()
	if set.Archive.Local() {
		return Connection{Archive: bare, Bare: bare}, nil
	}
	polite, err := fetch.NewPolite(bare, s.Manners, s.Log.With("component", "fetch", "archive", set.Name))
	if err != nil {
		return Connection{}, fmt.Errorf("archive of dataset %s: %w", set.Name, err)
	}
	readers := s.Manners.Concurrent
	if kind.readers != nil {
		readers = min(readers, kind.readers(set.Archive))
	}
	return Connection{Archive: polite, Bare: bare, readers: readers}, nil
}
