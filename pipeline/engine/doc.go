// Package engine picks the engine that networks run on and runs compiled graphs.
//
// There are three engines. "ort" is ONNX Runtime on the processor, the default
// everywhere; "ort:cuda" is the same on an NVIDIA GPU, for a library that was
// built with it; "xla:cuda" compiles for NVIDIA GPUs with the PJRT plug-in that
// comes with jax[cuda], which is found without configuration. For the name
// "auto" the best usable one is taken and the log says which and why. A named
// engine that cannot be used is an error: nothing falls back in silence.
//
// Graph code panics; Compile and Program.Run are the one place where such a
// panic becomes an error.
//
// Package engine knows nothing of networks or fields. To run on XLA it sets
// environment variables of this process and loads libraries into it, once and
// for good: both are how XLA is configured.
package engine
