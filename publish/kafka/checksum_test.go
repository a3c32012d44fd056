package kafka

import (
	"hash/crc32"
	"math/rand/v2"
	"testing"
)

func TestChecksumOfTwoPiecesIsThatOfTheWhole(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, 7, 40, 255, 256, 65_537, 900_123} {
		all := make([]byte, 40+n)
		for i := range all {
			all[i] = byte(r.Uint32())
		}
		for _, at := range []int{0, 1, 36, 40} {
			got := joined(crc32.Checksum(all[:at], castagnoli), crc32.Checksum(all[at:], castagnoli), len(all)-at)
			if want := crc32.Checksum(all, castagnoli); got != want {
				t.Errorf("%d bytes and %d: %08x, not %08x", at, len(all)-at, got, want)
			}
		}
	}
}
