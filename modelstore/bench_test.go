package modelstore

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
)

// BenchmarkLoad measures the check of every byte when a champion is loaded: it
// is bound by sha256 and the disk.
func BenchmarkLoad(b *testing.B) {
	for _, megabytes := range []int{1, 32} { // a small and a base network
		b.Run(fmt.Sprintf("%dMB", megabytes), func(b *testing.B) {
			s := newStore(b)
			weights := make([]byte, megabytes<<20)
			random := rand.NewChaCha8([32]byte{1})
			_, _ = random.Read(weights) // never an error
			v, err := s.Write(b.Context(), Card{Dataset: "bench"}, map[string]io.Reader{ImputerFile: bytes.NewReader(weights)})
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(weights)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Load(v.ID); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
