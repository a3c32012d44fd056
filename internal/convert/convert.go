// Package convert turns slices of one type into slices of another, for the
// places where the words of one package become those of the next.
package convert

// Each returns f of every element of as, in their order. It is never nil.
func Each[A, B any](as []A, f func(A) B) []B {
	bs := make([]B, len(as))
	for i, a := range as {
		bs[i] = f(a)
	}
	return bs
}
