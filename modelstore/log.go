package modelstore

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Action is the kind of an entry of the log.
type Action string

// The actions of the log.
const (
	Promoted   Action = "promote"  // the version became champion
	RolledBack Action = "rollback" // an earlier champion became champion again
	Refused    Action = "refuse"   // the version was judged and did not become champion
	Unjudged   Action = "unjudged" // nobody could tell whether the version is better than the champion
)

// Entry is a line of promotions.log.
type Entry struct {
	Seq        int       `json:"seq"` // from 1
	Time       time.Time `json:"time"`
	Action     Action    `json:"action"`
	Dataset    string    `json:"dataset"`
	Version    string    `json:"version"`
	CardSHA256 string    `json:"card_sha256"`
	Previous   string    `json:"previous,omitempty"` // champion before; empty: none
	By         string    `json:"by"`                 // person or program
	Why        []string  `json:"why"`                // one sentence each

	// TornBytes is the length of an unfinished line before this one, left by a
	// killed writer and cut off.
	TornBytes int64 `json:"torn_bytes,omitempty"`
}

// BadLog names the first line of promotions.log that is not as it was written.
type BadLog struct {
	Path  string
	Line  int // from 1
	Wrong string
}

func (e *BadLog) Error() string {
	return fmt.Sprintf("%s line %d: %s; the lines before it still hold, nothing can be promoted until the file is restored from a backup, or cut before that line",
		e.Path, e.Line, e.Wrong)
}

// history is the content of the log.
type history struct {
	entries []Entry
	// lines is the standing of every dataset: its champions of all time, less
	// those that were rolled back, the present one last.
	lines map[string][]Entry

	chain     string // hash of the last line
	goodBytes int64  // up to and with the last whole line
	tornBytes int64  // length of an unfinished line after that
	bad       *BadLog
}

// champion returns the entry by which the champion of a dataset became it.
func (h *history) champion(dataset string) (Entry, bool) {
	line := h.lines[dataset]
	if len(line) == 0 {
		return Entry{}, false
	}
	return line[len(line)-1], true
}

func (s *Store) logPath() string { return filepath.Join(s.dir, "promotions.log") }

// readHistory reads the log, without a lock. A log that is not there is empty.
func (s *Store) readHistory() (*history, error) {
	// maxLogBytes is a promotion an hour for a century.
	const maxLogBytes = 1 << 29
	for again := false; ; again = true {
		data, err := readAtMost(s.logPath(), maxLogBytes)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read promotions: %w", err)
		}
		h := parseLog(data)
		if h.bad == nil {
			return h, nil
		}
		// A reader may see half of an unfinished line being replaced; real
		// damage is still there at the second reading.
		if again {
			h.bad.Path = s.logPath()
			return h, nil
		}
	}
}

// parseLog reads the log as far as its chain holds.
func parseLog(data []byte) *history {
	h := &history{lines: map[string][]Entry{}}
	for number := 1; ; number++ {
		line, rest, whole := bytes.Cut(data, []byte{'\n'})
		if !whole {
			h.tornBytes = int64(len(line))
			return h
		}
		entry, chain, err := parseLine(line, h.chain)
		if err == nil && entry.Seq != number {
			err = fmt.Errorf("entry %d stands in its place", entry.Seq)
		}
		if err != nil {
			h.bad = &BadLog{Line: number, Wrong: err.Error()}
			return h
		}
		h.add(entry)
		h.chain = chain
		h.goodBytes += int64(len(line)) + 1
		data = rest
	}
}

// add applies an entry to the standing of its dataset.
func (h *history) add(e Entry) {
	h.entries = append(h.entries, e)
	line := h.lines[e.Dataset]
	switch e.Action {
	case Promoted:
		h.lines[e.Dataset] = append(line, e)
	case RolledBack:
		for len(line) > 0 && line[len(line)-1].Version != e.Version {
			line = line[:len(line)-1]
		}
		if len(line) == 0 {
			line = append(line, e)
		}
		h.lines[e.Dataset] = line
	}
}

// Every line ends in its link: the hash of the line before and of this one up
// to the link. So a change to any line, the last one too, shows.
const (
	linkHead = `,"chain":"`
	linkTail = `"}`
	linkSize = len(linkHead) + 64 + len(linkTail)
)

func formatLine(e Entry, before string) (line []byte, chain string, err error) {
	data, err := json.Marshal(e)
	if err != nil {
		return nil, "", err
	}
	body := data[:len(data)-1] // without the closing brace
	chain = hashOf(append([]byte(before), body...))
	return fmt.Appendf(body, "%s%s%s\n", linkHead, chain, linkTail), chain, nil
}

func parseLine(line []byte, before string) (e Entry, chain string, err error) {
	if len(line) < linkSize {
		return e, "", errors.New("not an entry of the log")
	}
	body, link := line[:len(line)-linkSize], line[len(line)-linkSize:]
	chain = hashOf(append([]byte(before), body...))
	if string(link) != linkHead+chain+linkTail {
		return e, "", errors.New("the line or one before it was changed: its chain does not match")
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return e, "", err
	}
	if !plainName(e.Dataset) || !validID(e.Version) {
		return e, "", fmt.Errorf("dataset %q or version %q is not a valid name", e.Dataset, e.Version)
	}
	return e, chain, nil
}

// appendEntry writes an entry after the last whole line of h, to the disk. The
// caller holds the lock and has read h under it.
func (s *Store) appendEntry(h *history, e Entry) (Entry, error) {
	if h.bad != nil {
		return Entry{}, h.bad
	}
	e.Seq, e.Time, e.TornBytes = len(h.entries)+1, s.now().UTC(), h.tornBytes
	line, _, err := formatLine(e, h.chain)
	if err != nil {
		return Entry{}, err
	}
	file, err := os.OpenFile(s.logPath(), os.O_WRONLY|os.O_CREATE, fileMode)
	if err != nil {
		return Entry{}, s.explain(err)
	}
	if h.tornBytes > 0 {
		err = file.Truncate(h.goodBytes)
	}
	if err == nil {
		_, err = file.WriteAt(line, h.goodBytes)
	}
	if err = errors.Join(err, file.Sync()); err == nil && h.goodBytes == 0 {
		err = syncFolder(s.dir)
	}
	if err != nil {
		// An entry that is reported as an error must not be read later.
		return Entry{}, s.explain(errors.Join(err, file.Truncate(h.goodBytes), file.Close()))
	}
	return e, file.Close()
}
