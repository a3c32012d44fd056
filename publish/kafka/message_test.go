package kafka

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"lacuna/publish"
	"lacuna/publish/kafka/schema"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	kafkago "github.com/segmentio/kafka-go"
)

var update = flag.Bool("update", false, "rewrite the golden messages of the current schema version")

// written is a message as a golden file has it.
type written struct {
	Key     string            `json:"key"`
	Headers map[string]string `json:"headers"`
	Value   json.RawMessage   `json:"value"` // null: a tombstone; a string: bytes, as text
}

func (w written) message() kafkago.Message {
	m := kafkago.Message{Key: []byte(w.Key)}
	for k, v := range w.Headers {
		m.Headers = append(m.Headers, kafkago.Header{Key: k, Value: []byte(v)})
	}
	if string(w.Value) != "null" {
		m.Value = w.Value
	}
	return m
}

// samples are messages of the current version, by the name of their golden
// file.
func samples(t *testing.T) map[string]kafkago.Message {
	t.Helper()
	p := newProduct(t, "20240312_cmems_obs-oc_blk_chl", 2, 2_000_000)
	place := Placement{Topic: "lacuna.data", Partition: 1, FirstOffset: 41, LastOffset: 43, Parts: 3}
	published, err := newEvent(p, place).message("urn:lacuna")
	if err != nil {
		t.Fatal(err)
	}
	p.Why = "the sensor was decontaminated"
	retracted, err := newRetraction(p).message("urn:lacuna")
	if err != nil {
		t.Fatal(err)
	}
	p.MeanUncertainty, p.Links, p.Supersedes, p.Mode = math.NaN(), nil, 0, "delayed"
	p.Published, p.Fetched, p.Filled = time.Time{}, time.Time{}, time.Time{}
	bare, err := newEvent(p, place).message("urn:lacuna")
	if err != nil {
		t.Fatal(err)
	}
	p.Members = &publish.Members{Name: "20240312_cmems_obs-oc_blk_chl_l4_members.nc", Path: "/not/for/readers", Size: 9_000_000, SHA256: p.SHA256, Count: 8}
	members, err := newEvent(p, place).message("urn:lacuna")
	if err != nil {
		t.Fatal(err)
	}
	p.Members, p.Model, p.Trust = nil, "starter-chl-2026-11-16-c9201976b7620783", &publish.Trust{Model: "starter-chl-2026-11-16-c9201976b7620783", Weight: 0.4, ScoredDays: 23}
	trusted, err := newEvent(p, place).message("urn:lacuna")
	if err != nil {
		t.Fatal(err)
	}
	p.Trust, p.Sampling = nil, &publish.Sampling{Tier: "full", Members: 16, Sampler: "recursive jump, 3 stages, 39 steps", Mean: "one-step"}
	sampled, err := newEvent(p, place).message("urn:lacuna")
	if err != nil {
		t.Fatal(err)
	}
	p.Sampling, p.Refused = nil, publish.Refusals{{Test: "edge", Pixels: 310}, {Test: "spike", Pixels: 0}}
	refused, err := newEvent(p, place).message("urn:lacuna")
	if err != nil {
		t.Fatal(err)
	}
	part := partMessage(p.Key(), Part{ID: p.ID(), Number: 2, Parts: 3, Size: p.Size, SHA256: p.SHA256})
	part.Value = []byte(`"bytes"`)
	return map[string]kafkago.Message{"published": published, "published-bare": bare, "published-members": members, "published-trust": trusted, "published-sampling": sampled, "published-refused": refused, "retracted": retracted, "part": part}
}

func TestMessagesAreWhatTheGoldenFilesSay(t *testing.T) {
	for name, m := range samples(t) {
		w := written{Key: string(m.Key), Headers: headersOf(m), Value: json.RawMessage("null")}
		if m.Value != nil {
			w.Value = m.Value
		}
		got, err := json.MarshalIndent(w, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, '\n')
		path := filepath.Join("testdata", "v1", name+".json")
		if *update {
			if err := os.WriteFile(path, got, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatalf("%v; run go test -update to make it", err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s differs; readers in the field know the old one (-want +got):\n%s", path, diff)
		}
	}
}

// Golden files of every version that was ever released stay in testdata, and
// stay readable.
func TestMessagesOfEveryVersionAreRead(t *testing.T) {
	versions, err := filepath.Glob("testdata/v*")
	if err != nil || len(versions) < SchemaVersion {
		t.Fatalf("%d versions in testdata (%v), want %d", len(versions), err, SchemaVersion)
	}
	for _, version := range versions {
		for _, name := range []string{"published", "published-bare", "retracted"} {
			e, err := ParseEvent(readGolden(t, filepath.Join(version, name+".json")).message())
			if err != nil {
				t.Errorf("%s/%s: %v", version, name, err)
				continue
			}
			want := Event{Dataset: "blk-chl", Granule: "20240312_cmems_obs-oc_blk_chl", Revision: 2}
			if e.Dataset != want.Dataset || e.Granule != want.Granule || e.Revision != want.Revision || e.File.Name != want.Granule+"_l4.nc" {
				t.Errorf("%s/%s is read as %+v", version, name, e)
			}
			if e.Retracted != (name == "retracted") || (e.Retracted && e.Why != "the sensor was decontaminated") {
				t.Errorf("%s/%s: retracted is %v, because %q", version, name, e.Retracted, e.Why)
			}
			if name == "published" && (e.Data != Placement{Topic: "lacuna.data", Partition: 1, FirstOffset: 41, LastOffset: 43, Parts: 3} || e.Seed != 1<<63+1) {
				t.Errorf("%s/%s is read with parts at %+v and seed %d", version, name, e.Data, e.Seed)
			}
		}
		part, err := ParsePart(readGolden(t, filepath.Join(version, "part.json")).message())
		if err != nil || part.Number != 2 || part.Parts != 3 || part.Size != 2_000_000 || part.ID != "blk-chl/20240312_cmems_obs-oc_blk_chl/r2" {
			t.Errorf("%s/part is read as %+v, %v", version, part, err)
		}
	}
}

func readGolden(t *testing.T, path string) written {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var w written
	if err := json.Unmarshal(content, &w); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestFieldsThatALaterVersionAddsAreIgnored(t *testing.T) {
	w := readGolden(t, "testdata/v1/published.json")
	w.Value = append([]byte(`{"quicklook":{"name":"a.png"},"flags":[1,2],`), bytes.TrimSpace(w.Value)[1:]...)
	w.Headers["ce_traceparent"] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	if e, err := ParseEvent(w.message()); err != nil || e.Revision != 2 {
		t.Errorf("ParseEvent() = %+v, %v", e, err)
	}
	validate(t, compiled(t, "product-event.v1.json"), w.Value)
	w.Headers["ce_type"] = "lacuna.product.published.v2"
	if _, err := ParseEvent(w.message()); !errors.Is(err, ErrNotOurs) {
		t.Errorf("ParseEvent() = %v for a version that is not known, want ErrNotOurs", err)
	}
}

func TestMessagesKeepTheirSchemas(t *testing.T) {
	body, headers, part := compiled(t, "product-event.v1.json"), compiled(t, "product-event-headers.v1.json"), compiled(t, "product-part-headers.v1.json")
	for name, m := range samples(t) {
		text, err := json.Marshal(headersOf(m))
		if err != nil {
			t.Fatal(err)
		}
		if name == "part" {
			validate(t, part, text)
			continue
		}
		validate(t, headers, text)
		if m.Value != nil {
			validate(t, body, m.Value)
		}
		checkCloudEvent(t, m)
	}
	// The schemas must be able to say no.
	for _, wrong := range []string{`{}`, `{"dataset":"a/b"}`} {
		if instance, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(wrong))); err != nil || body.Validate(instance) == nil {
			t.Errorf("the schema takes %s (%v)", wrong, err)
		}
	}
}

func TestEverySchemaCompilesUnderItsOwnName(t *testing.T) {
	names, err := fs.Glob(schema.Files(), "*.json")
	if err != nil || len(names) != 3 {
		t.Fatalf("%d schemas, %v", len(names), err)
	}
	for _, name := range names {
		compiled(t, name)
	}
}

func compiled(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	content, err := fs.ReadFile(schema.Files(), name)
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(name, document); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func validate(t *testing.T, s *jsonschema.Schema, text []byte) {
	t.Helper()
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(instance); err != nil {
		t.Errorf("%s\n%v", text, err)
	}
}

// checkCloudEvent validates an event with the reference implementation.
func checkCloudEvent(t *testing.T, m kafkago.Message) {
	t.Helper()
	h := headersOf(m)
	e := cloudevents.New(h["ce_specversion"])
	e.SetID(h["ce_id"])
	e.SetType(h["ce_type"])
	e.SetSource(h["ce_source"])
	e.SetSubject(h["ce_subject"])
	at, err := time.Parse(time.RFC3339Nano, h["ce_time"])
	if err != nil {
		t.Error(err)
	}
	e.SetTime(at)
	if h["ce_dataschema"] != "" {
		e.SetDataSchema(h["ce_dataschema"])
	}
	for _, extension := range []string{"partitionkey", "dataset", "granule", "revision", "why"} {
		if v, ok := h["ce_"+extension]; ok {
			e.SetExtension(extension, v)
		}
	}
	if m.Value != nil {
		if err := e.SetData(h["content-type"], m.Value); err != nil {
			t.Error(err)
		}
	}
	if err := e.Validate(); err != nil {
		t.Errorf("%s is no CloudEvent: %v", h["ce_id"], err)
	}
}

func TestEventsTellWhatAProductWasMadeFor(t *testing.T) {
	body := compiled(t, "product-event.v1.json")
	for _, input := range []string{publish.Seen, publish.CloudedOut, publish.NoGranule, ""} {
		p := newProduct(t, "20240312_cmems_obs-oc_blk_chl", 2, 2_000_000)
		p.Input = input
		m, err := newEvent(p, Placement{Topic: "lacuna.data", LastOffset: 2, Parts: 3}).message("urn:lacuna")
		if err != nil {
			t.Fatal(err)
		}
		validate(t, body, m.Value)
		if e, err := ParseEvent(m); err != nil || e.Input != input {
			t.Errorf("a product of input %q is read as one of %q, %v", input, e.Input, err)
		}
	}
}
