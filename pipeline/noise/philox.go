package noise

import "math/bits"

// Constants of Philox 4x32: two odd multipliers, and the key increments (the
// golden ratio and sqrt(3)-1, as 32-bit fractions).
const (
	philoxMulA  = 0xD2511F53
	philoxMulB  = 0xCD9E8D57
	philoxKeyA  = 0x9E3779B9
	philoxKeyB  = 0xBB67AE85
	philoxRound = 10 // rounds; seven already pass BigCrush
)

// philox returns the four random words that belong to counter under key.
func philox(counter [4]uint32, key [2]uint32) [4]uint32 {
	c := counter
	for range philoxRound {
		hiA, loA := bits.Mul32(philoxMulA, c[0])
		hiB, loB := bits.Mul32(philoxMulB, c[2])
		c = [4]uint32{hiB ^ c[1] ^ key[0], loB, hiA ^ c[3] ^ key[1], loA}
		key[0] += philoxKeyA
		key[1] += philoxKeyB
	}
	return c
}
