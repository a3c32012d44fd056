package chaos

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"lacuna/daemon/outbox"
	"lacuna/ledger"
	"lacuna/publish"
	"lacuna/publish/zarr/zarrtest"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// look sees all that there is to be seen of the service.
func (s *site) look(ctx context.Context, p *producer) seen {
	all := expected(p)
	all.open = s.behind(ctx, p)
	note := func(err error) {
		if err != nil {
			all.wrong = append(all.wrong, err.Error())
		}
	}
	note(s.lookAtLedger(ctx, &all))
	note(all.tree(folderTree{s.path("products/tree")}, "folder", true))
	note(all.tree(folderTree{s.path("products/zarr/.manifests")}, "zarr", false))
	bucket, err := s.bucketTree(ctx)
	note(err)
	note(all.tree(bucket, "bucket", true))
	note(s.broker.harvest(ctx))
	s.broker.mu.Lock()
	defer s.broker.mu.Unlock()
	all.wrong = append(all.wrong, s.broker.twice...)
	for _, e := range s.broker.events {
		all.claims = append(all.claims, claim{"topic", e.Dataset, e.Granule, e.Revision, e.File.SHA256, e.Retracted})
	}
	return all
}

// expected returns what must be seen of what a producer has delivered.
func expected(p *producer) seen {
	all := seen{places: []string{"folder", "bucket", "zarr", "topic"}, objects: map[string]string{}, fates: map[string]fate{}, spoiled: map[string]bool{}}
	for _, dataset := range datasets {
		for name, sum := range p.current {
			all.objects[dataset+"/"+name] = sum
			all.spoiled[dataset+"/"+name] = p.spoiled[name]
		}
	}
	return all
}

func (s *site) ledger(ctx context.Context) (*ledger.Ledger, error) {
	return ledger.Join(ctx, s.path("state/dir/ledger.db"))
}

// lookAtLedger adds what the ledger says, the files of revisions, and some of the
// maps of the Zarr stores.
func (s *site) lookAtLedger(ctx context.Context, all *seen) error {
	book, err := s.ledger(ctx)
	if err != nil {
		return err
	}
	defer book.Close()
	if err := book.Check(ctx); err != nil {
		return err
	}
	published, err := book.Publications(ctx, "", time.Time{}, time.Time{})
	if err != nil {
		return err
	}
	const sample = 24 // products whose maps are compared: the store is searched for each
	for i, p := range published {
		if p.Displaced { // other bytes have its number for good
			continue
		}
		body := outbox.Delivery(ledger.Delivery{Publication: p}).Product
		all.claims = append(all.claims, claim{"ledger", p.Dataset, p.Granule, p.Revision, body.SHA256, !p.Retracted.IsZero()})
		content, err := os.ReadFile(p.File)
		if err != nil {
			all.wrong = append(all.wrong, "a revision has no file: "+err.Error())
			continue
		}
		all.claims = append(all.claims, claim{"file", p.Dataset, p.Granule, p.Revision, sumOf(content), false})
		if current, ok, err := book.Current(ctx, p.Dataset, p.Granule); i >= len(published)-sample && ok && err == nil && current.Revision == p.Revision && p.Retracted.IsZero() {
			if err := zarrtest.Holds(ctx, s.path("products/zarr/"+p.Dataset+".zarr"), p.File); err != nil {
				all.wrong = append(all.wrong, fmt.Sprintf("the Zarr store does not hold the maps of %s: %v", body.ID(), err))
			}
		}
	}
	all.fates, err = fates(ctx, book)
	return err
}

// fates returns what has become of every object, by dataset and name.
func fates(ctx context.Context, book *ledger.Ledger) (map[string]fate, error) {
	rows, err := book.Recent(ctx, 1_000_000)
	if err != nil {
		return nil, err
	}
	all, newest := map[string]fate{}, map[string]int{}
	for _, g := range rows {
		key := g.Dataset + "/" + g.Name
		if g.Absent || g.Revision < newest[key] {
			continue
		}
		newest[key] = g.Revision
		f := fate{sha256: g.SHA256, done: g.State == ledger.Announced}
		if g.State == ledger.Quarantined {
			f.reason = g.Reason
		}
		all[key] = f
	}
	return all, nil
}

// behind returns what the service has still to do.
func (s *site) behind(ctx context.Context, p *producer) (open []string) {
	note := func(format string, args ...any) { open = append(open, fmt.Sprintf(format, args...)) }
	book, err := s.ledger(ctx)
	if err != nil {
		return []string{err.Error()}
	}
	defer book.Close()
	for _, dataset := range datasets {
		if more, err := book.Pending(ctx, dataset); err != nil || len(more) > 0 {
			note("%d granules of %s are in hand, %v", len(more), dataset, err)
		}
		if more, err := book.Reopenings(ctx, ledger.ReopeningQuery{Dataset: dataset, OpenOnly: true}); err != nil || len(more) > 0 {
			note("%d products of %s are to be looked at again, %v", len(more), dataset, err)
		}
	}
	sinks, err := book.Backlogs(ctx)
	if err != nil {
		note("%v", err)
	}
	for _, b := range sinks {
		if b.Waiting+b.Aside > 0 {
			note("%d deliveries wait for %s and %d were set aside: %s", b.Waiting, b.Sink, b.Aside, b.Problem)
		}
	}
	aside, err := book.SetAside(ctx, 3)
	if err != nil {
		note("%v", err)
	}
	for _, a := range aside {
		note("%s of %s, revision %d, was set aside by %s: %s", a.Publication.Granule, a.Publication.Dataset, a.Publication.Revision, a.Sink, a.Problem)
	}
	if len(open) > 0 { // every object is looked up only if nothing else is left to do
		return open
	}
	have, err := fates(ctx, book)
	if err != nil {
		return []string{err.Error()}
	}
	for _, dataset := range datasets {
		for name, sum := range p.current {
			f, known := have[dataset+"/"+name]
			switch {
			case !known:
				note("%s/%s was not fetched", dataset, name)
			case f.sha256 != "" && f.sha256 != sum:
				note("%s/%s was fetched with %.8s, not %.8s", dataset, name, f.sha256, sum)
			case !f.done && f.reason == "":
				note("%s/%s has no product", dataset, name)
			}
		}
	}
	return open
}

// tree is a folder of products, on a disk or in a bucket.
type tree interface {
	names() ([]string, error)
	read(name string) ([]byte, error)
}

type folderTree struct{ root string }

func (f folderTree) names() (all []string, err error) {
	err = filepath.WalkDir(f.root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && file != f.root {
			return fs.SkipDir
		}
		name, err := filepath.Rel(f.root, file)
		if d.Type().IsRegular() {
			all = append(all, filepath.ToSlash(name))
		}
		return err
	})
	return all, err
}

func (f folderTree) read(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(f.root, filepath.FromSlash(name)))
}

type bucketTree struct {
	ctx    context.Context
	client *minio.Client
}

func (s *site) bucketTree(ctx context.Context) (bucketTree, error) {
	client, err := minio.New(strings.TrimPrefix(s.archives.bucket, "http://"), &minio.Options{Creds: credentials.NewStaticV4("key", "secret", ""), Region: "us-east-1"})
	return bucketTree{ctx, client}, err
}

func (b bucketTree) names() (all []string, err error) {
	for o := range b.client.ListObjects(b.ctx, "products", minio.ListObjectsOptions{Prefix: "tree/", Recursive: true}) {
		err = errors.Join(err, o.Err)
		all = append(all, strings.TrimPrefix(o.Key, "tree/"))
	}
	return all, err
}

func (b bucketTree) read(name string) ([]byte, error) {
	o, err := b.client.GetObject(b.ctx, "products", "tree/"+name, minio.GetObjectOptions{})
	if err != nil {
		return nil, err
	}
	defer o.Close()
	var content strings.Builder
	_, err = bufio.NewReader(o).WriteTo(&content)
	return []byte(content.String()), err
}

// tree adds what the manifests of a tree say, and checks that its files are as they
// and their side files say.
func (s *seen) tree(t tree, place string, files bool) error {
	names, err := t.names()
	if err != nil {
		return err
	}
	listed := map[string]bool{}
	for _, name := range names {
		if !strings.HasSuffix(name, ".manifest.json") {
			continue
		}
		text, err := t.read(name)
		if err != nil {
			return err
		}
		m, err := publish.ParseManifest(text)
		if err != nil {
			return fmt.Errorf("%s %s: %w", place, name, err)
		}
		for _, e := range m.Products {
			s.claims = append(s.claims, claim{place, m.Dataset, e.Granule, e.Revision, e.SHA256, e.Retracted})
			for _, former := range e.Superseded {
				s.claims = append(s.claims, claim{place, m.Dataset, e.Granule, former.Revision, former.SHA256, false})
			}
			if !files || !e.Live() {
				continue
			}
			file := path.Join(path.Dir(name), e.File)
			listed[file] = true
			if content, err := t.read(file); err != nil || sumOf(content) != e.SHA256 {
				s.wrong = append(s.wrong, fmt.Sprintf("%s %s is not what its manifest says: sha256 %.8s, want %.8s, %v", place, file, sumOf(content), e.SHA256, err))
			}
		}
	}
	if !files {
		return nil
	}
	for _, name := range names {
		if !strings.HasSuffix(name, ".nc") {
			continue
		}
		content, err := t.read(name)
		side, bad := t.read(name + ".sha256")
		if sum, _, _ := strings.Cut(string(side), " "); errors.Join(err, bad) != nil || sum != sumOf(content) {
			s.bare = append(s.bare, place+" "+name)
		}
		if !listed[name] {
			s.wrong = append(s.wrong, fmt.Sprintf("%s %s is visible, and in no manifest", place, name))
		}
	}
	return nil
}

// unfinished matches the names of files and folders that are moved to their place
// when they are whole: those of this program, and of the library that replaces files.
var unfinished = regexp.MustCompile(`^\.(arriving|put|merged|incoming|ledger-backup|lacuna-check)-|^\..*[0-9]{6,}$|\.tmp$`)

// leftovers returns what was not finished and not removed, of processes that have
// ended.
func (s *site) leftovers() (left []string) {
	for _, top := range []string{"behind-state", "behind-products", "behind-models"} {
		_ = filepath.WalkDir(s.path(top), func(file string, d fs.DirEntry, err error) error {
			if err == nil && unfinished.MatchString(d.Name()) {
				left = append(left, strings.TrimPrefix(file, s.top+"/"))
			}
			return nil
		})
	}
	for _, pattern := range []string{"tmp/*", "behind-models/store/incoming/*", "behind-models/store/trash/*"} {
		found, _ := filepath.Glob(s.path(pattern))
		for _, file := range found {
			left = append(left, strings.TrimPrefix(file, s.top+"/"))
		}
	}
	return left
}

// figures returns what the daemon holds on to.
func (s *site) figures(ctx context.Context) (figures, error) { return figuresOf(ctx, s.listen) }

func figuresOf(ctx context.Context, listen string) (f figures, err error) {
	ctx, cancel := context.WithTimeout(ctx, poll) // a daemon that is stopped takes connections and never answers
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+listen+"/metrics", http.NoBody)
	if err != nil {
		return f, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return f, err
	}
	defer answer.Body.Close()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		_, _ = fmt.Sscanf(lines.Text(), "process_open_fds %g", &f.descriptors)
		_, _ = fmt.Sscanf(lines.Text(), "go_goroutines %g", &f.goroutines)
	}
	return f, nil
}
