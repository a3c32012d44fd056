//go:build !decoder

package main

// decoder is the program that decodes granules, which make build puts here; without it
// the whole program does.
var decoder []byte
