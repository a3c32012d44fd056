// Package modelstore will keep the versions of trained models on disk: a
// version is an immutable folder of ONNX files with a card that says what it
// was trained on and how it scored, and an append-only log says which version
// was champion of which dataset when.
//
// Nothing is trained yet: granules are filled by the classical methods, and
// this package holds only its contract. It will know bytes and cards, no
// tensors, and will import nothing of this module.
package modelstore
