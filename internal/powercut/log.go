package powercut

import (
	"errors"
)

// kind is what a change does.
type kind uint8

const (
	write    kind = iota // bytes at an offset of a file
	truncate             // the length of a file
	chmod                // the mode of a file
	link                 // a new name, of a new node too
	unlink               // a name is gone
	rename               // a name moves, and replaces what was there
	sync                 // what was done to a node before lasts
	mark                 // something happened outside of the disk
)

// change is an entry of the log.
type change struct {
	kind   kind
	node   int    // the node that is changed, named, renamed or synced
	bytes  []byte // of write
	offset int64  // of write; the length of truncate; the mode of chmod
	from   name   // of unlink and rename
	to     name   // of link and rename
	note   any    // of mark
}

// name is a place in a folder.
type name struct {
	folder int
	text   string
}

// shape is what of a node never changes.
type shape struct {
	folder bool
	target string // of a symbolic link
	mode   uint32 // with which it was made
}

// root is the number of the node of the topmost folder, which always exists.
const root = 0

// Log is everything that was done to a disk, in order.
type Log struct {
	changes []change
	nodes   []shape
}

// Len returns the number of changes.
func (l *Log) Len() int { return len(l.changes) }

// Syncs returns the positions of all syncs: a cut at such a position is just
// before it, one at the next just after.
func (l *Log) Syncs() []int {
	var at []int
	for i, c := range l.changes {
		if c.kind == sync {
			at = append(at, i)
		}
	}
	return at
}

// Marks returns the notes that were made before a cut.
func (l *Log) Marks(cut int) []any {
	var notes []any
	for _, c := range l.changes[:cut] {
		if c.kind == mark {
			notes = append(notes, c.note)
		}
	}
	return notes
}

// Without returns the log of a program that does not sync what match names, by
// the path that it had at that time.
func (l *Log) Without(match func(path string, folder bool) bool) (*Log, error) {
	less := &Log{nodes: l.nodes}
	t := newTree(l)
	for _, c := range l.changes {
		if c.kind == sync && match(t.path(c.node), l.nodes[c.node].folder) {
			continue
		}
		less.changes = append(less.changes, c)
		t.apply(c)
	}
	if len(less.changes) == len(l.changes) {
		return nil, errors.New("no sync matches: the program has never synced it")
	}
	return less, nil
}

// names returns the names that a change touches.
func (c change) names() []name {
	switch c.kind {
	case link:
		return []name{c.to}
	case unlink:
		return []name{c.from}
	case rename:
		return []name{c.from, c.to}
	}
	return nil
}
