package powercut

import (
	"math/rand/v2"
	"slices"
)

// Fate says what became of the changes that were not synced when the power went.
type Fate uint8

// The fates. Of those with a part, a seed says which.
const (
	Lost   Fate = iota // none is on the disk
	Landed             // all are
	Prefix             // the first ones are
	Names              // those of names are, and no bytes
	Bytes              // those of files are, and no names
	Some               // any of them are, writes by the page
)

var fateNames = [...]string{"lost", "landed", "prefix", "names", "bytes", "some"}

// Fates returns all of them.
func Fates() []Fate { return []Fate{Lost, Landed, Prefix, Names, Bytes, Some} }

func (f Fate) String() string { return fateNames[f] }

// Cut is a moment at which the power goes, and what is on the disk then.
type Cut struct {
	At   int // changes that were made before
	Fate Fate
	Seed uint64
}

// pageBytes is the part of a write that a disk writes whole.
const pageBytes = 4096

// Image returns what is on the disk after a cut.
func (l *Log) Image(c Cut) *Image {
	kept := l.kept(c)
	t := newTree(l)
	for _, k := range kept {
		t.apply(k)
	}
	return &Image{t}
}

// kept returns the changes that a cut leaves on the disk, in order.
func (l *Log) kept(c Cut) []change {
	done := l.changes[:c.At]
	lasts := lasting(l.nodes, done)
	random := rand.New(rand.NewPCG(c.Seed, uint64(c.At)))
	chance, end := random.Float64(), 0
	if c.At > 0 {
		end = random.IntN(c.At + 1)
	}
	var kept []change
	held := map[name]bool{}     // names of which a change is not on the disk: later ones are not either
	inhabited := map[int]bool{} // folders in which one is not: they cannot go
	for i, ch := range done {
		there := lasts[i]
		if !there {
			switch c.Fate {
			case Landed:
				there = true
			case Prefix:
				there = i < end
			case Names:
				there = len(ch.names()) > 0
			case Bytes:
				there = len(ch.names()) == 0
			case Some:
				if ch.kind == write {
					kept = append(kept, somePages(ch, chance, random)...)
					continue
				}
				there = random.Float64() < chance
			}
		}
		for _, n := range ch.names() {
			there = there && !held[n]
		}
		if there = there && (ch.kind != unlink || !inhabited[ch.node]); there {
			kept = append(kept, ch)
			continue
		}
		for _, n := range ch.names() {
			held[n], inhabited[n.folder] = true, true
		}
	}
	return kept
}

// somePages returns each page of a write with a chance.
func somePages(w change, chance float64, random *rand.Rand) []change {
	var pages []change
	for at := int64(0); at < int64(len(w.bytes)); {
		end := min(int64(len(w.bytes)), at+pageBytes-(w.offset+at)%pageBytes)
		if random.Float64() < chance {
			pages = append(pages, change{kind: write, node: w.node, bytes: w.bytes[at:end], offset: w.offset + at})
		}
		at = end
	}
	return pages
}

// lasting says of each change whether it was synced: by its node or folder, or
// because a later change of the same name was.
func lasting(nodes []shape, done []change) []bool {
	lasts := make([]bool, len(done))
	open := map[int][]int{}    // changes not yet synced, by the node whose sync makes them last
	before := map[name][]int{} // changes of each name
	var last func(i int)
	last = func(i int) {
		if lasts[i] {
			return
		}
		lasts[i] = true
		for _, n := range done[i].names() {
			for _, j := range before[n] {
				if j < i {
					last(j)
				}
			}
		}
		if done[i].kind == unlink && nodes[done[i].node].folder {
			for _, j := range open[done[i].node] { // a folder goes when it is empty
				if j < i {
					last(j)
				}
			}
		}
	}
	for i, c := range done {
		if c.kind == sync {
			for _, j := range open[c.node] {
				last(j)
			}
			delete(open, c.node)
			continue
		}
		var by []int
		if len(c.names()) == 0 && c.kind != mark {
			by = []int{c.node}
		}
		for _, n := range c.names() {
			before[n] = append(before[n], i)
			by = append(by, n.folder)
		}
		for _, node := range slices.Compact(by) {
			open[node] = append(open[node], i)
		}
	}
	return lasts
}
