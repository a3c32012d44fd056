package zarr

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"lacuna/publish"
	"lacuna/publish/netcdf"
	"lacuna/publish/s3"
	"lacuna/publish/sinktest"
)

// inBucket returns a sink of a bucket of its own.
func inBucket(t *testing.T) *Sink {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	backend := s3mem.New()
	if err := backend.CreateBucket("stores"); err != nil {
		t.Fatal(err)
	}
	host := httptest.NewServer(gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server())
	t.Cleanup(host.Close)
	s, err := InBucket(s3.Config{Endpoint: host.URL, Region: "us-east-1", Bucket: "stores", Prefix: "a/b"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// bucketSnapshot is snapshot of a bucket.
func bucketSnapshot(t *testing.T, s *Sink) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, folder := range []string{"sea.zarr", manifests, ".shift"} {
		err := s.objects.List(t.Context(), folder, time.Time{}, func(key string) error {
			content, err := s.objects.Get(t.Context(), key)
			sum := sha256.Sum256(content)
			all[key] = hex.EncodeToString(sum[:])
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// dated gives each granule of the suite, which all have one time, a day of its
// own.
type dated struct{ *Sink }

func (d dated) Publish(ctx context.Context, p publish.Product) error {
	return d.Sink.Publish(ctx, onItsDay(p))
}

func (d dated) Retract(ctx context.Context, p publish.Product) error {
	return d.Sink.Retract(ctx, onItsDay(p))
}

func onItsDay(p publish.Product) publish.Product {
	p.Time = p.Time.AddDate(0, 0, int(p.Granule[0])) // a letter
	return p
}

// hashed decodes a file of the suite, which is no NetCDF, as a map of the bytes
// of its hash, so that a receiver can tell what was shown.
func hashed(image []byte) (netcdf.File, error) {
	sum := sha256.Sum256(image)
	var cells, sigma []byte
	for i := range 36 {
		cells = binary.LittleEndian.AppendUint32(cells, math.Float32bits(float32(sum[i%32])))
		sigma = binary.LittleEndian.AppendUint32(sigma, math.Float32bits(float32(sum[i%32])+1000))
	}
	grid := []string{"time", "lat", "lon"}
	return netcdf.File{
		Dims: []netcdf.Dim{{Name: "time", Len: 1}, {Name: "lat", Len: 6}, {Name: "lon", Len: 6}},
		Vars: []netcdf.Var{
			{Name: "time", Type: "int", Dims: grid[:1], Raw: make([]byte, 4), Attrs: []netcdf.Attr{{Name: "units", Value: "days since 2020-01-01"}}},
			{Name: "lat", Type: "float", Dims: grid[1:2], Raw: ramp(6, 40)},
			{Name: "lon", Type: "float", Dims: grid[2:], Raw: ramp(6, 20)},
			{Name: "CHL", Type: "float", Dims: grid, Raw: cells},
			{Name: "CHL_uncertainty", Type: "float", Dims: grid, Raw: sigma},
		},
	}, nil
}

// received returns the products of a dataset from the store, and the retracted
// ones from the manifests.
func received(t *testing.T, s *Sink, dataset string) map[string]sinktest.Seen {
	t.Helper()
	got := map[string]sinktest.Seen{}
	for _, slot := range readStore(t, s.objects, dataset) {
		if slot.revision == 0 {
			continue
		}
		var sum []byte
		for i := range 32 {
			value := math.Float32frombits(binary.LittleEndian.Uint32(slot.maps["CHL"][4*i:]))
			if sigma := math.Float32frombits(binary.LittleEndian.Uint32(slot.maps["CHL_uncertainty"][4*i:])); sigma != value+1000 {
				t.Errorf("cell %d of %s has %g beside %g", i, slot.granule, value, sigma)
			}
			sum = append(sum, byte(value))
		}
		if hex.EncodeToString(sum) != slot.hash {
			t.Errorf("%s has the values of %x, and says %s", slot.granule, sum, slot.hash)
		}
		got[slot.granule] = sinktest.Seen{Revision: slot.revision, SHA256: slot.hash}
	}
	err := s.objects.List(t.Context(), manifests, time.Time{}, func(key string) error {
		text, err := s.objects.Get(t.Context(), key)
		if err != nil {
			return err
		}
		m, err := publish.ParseManifest(text)
		for _, e := range m.Products {
			there, shown := got[e.Granule]
			switch {
			case m.Dataset != dataset:
			case e.Retracted && shown:
				t.Errorf("%s is retracted and shown", e.Granule)
			case e.Retracted:
				got[e.Granule] = sinktest.Seen{Revision: e.Revision, Retracted: true, Why: e.Why}
			case !shown || there.SHA256 != e.SHA256:
				t.Errorf("the manifest has %s of %s, the store %+v", e.SHA256, e.Granule, there)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestSinksKeepTheContract(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) (s *Sink, restart func() *Sink){
		"folder": func(t *testing.T) (*Sink, func() *Sink) {
			dir := t.TempDir()
			return InFolder(dir), func() *Sink { return InFolder(dir) }
		},
		"bucket": func(t *testing.T) (*Sink, func() *Sink) {
			s := inBucket(t)
			return s, func() *Sink { again := *s; return &again }
		},
	} {
		t.Run(name, func(t *testing.T) {
			sinktest.Run(t, func(t *testing.T) sinktest.Subject {
				s, restart := open(t)
				s.read = hashed
				return sinktest.Subject{
					Sink: dated{s},
					Restart: func(*testing.T) publish.Sink {
						again := restart()
						again.read = hashed
						return dated{again}
					},
					Receive:        func(t *testing.T, dataset string) map[string]sinktest.Seen { return received(t, s, dataset) },
					WithoutMembers: true,
				}
			})
		})
	}
}

func TestTheNameOfABucketIsThatOfItsSink(t *testing.T) {
	cfg := s3.Config{Endpoint: "https://example.org", Bucket: "b", Prefix: "p/"}
	s, err := InBucket(cfg)
	if err != nil || s.Name() != BucketName(cfg) || !strings.HasPrefix(s.Name(), "zarr:") {
		t.Errorf("InBucket() = %v, %v", s, err)
	}
}
