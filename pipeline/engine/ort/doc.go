// Package ort runs GoMLX graphs with ONNX Runtime: it is a GoMLX backend that
// lowers a graph to ONNX operators and executes them in place. Export writes a
// network as a standard ONNX file.
//
// Weights stay where the runtime reads them between steps; nothing is copied
// in or out but what a caller reads or writes. The same graph on the same
// input gives the same bytes for a given number of threads. An operation that
// has no lowering is an error that names it.
//
// Package ort knows nothing of networks, training or oceans: to it a model is
// a graph and named tensors. It needs libonnxruntime 1.24 or later, which it
// loads once in a process.
//
// # From graph to session
//
//	GoMLX graph ─▶ builder ─▶ program ─▶ onnx.Model ─▶ session
//	               (lowers)   (rewrites)  (transcribe)   (Execute)
//
// The builder lowers each operation as it arrives; the methods of program
// simplify on the way: reshapes and transposes compose, broadcasts stay
// unexpanded, sums of products become matrix products, the gradient of silu
// is shortened, convolutions use the runtime's blocked layout and images stay
// in it through elementwise operations. Nodes that no output needs are dropped
// at the end.
//
// # Performance
//
// Where the time of a training step goes: a UNet of 2.1 million weights with
// group norm, batch 8, 64x64, one thread of an AVX-512 Xeon, in milliseconds.
// Each number is a sum over nodes of the shortest of several runs, from the
// profiles that Config.ProfilePrefix asks for, so that other load on the
// machine does not show. The last column is the small UNet of package nn, 2.0
// million weights, without group norm and with its weights in one vector.
//
//	                                 plain     now    package nn
//	convolution, its input gradient    537     310       252
//	reordering for the two               0      55        52
//	kernel gradient: products          258     215       172
//	kernel gradient: shifted copies    279     122       112
//	elementwise                        370     303       190
//	everything else                    143      95        77
//	all                               1587    1100       855
//
// What brought it down: the kernels of the blocked layout with weights that
// change (120 GFLOP/s against 55); columns shifted in the input and rows in the
// gradient (six copies for a 3x3 window, not nine); Resize in place of Expand
// for repeated pixels (0.5 ms against 19); the shorter gradient of silu;
// matrix products in place of sums over stored products.
package ort
