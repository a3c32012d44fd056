package s3

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/minio/minio-go/v7"

	"lacuna/publish"
	"lacuna/publish/sinktest"
)

const bucket = "products"

// host is an S3 host in this process that can be made to fail.
type host struct {
	*httptest.Server
	folders   publish.Folders
	failAfter atomic.Int64 // requests that change something until all fail; negative: never
}

func newHost(t *testing.T) *host {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	backend := s3mem.New()
	if err := backend.CreateBucket(bucket); err != nil {
		t.Fatal(err)
	}
	fake := gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server()
	h := &host{}
	h.failAfter.Store(-1)
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		left := h.failAfter.Load()
		switch {
		case left == 0:
			w.WriteHeader(http.StatusForbidden) // not tried again by the client
			return
		case left > 0 && r.Method != http.MethodGet && r.Method != http.MethodHead:
			h.failAfter.Add(-1)
		}
		fake.ServeHTTP(w, r)
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *host) sink(t *testing.T) *Sink {
	t.Helper()
	s, err := New(Config{Endpoint: h.URL, Region: "us-east-1", Bucket: bucket, Prefix: "tree"}, h.folders)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSinkKeepsTheContract(t *testing.T) {
	for _, folders := range []publish.Folders{"", "{year}", "{year}/{month}/{day}"} {
		t.Run(string(folders), func(t *testing.T) {
			sinktest.Run(t, func(t *testing.T) sinktest.Subject {
				h := newHost(t)
				h.folders = folders
				return sinktest.Subject{
					Sink:    h.sink(t),
					Restart: func(t *testing.T) publish.Sink { return h.sink(t) },
					Receive: func(t *testing.T, dataset string) map[string]sinktest.Seen { return receive(t, h.sink(t), dataset) },
				}
			})
		})
	}
}

// receive reads a dataset as a receiver that trusts manifests, side objects and
// latest.json.
func receive(t *testing.T, s *Sink, dataset string) map[string]sinktest.Seen {
	t.Helper()
	got := map[string]sinktest.Seen{}
	live, shown := map[string]bool{}, map[string]bool{}
	for o := range s.client.ListObjects(t.Context(), bucket, minio.ListObjectsOptions{Prefix: "tree/" + dataset + "/", Recursive: true}) {
		if o.Err != nil {
			t.Fatal(o.Err)
		}
		if strings.HasSuffix(o.Key, ".nc") && !strings.HasSuffix(o.Key, "_members.nc") {
			shown[o.Key] = true
		}
		if !publish.IsManifest(o.Key) {
			continue
		}
		m, err := s.manifest(t.Context(), o.Key)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range m.Products {
			key := path.Join(path.Dir(o.Key), e.File)
			content, err := s.get(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(content)
			hash := hex.EncodeToString(sum[:])
			switch {
			case e.Retracted:
				got[e.Granule] = sinktest.Seen{Revision: e.Revision, Retracted: true, Why: e.Why}
				if _, taken := m.Owner(e.File); taken {
					continue // another product has its name
				}
				if members, _ := s.get(t.Context(), publish.MembersName(key)); content != nil || members != nil {
					t.Errorf("%s is retracted and still there, or its members are", key)
				}
			case e.Live():
				live[key] = true
				got[e.Granule] = sinktest.Seen{Revision: e.Revision, SHA256: hash, Members: receiveMembers(t, s, key, e)}
				if side, _ := s.get(t.Context(), key+".sha256"); string(side) != e.SHA256+"  "+e.File+"\n" || hash != e.SHA256 {
					t.Errorf("%s has %s, manifest %s, side object %q", key, hash, e.SHA256, side)
				}
			}
		}
	}
	if !maps.Equal(live, shown) {
		t.Errorf("the objects %v are shown, the manifests list %v", shown, live)
	}
	text, err := s.get(t.Context(), s.latestKey(dataset))
	var newest latest
	if err != nil || (text == nil) != (len(live) == 0) || (text != nil && (json.Unmarshal(text, &newest) != nil || !live[newest.Key])) {
		t.Errorf("latest is %s, %v; there are %v", text, err, live)
	}
	return got
}

// receiveMembers returns the hash of the members of a product, and fails where
// the manifest, the side object and the bucket do not agree on them.
func receiveMembers(t *testing.T, s *Sink, product string, e publish.Entry) string {
	t.Helper()
	key := publish.MembersName(product)
	content, err := s.get(t.Context(), key)
	side, sideErr := s.get(t.Context(), key+".sha256")
	if err := errors.Join(err, sideErr); err != nil {
		t.Fatal(err)
	}
	if e.Members == nil {
		if content != nil || side != nil {
			t.Errorf("%s has members that the manifest does not list", product)
		}
		return ""
	}
	sum := sha256.Sum256(content)
	hash := hex.EncodeToString(sum[:])
	if hash != e.Members.SHA256 || e.Members.File != path.Base(key) || string(side) != hash+"  "+path.Base(key)+"\n" {
		t.Errorf("%s has %s, manifest %+v, side object %q", key, hash, *e.Members, side)
	}
	return hash
}

// The host refuses everything after some request, as if the process had died
// there; doing it again must come to the same end.
func TestCrashBetweenAnyTwoRequestsIsMendedByDoingItAgain(t *testing.T) {
	for _, name := range []string{"publish", "replace", "retract"} {
		crashes := 0
		for n := int64(0); ; n++ {
			h := newHost(t)
			first, second := sinktest.WithMembers(t, sinktest.Product(t, "sea", "a", 1)), sinktest.WithMembers(t, sinktest.Product(t, "sea", "a", 2))
			act := func() error { return h.sink(t).Publish(t.Context(), first) }
			if name != "publish" {
				if err := act(); err != nil {
					t.Fatal(err)
				}
			}
			want := sinktest.Seen{Revision: 1, SHA256: first.SHA256, Members: first.Members.SHA256}
			switch name {
			case "replace":
				act = func() error { return h.sink(t).Publish(t.Context(), second) }
				want = sinktest.Seen{Revision: 2, SHA256: second.SHA256, Members: second.Members.SHA256}
			case "retract":
				first.Why = "fault"
				act = func() error { return h.sink(t).Retract(t.Context(), first) }
				want = sinktest.Seen{Revision: 1, Retracted: true, Why: "fault"}
			}
			h.failAfter.Store(n)
			err := act()
			h.failAfter.Store(-1)
			if err == nil {
				break
			}
			crashes++
			if errors.Is(err, publish.ErrPermanent) {
				t.Errorf("%s: %v is taken for permanent", name, err)
			}
			wantPair(t, h.sink(t), first, second)
			if err := act(); err != nil {
				t.Fatalf("%s after a crash at request %d: %v", name, n, err)
			}
			if got := receive(t, h.sink(t), "sea")["a.nc"]; got != want {
				t.Errorf("%s after a crash at request %d: receiver has %+v, want %+v", name, n, got, want)
			}
		}
		if crashes < 3 {
			t.Errorf("%s was stopped at %d requests, too few to mean anything", name, crashes)
		}
	}
}

// wantPair fails where a product that its side object vouches for is without its
// members.
func wantPair(t *testing.T, s *Sink, products ...publish.Product) {
	t.Helper()
	for _, p := range products {
		d, err := s.open(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		there, err := d.vouched(t.Context(), d.product, p.Size, p.SHA256)
		members, membersErr := d.vouched(t.Context(), d.members(), p.Members.Size, p.Members.SHA256)
		if err := errors.Join(err, membersErr); err != nil || there && !members {
			t.Errorf("revision %d is there: %v, its members: %v, %v", p.Revision, there, members, err)
		}
	}
}

func TestAMissingBucketIsNotTakenForAnEmptyOne(t *testing.T) {
	h := newHost(t)
	s, err := New(Config{Endpoint: h.URL, Region: "us-east-1", Bucket: "nowhere"}, "")
	if err != nil {
		t.Fatal(err)
	}
	err = s.Publish(t.Context(), sinktest.Product(t, "sea", "a", 1))
	if err == nil || errors.Is(err, publish.ErrPermanent) || !strings.Contains(err.Error(), "bucket") {
		t.Errorf("Publish() = %v, want an error that names the bucket and may pass", err)
	}
}

func TestConfigSaysEverythingThatIsWrong(t *testing.T) {
	err := Config{Endpoint: "s3.example.org", Bucket: "a/b", Prefix: "/x"}.Validate()
	for _, want := range []string{"endpoint must be", `bucket is "a/b"`, `prefix is "/x"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Validate() = %v, want a message with %q", err, want)
		}
	}
}
