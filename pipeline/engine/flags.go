package engine

import "flag"

// AddFlags adds the settings of engines to the flags of a program.
func (c *Config) AddFlags(f *flag.FlagSet) {
	f.StringVar(&c.Library, "library", "", "libonnxruntime (default: found)")
	f.StringVar(&c.Plugin, "plugin", "", "PJRT plug-in for CUDA (default: found)")
	f.StringVar(&c.Python, "python", "", "Python that has jax[cuda] (default: python3)")
	f.StringVar(&c.CacheDir, "cache", "", "folder where XLA keeps its tuning (default: lacuna/xla in the user's cache)")
	f.IntVar(&c.Threads, "threads", 0, "threads of ort (default: OMP_NUM_THREADS, or else all cores)")
}
