package roofline

import (
	"context"
	"crypto/sha256"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
)

// Machine is what a machine can do, as it was measured. Rates are of a second of one
// core's time, so that other work on the machine counts little; that of the disk is
// of a second on the clock.
type Machine struct {
	Cores   int     `json:"cores"`
	Memory  float64 `json:"memory_bytes_per_core_s"` // read and written by a copy
	Flops   float64 `json:"flops_per_core_s"`        // of a product of matrices, double precision
	Hashing float64 `json:"sha256_bytes_per_core_s"`
	Disk    float64 `json:"disk_bytes_per_s"` // written and synced
	// Products is what the engine of networks does, in products of matrices: in float32 and a
	// second of one core's time, or on a GPU in bfloat16 and a second; 0: there is none.
	Products float64 `json:"products_per_s,omitempty"`
}

// Sizes of the probes: beyond the caches where memory is meant, within them where
// arithmetic is.
const (
	copiedBytes = 256 << 20
	matrixSide  = 384
	hashedBytes = 1 << 20
	diskBytes   = 64 << 20
)

// probe measures the machine; folder lies on the disk that is meant.
func probe(ctx context.Context, folder string, rounds int) (Machine, error) {
	m := Machine{Cores: runtime.GOMAXPROCS(0)}
	from, to := make([]byte, copiedBytes), make([]byte, copiedBytes)
	for i := range from {
		from[i] = byte(i)
	}
	copying, err := typical(ctx, rounds, func() error { copy(to, from); return nil })
	if err != nil {
		return m, err
	}
	m.Memory = 2 * copiedBytes / copying.cpu
	a := matrix()
	multiplying, err := typical(ctx, rounds, func() error {
		blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, a, a, 0, matrix())
		return nil
	})
	if err != nil {
		return m, err
	}
	m.Flops = 2 * matrixSide * matrixSide * matrixSide / multiplying.cpu
	hashing, err := typical(ctx, rounds, func() error { sha256.Sum256(from[:hashedBytes]); return nil })
	if err != nil {
		return m, err
	}
	m.Hashing = hashedBytes / hashing.cpu
	file := filepath.Join(folder, "probe")
	writing, err := typical(ctx, rounds, func() error { return writeSynced(file, from[:diskBytes]) })
	m.Disk = diskBytes / writing.wall
	return m, err
}

func matrix() blas64.General {
	m := blas64.General{Rows: matrixSide, Cols: matrixSide, Stride: matrixSide, Data: make([]float64, matrixSide*matrixSide)}
	for i := range m.Data {
		m.Data[i] = float64(i % 7)
	}
	return m
}

func writeSynced(path string, content []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(content); err != nil {
		return err
	}
	return f.Sync()
}

// took is what a call took, in seconds.
type took struct{ cpu, wall float64 }

// spent returns the time that counts: that of the cores, or of the clock where a GPU
// does the work.
func (t took) spent(device bool) float64 {
	if device {
		return t.wall
	}
	return t.cpu
}

// longCall is the processor time beyond which a call is made once: warming up is no
// part of it then, and nobody waits for more.
const longCall = 3 * time.Second

// typical returns the median of several calls, after one that warms up. The
// processor time is that of this process and of its children that have ended.
func typical(ctx context.Context, rounds int, call func() error) (took, error) {
	cpus, walls := make([]float64, 0, rounds), make([]float64, 0, rounds)
	for i := range rounds + 1 {
		if err := ctx.Err(); err != nil {
			return took{}, err
		}
		began, before := time.Now(), processorTime()
		if err := call(); err != nil {
			return took{}, err
		}
		cpu, wall := processorTime()-before, time.Since(began).Seconds()
		if i == 0 && cpu > longCall.Seconds() {
			return took{cpu: cpu, wall: wall}, nil
		}
		if i > 0 {
			cpus, walls = append(cpus, cpu), append(walls, wall)
		}
	}
	return took{cpu: median(cpus), wall: median(walls)}, nil
}

// processorTime returns the seconds of all cores that this process and its children
// have used.
func processorTime() float64 {
	total := int64(0)
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var used syscall.Rusage
		if err := syscall.Getrusage(who, &used); err == nil {
			total += used.Utime.Nano() + used.Stime.Nano()
		}
	}
	return float64(total) / 1e9
}
