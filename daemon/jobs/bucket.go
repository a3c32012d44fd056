package jobs

import (
	"context"
	"io"
	"io/fs"
	"time"

	"lacuna/publish/s3"
)

// Bucket is a part of a bucket of S3. It is a Storage: its host must know conditional
// writes (If-None-Match), by which the first of two results counts.
type Bucket struct{ *s3.Bucket }

// A transfer is given up after this time: the largest product over a slow line.
const bucketLimit = 10 * time.Minute

func within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), bucketLimit)
}

// canceller ends the context of a transfer with its reader.
type canceller struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (c canceller) Close() error {
	defer c.cancel()
	return c.ReadCloser.Close()
}

// Open implements Storage.
func (b Bucket) Open(key string) (io.ReadCloser, error) {
	ctx, cancel := within()
	in, err := b.Reader(ctx, key)
	if err == nil && in == nil {
		err = &fs.PathError{Op: "open", Path: key, Err: fs.ErrNotExist}
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return canceller{in, cancel}, nil
}

// Put implements Storage.
func (b Bucket) Put(key string, content io.Reader, size int64) error {
	ctx, cancel := within()
	defer cancel()
	return b.PutFrom(ctx, key, content, size)
}

// Create implements Storage.
func (b Bucket) Create(key string, content []byte) (bool, error) {
	ctx, cancel := within()
	defer cancel()
	return b.Bucket.Create(ctx, key, content)
}

// Touch implements Storage. The time of an object changes when it is copied onto
// itself, so that is done once in a while only.
func (b Bucket) Touch(key string) (bool, error) {
	const often = 15 * time.Minute // less than any workers.keep
	ctx, cancel := within()
	defer cancel()
	changed, there, err := b.Changed(ctx, key)
	if err != nil || !there || time.Since(changed) < often {
		return there, err
	}
	return true, b.Renew(ctx, key)
}

// Remove implements Storage.
func (b Bucket) Remove(key string) error {
	ctx, cancel := within()
	defer cancel()
	return b.Bucket.Remove(ctx, key)
}

// List implements Storage.
func (b Bucket) List(folder string, each func(key string, used time.Time) error) error {
	ctx, cancel := within()
	defer cancel()
	return b.Walk(ctx, folder, each)
}
