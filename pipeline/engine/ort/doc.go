// Package ort runs GoMLX graphs with ONNX Runtime: it is a GoMLX backend that
// lowers a graph to ONNX operators and executes them in place. Export writes a
// network as a standard ONNX file.
//
// Weights stay between steps in the memory that the runtime reads; only data
// that a caller reads or writes are copied. The same graph on the same
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
// Where the time of a training step goes: the small UNet of package nn, 2.0
// million weights, batch 8, 64x64, on one and two threads of an AVX-512 Xeon,
// in milliseconds. Each number is a sum over nodes of the shortest of several
// runs, from the profiles that Config.ProfilePrefix asks for, so that other
// load on the machine shows little. "Before" shifted images with Pad and
// reordered kernels with Transpose, which run on one thread.
//
//	                                  before          now
//	threads                           1     2       1     2
//	convolution, its input gradient  253   131     248   128
//	reordering images and kernels     49    26      51    27
//	kernel gradient: products        172    91     166    86
//	kernel gradient: shifted copies  110    96      83    47
//	transposes                        34    33       9     9
//	elementwise                      186   104     157    86
//	everything else                   36    30      27    24
//	all                              840   511     743   409
//
// The step itself (median of ten) and PyTorch's in turn, two threads, in the
// quietest of three rounds on a shared machine:
//
//	lacuna lab steps -engine ort -threads 2 -size small -batch 8 -side 64 -steps 10
//	torch_unet.py --size small --batch 8 --side 64 --device cpu --threads 2 --steps 10
//
//	            before      now    PyTorch 2.15, eager
//	step           516      403    438
//	forward        125      101    128
//
// These changes helped: the kernels of the blocked layout with weights that
// change (120 GFLOP/s against 55); three shifted copies of the input and three
// of the gradient for a 3x3 window, not nine; Concat in place of Pad for them;
// ReorderInput for kernels; Resize in place of Expand for repeated pixels (0.5
// ms against 19) and AveragePool in place of ReduceSum for the way back; the
// shorter gradient of silu; matrix products in place of sums over stored
// products. These did not: one product for all places of a window (87 GFLOP/s a
// thread against 110), and shifted copies whose length is a multiple of 16.
package ort
