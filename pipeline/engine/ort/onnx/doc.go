// Package onnx reads and writes ONNX files: the handful of protobuf messages
// that describe a network, as plain Go structs.
//
// Marshal writes files that the ONNX checker and every runtime accept. Unmarshal
// takes files from anywhere: it validates sizes, names and types, keeps its
// memory within a small multiple of the input's length, and answers a broken
// or hostile file with an error, never with a panic. Whatever tensor encoding
// a file uses, a tensor read holds its elements as little-endian bytes in Raw.
//
// Package onnx knows no operators: whether a node's inputs are valid is for
// the runtime to say. It does not read subgraphs, sparse tensors, sequences,
// functions or weights kept in a second file; each is an error that says so.
package onnx
