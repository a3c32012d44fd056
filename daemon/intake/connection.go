package intake

import (
	"fmt"
	"io"
	"log/slog"
	"time"

	"lacuna/daemon/state"
	"lacuna/daemon/version"
	"lacuna/fetch"
	"lacuna/fetch/cmems"
	"lacuna/fetch/dir"
	"lacuna/fetch/ftp"
	"lacuna/fetch/http"
	"lacuna/fetch/s3"
	"lacuna/pipeline/ingest"
)

// Dataset is what an intake has to know of the dataset that it brings in.
type Dataset struct {
	Name    string
	Archive Archive
	Options ingest.Options // how its granules are read
}

// Parts are what all intakes share.
type Parts struct {
	State   state.Dir
	Spool   *fetch.Spool           // one for all datasets, so that they share the disk fairly
	Manners fetch.PolitenessConfig // towards the hosts of archives
	Reader  Reader
	Now     func() time.Time
	Log     *slog.Logger
}

// Archives open the archives of datasets and bring their granules in. Requests
// to one host are paced together, whichever dataset they are for.
type Archives struct {
	Parts
	manners fetch.Politeness
}

// New returns the archives. It touches nothing.
func New(parts Parts) (*Archives, error) {
	pacer, err := fetch.NewPacer(parts.Manners.Pace)
	if err != nil {
		return nil, err
	}
	return &Archives{Parts: parts, manners: fetch.Politeness{UserAgent: "lacuna/" + version.String(), Pacer: pacer}}, nil
}

// Connection is an archive with its manners, and the bare one below them.
type Connection struct {
	fetch.Archive
	Bare    fetch.Archive
	readers int // that may be open at a time; 0: any number
}

// Close lets go of the connections that the archive holds open.
func (c Connection) Close() error {
	if closer, ok := c.Bare.(io.Closer); ok {
		return closer.Close()
	}
	return nil
}

// Open returns the archive of a dataset. It touches neither the network nor
// the disk.
func (s *Archives) Open(set Dataset) (Connection, error) {
	bare, err := s.bare(set)
	if err != nil {
		return Connection{}, fmt.Errorf("archive of dataset %s: %w", set.Name, err)
	}
	if set.Archive.Type == "dir" { // a folder needs no manners
		return Connection{Archive: bare, Bare: bare}, nil
	}
	polite, err := fetch.NewPolite(bare, s.Manners, s.Log.With("component", "fetch", "archive", set.Name))
	if err != nil {
		return Connection{}, fmt.Errorf("archive of dataset %s: %w", set.Name, err)
	}
	readers := s.Manners.Concurrent
	if set.Archive.Type == "ftp" {
		readers = min(readers, set.Archive.FTP.Connections)
	}
	return Connection{Archive: polite, Bare: bare, readers: readers}, nil
}

func (s *Archives) bare(set Dataset) (fetch.Archive, error) {
	switch a := set.Archive; a.Type {
	case "s3":
		return s3.New(a.S3, s.manners)
	case "ftp":
		return ftp.New(a.FTP, s.manners)
	case "http":
		return http.New(a.HTTP, s.manners)
	case "cmems":
		return cmems.New(pinned(a.CMEMS, s.State.Version(set.Name)), s.manners)
	}
	return dir.New(set.Archive.Dir, set.Archive.DirMax), nil
}

// pinned is cfg with a place to remember the chosen version in, where the
// configuration names none.
func pinned(cfg cmems.Config, file string) cmems.Config {
	if cfg.PinFile == "" {
		cfg.PinFile = file
	}
	return cfg
}
