package ort

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	runtimelib "github.com/yalue/onnxruntime_go"
)

// buffer is a tensor in memory that ONNX Runtime reads and writes in place.
// It is not safe to finalize a buffer while a run uses it; GoMLX does not.
type buffer struct {
	shape  shapes.Shape
	memory []byte // block of the pool, at least as long as the tensor
	value  *runtimelib.CustomDataTensor
	stop   func() // ends the watch that returns the memory of a forgotten buffer
}

// errFinalized means that a buffer was used after it was given back.
var errFinalized = errors.New("the buffer was finalized or donated before")

// newBuffer takes memory for a tensor from the pool; its content is not set.
func (b *Backend) newBuffer(shape shapes.Shape) (*buffer, error) {
	if b.finalized.Load() {
		return nil, errors.New("the ort engine was finalized")
	}
	kind, err := elementType(shape.DType)
	if err != nil {
		return nil, err
	}
	size := shape.Size() * shape.DType.Size()
	memory, err := b.pool.take(size)
	if err != nil {
		return nil, fmt.Errorf("get %d bytes for a tensor %s: %w", size, shape, err)
	}
	value, err := runtimelib.NewCustomDataTensor(runtimeShape(shape), memory[:max(size, 1)], runtimelib.TensorElementDataType(kind))
	if err != nil {
		b.pool.give(memory)
		return nil, fmt.Errorf("make a tensor %s: %w", shape, err)
	}
	x := &buffer{shape: shape, memory: memory, value: value}
	x.stop = runtime.AddCleanup(x, func(value *runtimelib.CustomDataTensor) {
		destroy(value)
		b.pool.give(memory)
	}, value).Stop
	return x, nil
}

// runtimeShape makes a scalar a vector of one: onnxruntime_go has no rank 0.
func runtimeShape(shape shapes.Shape) runtimelib.Shape {
	if shape.Rank() == 0 {
		return runtimelib.NewShape(1)
	}
	dims := make([]int64, shape.Rank())
	for i, d := range shape.Dimensions {
		dims[i] = int64(d)
	}
	return dims
}

// bytes returns the memory of the tensor's elements.
func (x *buffer) bytes() []byte { return x.memory[:x.shape.Size()*x.shape.DType.Size()] }

// release gives the memory back. A second release does nothing.
func (b *Backend) release(x *buffer) error {
	if x.value == nil {
		return nil
	}
	x.stop()
	err := x.value.Destroy()
	x.value = nil
	b.pool.give(x.memory)
	x.memory = nil
	return err
}

// asBuffer checks that an opaque buffer belongs to this backend and is not released.
func asBuffer(opaque backends.Buffer) (*buffer, error) {
	x, ok := opaque.(*buffer)
	if !ok || x == nil {
		return nil, fmt.Errorf("buffer is a %T, which does not belong to the ort engine", opaque)
	}
	if x.value == nil {
		return nil, errFinalized
	}
	return x, nil
}

// BufferFinalize gives the buffer's memory back to the pool.
func (b *Backend) BufferFinalize(opaque backends.Buffer) error {
	x, err := asBuffer(opaque)
	if errors.Is(err, errFinalized) {
		return nil
	}
	if err != nil {
		return err
	}
	return b.release(x)
}

// BufferShape returns the shape of the tensor.
func (b *Backend) BufferShape(opaque backends.Buffer) (shapes.Shape, error) {
	x, err := asBuffer(opaque)
	if err != nil {
		return shapes.Invalid(), err
	}
	return x.shape, nil
}

// BufferDeviceNum returns 0: buffers are in the memory of the host.
func (b *Backend) BufferDeviceNum(opaque backends.Buffer) (backends.DeviceNum, error) {
	_, err := asBuffer(opaque)
	return 0, err
}

// BufferToFlatData copies the tensor into flat, a slice of its element type
// and size.
func (b *Backend) BufferToFlatData(opaque backends.Buffer, flat any) error {
	x, err := asBuffer(opaque)
	if err != nil {
		return err
	}
	to, err := matchingBytes(flat, x.shape)
	if err != nil {
		return err
	}
	copy(to, x.bytes())
	return nil
}

// BufferFromFlatData copies flat into a new buffer.
func (b *Backend) BufferFromFlatData(_ backends.DeviceNum, flat any, shape shapes.Shape) (backends.Buffer, error) {
	from, err := matchingBytes(flat, shape)
	if err != nil {
		return nil, err
	}
	x, err := b.newBuffer(shape)
	if err != nil {
		return nil, err
	}
	copy(x.bytes(), from)
	return x, nil
}

// matchingBytes returns the memory of flat if it has the type and size of shape.
func matchingBytes(flat any, shape shapes.Shape) ([]byte, error) {
	data, dtype, err := bytesOf(flat)
	if err != nil {
		return nil, err
	}
	if dtype != shape.DType || len(data) != shape.Size()*shape.DType.Size() {
		return nil, fmt.Errorf("a slice %T of %d bytes does not hold a tensor %s", flat, len(data), shape)
	}
	return data, nil
}
