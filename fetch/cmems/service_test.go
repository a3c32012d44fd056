package cmems

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"lacuna/fetch"
)

const (
	dataset   = "cmems_obs-oc_blk_bgc-plankton_my_l3-multi-1km_P1D"
	productID = "OCEANCOLOUR_BLK_BGC_L3_MY_009_153"
	bucket    = "mdl-native-15"
)

// release is a version in the test's catalogue.
type release struct {
	label             string
	released, retired string
	preparation       bool
	part              string
	href              string // empty: in the store
}

// service is the Copernicus Marine Service as its clients see it: two
// configuration hosts, two catalogues, a login service and a store of files.
type service struct {
	*httptest.Server
	store   *httptest.Server
	backend *s3mem.Backend

	mu       sync.Mutex // guards the fields below
	releases map[string][]release
	down     map[string]bool // by the first part of the path
	password string
	asked    []*http.Request
	// elsewhere is the host that the client configuration names for the
	// catalogues; empty: this one
	elsewhere string
}

func newService(t *testing.T) *service {
	t.Helper()
	s := &service{
		backend: s3mem.New(), down: map[string]bool{}, password: "opensesame",
		releases: map[string][]release{"waw4": {{label: "202311"}}, "waw3": {{label: "202311"}}},
	}
	must(t, s.backend.CreateBucket(bucket))
	fake := gofakes3.New(s.backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server()
	s.store = httptest.NewServer(s.recording("store", fake.ServeHTTP))
	t.Cleanup(s.store.Close)
	mux := http.NewServeMux()
	for name, handle := range map[string]http.HandlerFunc{
		"direct": s.clientConfig, "cdn": s.clientConfig, "auth": s.auth,
		"waw4": s.catalogue("waw4"), "waw3": s.catalogue("waw3"),
	} {
		mux.HandleFunc("/"+name+"/", s.recording(name, handle))
	}
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// recording notes each request, and turns it away where the host is down.
func (s *service) recording(name string, handle http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked = append(s.asked, r)
		down := s.down[name]
		s.mu.Unlock()
		if down {
			http.Error(w, "maintenance", http.StatusServiceUnavailable)
			return
		}
		handle(w, r)
	}
}

// set changes the service under its lock.
func (s *service) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// requests returns the requests since the last call.
func (s *service) requests() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = nil
	return asked
}

func (s *service) clientConfig(w http.ResponseWriter, _ *http.Request) {
	var catalogues []map[string]string
	at := s.URL
	if s.elsewhere != "" {
		at = s.elsewhere
	}
	for _, host := range []string{"waw4", "waw3"} {
		catalogues = append(catalogues, map[string]string{
			"description": host,
			"stac":        at + "/" + host + "/metadata/catalog.stac.json",
			"stacRoot":    at + "/" + host + "/metadata/",
			"idMapping":   at + "/" + host + "/dataset_product_id_mapping.json",
		})
	}
	write(w, map[string]any{
		"systemVersions": map[string]string{"mds": "1.0.0"},
		"clientVersions": map[string]string{"mds": ">=1.2.2"},
		"catalogues":     catalogues,
	})
}

func (s *service) catalogue(host string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		releases := s.releases[host]
		s.mu.Unlock()
		root := "/" + host + "/metadata/" + productID + "/"
		switch r.URL.Path {
		case "/" + host + "/dataset_product_id_mapping.json":
			write(w, map[string]string{dataset: productID, dataset + "x": "ANOTHER_PRODUCT"})
		case root + "product.stac.json":
			links := []map[string]string{{"rel": "root", "href": "../catalog.stac.json"}, {"rel": "item", "href": dataset + "x_202311/dataset.stac.json"}}
			for _, v := range releases {
				links = append(links, map[string]string{"rel": "item", "href": v.id() + "/dataset.stac.json"})
			}
			write(w, map[string]any{"type": "Collection", "id": productID, "links": links})
		default:
			for _, v := range releases {
				if r.URL.Path == root+v.id()+"/dataset.stac.json" {
					write(w, s.item(v))
					return
				}
			}
			http.NotFound(w, r)
		}
	}
}

func (v release) id() string {
	id := dataset
	if v.label != "default" {
		id += "_" + v.label
	}
	if v.part != "" {
		id += "--ext--" + v.part
	}
	return id
}

func (s *service) item(v release) map[string]any {
	properties := map[string]any{
		"datetime": nil, "start_datetime": "1997-09-16T00:00:00.000000Z", "title": dataset,
		"admp_in_preparation": v.preparation,
	}
	if v.released != "" {
		properties["admp_released_date"] = v.released
	}
	if v.retired != "" {
		properties["admp_retired_date"] = v.retired
	}
	href := v.href
	if href == "" {
		href = s.store.URL + "/" + bucket + "/" + prefix(v.label)
	}
	return map[string]any{
		"type": "Feature", "id": v.id(), "properties": properties,
		"assets": map[string]any{
			"native":      map[string]any{"id": "native", "href": href, "type": "application/x-netcdf"},
			"timeChunked": map[string]any{"href": "https://arco.example/x.zarr"},
		},
	}
}

// auth answers as the login service does.
func (s *service) auth(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	password := s.password
	s.mu.Unlock()
	switch {
	case strings.HasSuffix(r.URL.Path, "/token"):
		if r.Method != http.MethodPost || r.FormValue("client_id") != "toolbox" || r.FormValue("password") != password {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":"invalid_grant","error_description":"Invalid user credentials %s"}`, r.FormValue("password"))
			return
		}
		write(w, map[string]string{"access_token": "bearer-of-" + password})
	case strings.HasSuffix(r.URL.Path, "/userinfo") && r.Header.Get("Authorization") == "Bearer bearer-of-"+password:
		write(w, map[string]string{"preferred_username": "marine1"})
	default:
		w.WriteHeader(http.StatusUnauthorized)
	}
}

func prefix(label string) string { return "native/" + productID + "/" + dataset + "_" + label }

func (s *service) put(t *testing.T, label, name string, content []byte) {
	t.Helper()
	_, err := s.backend.PutObject(bucket, prefix(label)+"/"+name, map[string]string{}, bytes.NewReader(content), int64(len(content)), nil)
	must(t, err)
}

func (s *service) config(t *testing.T) Config {
	t.Helper()
	t.Setenv("CMEMS_TEST_PASSWORD", "opensesame")
	cfg := DefaultConfig()
	cfg.Dataset, cfg.Version = dataset, "202311"
	cfg.User, cfg.Password.Env = "someone@example.org", "CMEMS_TEST_PASSWORD"
	cfg.ConfigURLs = []string{s.URL + "/direct/clientsConfigV1.json", s.URL + "/cdn/clients-config-v1"}
	cfg.AuthURL = s.URL + "/auth/realms/MIS"
	cfg.Hosts = []string{s.store.URL}
	cfg.Web.Timeout = 5 * time.Second
	return cfg
}

func open(t *testing.T, cfg Config) *Archive {
	t.Helper()
	a, err := New(cfg, fetch.Politeness{UserAgent: "lacuna/1.2"})
	must(t, err)
	return a
}

func write(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
