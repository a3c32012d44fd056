package ort

import (
	"testing"
	"unsafe"
)

func TestSizeClassHoldsTheSizeAndWastesLittle(t *testing.T) {
	for size := range 100_000 {
		class := sizeClass(size)
		if class < size || class%alignBytes != 0 {
			t.Fatalf("class of %d bytes is %d", size, class)
		}
		if size > 4*alignBytes && float64(class) > 1.26*float64(size) {
			t.Fatalf("class of %d bytes is %d, more than a quarter above", size, class)
		}
		if sizeClass(class) != class {
			t.Fatalf("class %d is of class %d", class, sizeClass(class))
		}
	}
}

func TestPoolLendsAlignedBlocksThatDoNotOverlap(t *testing.T) {
	p := newPool()
	defer p.drain()
	owner := map[uintptr]int{}
	for i := range 2000 {
		block, err := p.take(1 + i*37%5000)
		if err != nil {
			t.Fatal(err)
		}
		start := uintptr(unsafe.Pointer(unsafe.SliceData(block)))
		if start%alignBytes != 0 {
			t.Fatalf("block %d starts at %#x", i, start)
		}
		for line := start; line < start+uintptr(len(block)); line += alignBytes {
			if other, taken := owner[line]; taken {
				t.Fatalf("blocks %d and %d overlap", i, other)
			}
			owner[line] = i
		}
	}
}

func TestPoolReusesBlocksAndBoundsIdleMemory(t *testing.T) {
	p := newPool()
	defer p.drain()
	first, err := p.take(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	p.give(first)
	again, err := p.take(1<<20 - 5)
	if err != nil {
		t.Fatal(err)
	}
	if unsafe.SliceData(first) != unsafe.SliceData(again) {
		t.Error("a block that was given back was not used again")
	}
	p.give(again)
	p.freeBytes = maxFreeBytes - 10 // pretends that much other memory is idle
	large, err := p.take(2 << 20)
	if err != nil {
		t.Fatal(err)
	}
	p.give(large)
	if p.freeBytes > maxFreeBytes {
		t.Errorf("%d bytes lie idle, the bound is %d", p.freeBytes, maxFreeBytes)
	}
}
