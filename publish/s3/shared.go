package s3

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/minio/minio-go/v7"
)

// Reader returns the content of an object; nil where there is none.
func (b *Bucket) Reader(ctx context.Context, key string) (io.ReadCloser, error) {
	object, err := b.client.GetObject(ctx, b.cfg.Bucket, b.key(key), minio.GetObjectOptions{})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	if _, err := object.Stat(); err != nil { // GetObject asks for nothing yet
		object.Close()
		if absent(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	return object, nil
}

// PutFrom writes an object of a size, which the host shows whole or not at all.
func (b *Bucket) PutFrom(ctx context.Context, key string, content io.Reader, size int64) error {
	if _, err := b.client.PutObject(ctx, b.cfg.Bucket, b.key(key), content, size, minio.PutObjectOptions{}); err != nil {
		return fmt.Errorf("write %s: %w", key, err)
	}
	return nil
}

// Create writes an object unless there is one, which it reports.
func (b *Bucket) Create(ctx context.Context, key string, content []byte) (created bool, err error) {
	var options minio.PutObjectOptions
	options.SetMatchETagExcept("*")
	options.DisableMultipart = true // a condition holds for one request
	_, err = b.client.PutObject(ctx, b.cfg.Bucket, b.key(key), bytes.NewReader(content), int64(len(content)), options)
	switch response := minio.ToErrorResponse(err); {
	case err == nil:
		return true, nil
	case response.StatusCode == http.StatusPreconditionFailed || response.StatusCode == http.StatusConflict:
		return false, nil
	}
	return false, fmt.Errorf("write %s: %w", key, err)
}

// Changed returns when an object was written, and false where there is none.
func (b *Bucket) Changed(ctx context.Context, key string) (at time.Time, there bool, err error) {
	info, err := b.client.StatObject(ctx, b.cfg.Bucket, b.key(key), minio.StatObjectOptions{})
	if absent(err) {
		return at, false, nil
	}
	if err != nil {
		return at, false, fmt.Errorf("look for %s: %w", key, err)
	}
	return info.LastModified, true, nil
}

// Renew makes an object one that was written now.
func (b *Bucket) Renew(ctx context.Context, key string) error {
	_, err := b.client.CopyObject(ctx,
		minio.CopyDestOptions{Bucket: b.cfg.Bucket, Object: b.key(key), ReplaceMetadata: true},
		minio.CopySrcOptions{Bucket: b.cfg.Bucket, Object: b.key(key)})
	if err != nil && !absent(err) {
		return fmt.Errorf("renew %s: %w", key, err)
	}
	return nil
}
