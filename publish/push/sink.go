package push

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"path"
	"time"

	"golang.org/x/sync/errgroup"

	"lacuna/internal/session"
	"lacuna/publish"
)

// Sink shows products on a server. It is a publish.Sink.
type Sink struct {
	name    string
	cfg     Config
	folders publish.Folders
	pool    *session.Pool[server]
}

var (
	_ publish.Sink  = (*Sink)(nil)
	_ publish.Place = (*Sink)(nil)
)

// idle is how long an unused connection is kept: over the files of a day, not
// until the next.
const idle = 30 * time.Second

func newSink(name string, cfg Config, folders publish.Folders, dial func(context.Context) (server, error)) *Sink {
	return &Sink{name: name, cfg: cfg, folders: folders, pool: session.NewPool(cfg.Connections, idle, dial)}
}

// Close closes the connections that are idle.
func (s *Sink) Close() { s.pool.CloseIdle() }

// Name implements publish.Sink.
func (s *Sink) Name() string { return s.name }

// with calls do with a transfer over a session. A session with an error is not
// used again, for part of an answer may still be under way on it.
func (s *Sink) with(ctx context.Context, do func(transfer) error) error {
	srv, err := s.pool.Get(ctx)
	if err != nil {
		return err
	}
	unbind := srv.Bind(ctx)
	err = do(transfer{srv, s.cfg.Verify})
	unbind()
	s.pool.Put(srv, err == nil && ctx.Err() == nil)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// Publish shows a revision as the current one of its product, unless a later
// one is there.
func (s *Sink) Publish(ctx context.Context, p publish.Product) error {
	if err := p.Check(); err != nil {
		return err
	}
	if err := p.CheckFiles(); err != nil {
		return err
	}
	return s.with(ctx, func(t transfer) error {
		d, err := s.open(t, p)
		if err != nil {
			return err
		}
		return d.publish(p)
	})
}

// Retract removes a revision and puts the reason into the manifest.
func (s *Sink) Retract(ctx context.Context, p publish.Product) error {
	if err := p.Check(); err != nil {
		return err
	}
	return s.with(ctx, func(t transfer) error {
		d, err := s.open(t, p)
		if err != nil {
			return err
		}
		return d.retract(p)
	})
}

// Check tests the login, and that files can be written, renamed, read and removed
// below the root; it does so with a small file. An error names the remedy.
func (s *Sink) Check(ctx context.Context) error {
	return s.with(ctx, func(t transfer) error {
		f := textFile(path.Join(s.cfg.Root, ".lacuna-check-"+rand.Text()[:8]+partEnding), []byte("lacuna check\n"))
		if err := t.put(f); err != nil {
			return fmt.Errorf("%w; make the folder %s, and let %s write and rename there", err, s.cfg.Root, s.cfg.User)
		}
		if text, err := t.get(f.name); err != nil || text == nil {
			return fmt.Errorf("a file written to %s cannot be read again (%w); let %s read there: manifests are kept on the server", s.cfg.Root, errOr(err), s.cfg.User)
		}
		if err := t.server.remove(f.name); err != nil {
			return fmt.Errorf("remove %s: %w; let %s remove files, for retracted products are taken away", f.name, err, s.cfg.User)
		}
		return nil
	})
}

func errOr(err error) error {
	if err == nil {
		return errRefused
	}
	return err
}

func (s *Sink) ownerFile() string { return path.Join(s.cfg.Root, ".lacuna-owner.json") }

// Owner implements publish.Place.
func (s *Sink) Owner(ctx context.Context) (o publish.Owner, err error) {
	err = s.with(ctx, func(t transfer) error {
		text, err := t.get(s.ownerFile())
		if err != nil || text == nil {
			return err
		}
		if json.Unmarshal(text, &o) != nil || o.State == "" {
			return fmt.Errorf("read %s: %w", s.ownerFile(), publish.ErrMarker)
		}
		return nil
	})
	return o, err
}

// Claim implements publish.Place.
func (s *Sink) Claim(ctx context.Context, o publish.Owner) error {
	text, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return fmt.Errorf("encode owner: %w", err)
	}
	return s.with(ctx, func(t transfer) error {
		return t.put(textFile(s.ownerFile(), append(text, '\n')))
	})
}

// Holdings implements publish.Place. An unreadable manifest is skipped: the next
// delivery to that day reports it.
func (s *Sink) Holdings(ctx context.Context, since time.Time, each func(publish.Holding) error) error {
	var names []string
	if err := s.with(ctx, func(t transfer) (err error) {
		names, err = s.manifests(t, s.cfg.Root, 0, since)
		return err
	}); err != nil {
		return err
	}
	texts := make([][]byte, len(names))
	reading, work := errgroup.WithContext(ctx)
	reading.SetLimit(s.cfg.Connections)
	for i, name := range names {
		reading.Go(func() error {
			return s.with(work, func(t transfer) (err error) {
				texts[i], err = t.get(name)
				return err
			})
		})
	}
	if err := reading.Wait(); err != nil {
		return err
	}
	for _, text := range texts {
		m, err := publish.ParseManifest(text)
		if err != nil {
			continue
		}
		for _, h := range m.Holdings() {
			if err := each(h); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// manifests returns the manifests below a folder that were written since a time:
// they lie in the folders of products, below those of datasets.
func (s *Sink) manifests(t transfer, folder string, depth int, since time.Time) (names []string, err error) {
	entries, err := t.server.list(folder)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", folder, err)
	}
	for _, e := range entries {
		name := path.Join(folder, e.name)
		switch {
		case e.folder && depth < 1+s.folders.Depth():
			below, err := s.manifests(t, name, depth+1, since)
			if err != nil {
				return nil, err
			}
			names = append(names, below...)
		case !e.folder && depth == 1+s.folders.Depth() && publish.IsManifest(e.name) && !e.time.Before(since):
			names = append(names, name)
		}
	}
	return names, nil
}
