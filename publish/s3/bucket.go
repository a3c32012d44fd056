package s3

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// connection is the way to the objects of a bucket, by their whole keys.
type connection struct {
	cfg    Config
	client *minio.Client
}

func connect(cfg Config) (connection, error) {
	if err := cfg.Validate(); err != nil {
		return connection{}, fmt.Errorf("s3 config: %w", err)
	}
	u, err := url.Parse(cfg.Endpoint)
	if err != nil {
		return connection{}, fmt.Errorf("s3 config: %w", err)
	}
	client, err := minio.New(u.Host, &minio.Options{
		Secure: u.Scheme == "https", Region: cfg.Region, BucketLookup: minio.BucketLookupPath,
		Creds: credentials.NewChainCredentials([]credentials.Provider{
			&credentials.EnvAWS{}, &credentials.FileAWSCredentials{Filename: cfg.CredentialsFile, Profile: cfg.Profile},
		}),
	})
	if err != nil {
		return connection{}, fmt.Errorf("s3 config: %w", err)
	}
	return connection{cfg: cfg, client: client}, nil
}

// Check tests that the bucket is there and accepts the keys. An error names the
// remedy.
func (s connection) Check(ctx context.Context) error {
	there, err := s.client.BucketExists(ctx, s.cfg.Bucket)
	if err != nil {
		return fmt.Errorf("look for bucket %s: %w", s.cfg.Bucket, err)
	}
	if !there {
		return fmt.Errorf("there is no bucket %s: make it, or name another", s.cfg.Bucket)
	}
	return nil
}

// get returns an object; nil where there is none.
func (s connection) get(ctx context.Context, key string) ([]byte, error) {
	object, err := s.client.GetObject(ctx, s.cfg.Bucket, key, minio.GetObjectOptions{})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	defer object.Close()
	content, err := io.ReadAll(object)
	if absent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	return content, nil
}

// put writes a small object.
func (s connection) put(ctx context.Context, key string, content []byte, kind string) error {
	_, err := s.client.PutObject(ctx, s.cfg.Bucket, key, bytes.NewReader(content), int64(len(content)),
		minio.PutObjectOptions{ContentType: kind})
	if err != nil {
		return fmt.Errorf("write %s: %w", key, err)
	}
	return nil
}

func (s connection) remove(ctx context.Context, key string) error {
	if err := s.client.RemoveObject(ctx, s.cfg.Bucket, key, minio.RemoveObjectOptions{}); err != nil && !absent(err) {
		return fmt.Errorf("remove %s: %w", key, err)
	}
	return nil
}

// absent reports whether an error says that there is no such object. That the
// bucket is not there is another matter.
func absent(err error) bool {
	response := minio.ToErrorResponse(err)
	return response.Code == minio.NoSuchKey || (response.StatusCode == http.StatusNotFound && response.Code != minio.NoSuchBucket)
}

// Bucket is the part of a bucket below the prefix, for sinks that keep other
// objects than files of products. Its keys are relative to the prefix.
type Bucket struct{ connection }

// Open returns the bucket of a configuration. It touches nothing.
func Open(cfg Config) (*Bucket, error) {
	c, err := connect(cfg)
	return &Bucket{c}, err
}

func (b *Bucket) key(name string) string { return path.Join(b.cfg.Prefix, name) }

// Get returns an object; nil where there is none.
func (b *Bucket) Get(ctx context.Context, key string) ([]byte, error) { return b.get(ctx, b.key(key)) }

// Put writes an object, which the host shows whole or not at all.
func (b *Bucket) Put(ctx context.Context, key string, content []byte, kind string) error {
	return b.put(ctx, b.key(key), content, kind)
}

// Remove removes an object that may not be there.
func (b *Bucket) Remove(ctx context.Context, key string) error { return b.remove(ctx, b.key(key)) }

// Move gives an object another key, as a copy that the host makes. Where there is
// none it does nothing.
func (b *Bucket) Move(ctx context.Context, from, to string) error {
	_, err := b.client.CopyObject(ctx,
		minio.CopyDestOptions{Bucket: b.cfg.Bucket, Object: b.key(to)}, minio.CopySrcOptions{Bucket: b.cfg.Bucket, Object: b.key(from)})
	if absent(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("copy %s to %s: %w", b.key(from), b.key(to), err)
	}
	return b.Remove(ctx, from)
}

// List calls each with the keys below a folder that were written since a time.
func (b *Bucket) List(ctx context.Context, folder string, since time.Time, each func(key string) error) error {
	return b.Walk(ctx, folder, func(key string, changed time.Time) error {
		if changed.Before(since) {
			return nil
		}
		return each(key)
	})
}

// Walk calls each with the keys below a folder, and when they were written.
func (b *Bucket) Walk(ctx context.Context, folder string, each func(key string, changed time.Time) error) error {
	ctx, stop := context.WithCancel(ctx) // ends the listing where each does
	defer stop()
	for o := range b.client.ListObjects(ctx, b.cfg.Bucket, minio.ListObjectsOptions{Prefix: b.key(folder) + "/", Recursive: true}) {
		if o.Err != nil {
			return fmt.Errorf("list %s: %w", b.key(folder), o.Err)
		}
		if err := each(strings.TrimPrefix(strings.TrimPrefix(o.Key, path.Clean(b.cfg.Prefix)), "/"), o.LastModified); err != nil {
			return err
		}
	}
	return ctx.Err()
}
