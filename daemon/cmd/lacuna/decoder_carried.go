//go:build decoder

package main

import _ "embed"

//go:embed decoder
var decoder []byte
