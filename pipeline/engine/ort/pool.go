package ort

import (
	"math/bits"
	"sync"

	"golang.org/x/sys/unix"
)

// pool lends memory to buffers. The memory is outside Go's heap, because the
// runtime keeps pointers to it between calls, and is kept in free lists by
// size class, so that a training loop, whose steps all need the same sizes,
// maps nothing new after the first two.
type pool struct {
	mu        sync.Mutex
	free      map[int][][]byte // idle blocks by size class
	freeBytes int
	slab      []byte // the rest of the mapping that small blocks are cut from
}

const (
	// alignBytes is a cache line and the widest vector of a CPU.
	alignBytes = 64
	// slabBytes is one mapping for many small blocks; larger blocks have a
	// mapping of their own and can be unmapped.
	slabBytes = 1 << 20
	// largeBytes is the smallest block with its own mapping.
	largeBytes = slabBytes / 4
	// maxFreeBytes bounds idle memory, for callers that change sizes often.
	maxFreeBytes = 1 << 30
)

func newPool() *pool { return &pool{free: map[int][][]byte{}} }

// take returns a block of at least size bytes. Its length is its class.
func (p *pool) take(size int) ([]byte, error) {
	class := sizeClass(size)
	p.mu.Lock()
	defer p.mu.Unlock()
	if list := p.free[class]; len(list) > 0 {
		block := list[len(list)-1]
		p.free[class] = list[:len(list)-1]
		p.freeBytes -= class
		return block, nil
	}
	if class >= largeBytes {
		return mapMemory(class)
	}
	if len(p.slab) < class {
		slab, err := mapMemory(slabBytes)
		if err != nil {
			return nil, err
		}
		p.slab = slab
	}
	block := p.slab[:class:class]
	p.slab = p.slab[class:]
	return block, nil
}

// give returns a block. One that would exceed the bound on idle memory is
// unmapped instead.
func (p *pool) give(block []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	class := len(block)
	if class >= largeBytes && p.freeBytes+class > maxFreeBytes {
		unmap(block)
		return
	}
	p.free[class] = append(p.free[class], block)
	p.freeBytes += class
}

// drain unmaps the large blocks that nobody holds.
func (p *pool) drain() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for class, list := range p.free {
		if class < largeBytes {
			continue
		}
		for _, block := range list {
			unmap(block)
		}
		p.freeBytes -= class * len(list)
		delete(p.free, class)
	}
}

// sizeClass rounds up to a quarter of a power of two, so at most a fifth of a
// block is unused.
func sizeClass(size int) int {
	if size <= 4*alignBytes {
		return max(alignBytes, (size+alignBytes-1)/alignBytes*alignBytes)
	}
	quarter := 1 << (bits.Len(uint(size-1)) - 3)
	return (size + quarter - 1) / quarter * quarter
}

func mapMemory(size int) ([]byte, error) {
	return unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
}

// unmap cannot fail for a block that mapMemory returned whole.
func unmap(block []byte) {
	if err := unix.Munmap(block); err != nil {
		panic("ort: unmap a block of the pool: " + err.Error())
	}
}
