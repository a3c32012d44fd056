// Package nn holds the networks: a UNet after Karras and a vision transformer,
// as GoMLX graph functions.
//
// A network is built in two steps. NewUNet and NewViT check a config and lay
// out the weights: names, shapes and places in one flat vector, in plain Go,
// without a backend. Apply then adds the network to a graph, given a Weights
// that turns a place into a node. So the same definition serves training (the
// weights are slices of a vector that the optimizer updates), inference (they
// are constants, which a runtime can rearrange once) and export (they are
// named parameters).
//
// Images are [batch, channels, height, width]. Nothing crosses from one sample
// of a batch to another: an item gives the same answer alone as in a batch of
// four. Initial weights depend on the seed and the name of each
// weight only, not on the engine or on the order of layers.
//
// Normalisation, softmax and the output are float32 even where the rest runs
// in bfloat16.
//
// Package nn does not know where inputs come from, which loss is used, or how
// anything is executed. Wrong shapes are the caller's bug and panic, as
// everywhere in graph code; package engine turns such a panic into an error.
package nn
