package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"lacuna/publish/kafka/consumer"
)

// The list of events that were set aside lies in the folder of the products. When
// it has grown to asideBytes it becomes the old one, so that a topic full of nonsense
// does not fill the disk.
const (
	asideFile    = ".set-aside.jsonl"
	asideOldFile = ".set-aside.old.jsonl"
	asideBytes   = 16 << 20
)

// asideLine is an event that could not be completed.
type asideLine struct {
	At        time.Time `json:"at"`
	Partition int       `json:"partition"` // of the events topic
	Offset    int64     `json:"offset"`
	ID        string    `json:"id"`
	Dataset   string    `json:"dataset,omitempty"`
	Granule   string    `json:"granule,omitempty"`
	Revision  int       `json:"revision,omitempty"`
	File      string    `json:"file,omitempty"`
	Reason    string    `json:"reason"`
}

// missing sets aside the event of a product that cannot be had.
func (b inbox) missing(p consumer.Product) error {
	return b.setAside(asideLine{
		Partition: p.Partition, Offset: p.Offset, ID: p.ID, Dataset: p.Dataset, Granule: p.Granule, Revision: p.Revision,
		File: p.File.Name, Reason: p.Missing.Error(),
	})
}

// refused sets aside a message that is not an event.
func (b inbox) refused(_ context.Context, r consumer.Refusal) error {
	return b.setAside(asideLine{Partition: r.Partition, Offset: r.Offset, ID: r.ID, Reason: r.Reason.Error()})
}

// setAside adds a line to the list and reports it on standard error.
func (b inbox) setAside(line asideLine) (err error) {
	const most = 1000 // bytes of a text of others: the whole event is on the topic
	for _, s := range []*string{&line.ID, &line.Dataset, &line.Granule, &line.File, &line.Reason} {
		if len(*s) > most {
			*s = strings.ToValidUTF8((*s)[:most], "") + "…"
		}
	}
	line.At = time.Now().UTC()
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	path := filepath.Join(b.dir, asideFile)
	if info, err := os.Stat(path); err == nil && info.Size() > asideBytes {
		if err := os.Rename(path, filepath.Join(b.dir, asideOldFile)); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(append(text, '\n')); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	fmt.Fprintf(b.stderr, "lacuna: cannot be had: %s\n", oneLine(line.Reason))
	return nil
}

// oneLine returns text of others without control characters, for a screen.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, text)
}

// variable returns text of others as the value of an environment variable: the
// system takes neither zero bytes nor more than 128 KiB. The event has all of it.
func variable(text string) string {
	const most = 64 << 10
	return strings.ReplaceAll(text[:min(len(text), most)], "\x00", "")
}
