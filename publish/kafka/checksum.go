package kafka

import "hash/crc32"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// joined returns the checksum of two pieces, one behind the other, from those of each
// and the length of the second. A checksum is the remainder of a polynomial over two
// elements, the lowest bit that of its highest power: bytes that follow multiply it by a
// power of x, and what they are is added.
func joined(first, second uint32, length int) uint32 {
	const one, byByte = uint32(1) << 31, uint32(1) << 23 // x⁰ and x⁸
	power := one
	for square := byByte; length > 0; length >>= 1 {
		if length&1 != 0 {
			power = product(power, square)
		}
		square = product(square, square)
	}
	return product(first, power) ^ second
}

// product multiplies two remainders.
func product(a, b uint32) uint32 {
	sum := uint32(0)
	for ; a != 0; a <<= 1 {
		if a&(1<<31) != 0 {
			sum ^= b
		}
		if b&1 != 0 {
			b = b>>1 ^ crc32.Castagnoli
		} else {
			b >>= 1
		}
	}
	return sum
}
