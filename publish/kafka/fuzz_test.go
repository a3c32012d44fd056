package kafka

import (
	"path/filepath"
	"strings"
	"testing"

	kafkago "github.com/segmentio/kafka-go"
)

// FuzzEvent feeds arbitrary messages to the reader of events: one that is taken
// has an id, a revision, and names that stay in their folder.
func FuzzEvent(f *testing.F) {
	f.Add(TypePublished, "chl/a.nc/r1", "", []byte(`{"dataset":"chl","granule":"a.nc","revision":1,"file":{"name":"a_l4.nc","size":5,"sha256":"`+strings.Repeat("ab", 32)+`"},"data":{"topic":"lacuna.data","partition":0,"first_offset":0,"last_offset":1,"parts":2}}`))
	f.Add(TypePublished, "x", "", []byte(`{"dataset":"..","revision":-1,"seed":"x","members":{"name":"/etc"}}`))
	f.Add(TypeRetracted, "chl/a.nc/r1", "2", []byte(nil))
	f.Add(TypeOwner, "", "", []byte(`{}`))
	f.Fuzz(func(t *testing.T, kind, id, revision string, body []byte) {
		headers := map[string]string{"ce_type": kind, "ce_id": id, "ce_revision": revision, "ce_dataset": id, "ce_granule": id, "ce_subject": revision + id}
		m := kafkago.Message{Value: body}
		for k, v := range headers {
			m.Headers = append(m.Headers, kafkago.Header{Key: k, Value: []byte(v)})
		}
		e, err := ParseEvent(m)
		if err != nil {
			return
		}
		names := []string{e.Dataset, e.File.Name}
		if e.Members != nil {
			names = append(names, e.Members.Name)
		}
		for _, name := range names {
			if filepath.Join("/to", name) != "/to/"+name || filepath.Dir(filepath.Join("/to", name)) != "/to" || name[0] == '.' {
				t.Errorf("an event with the name %q was taken", name)
			}
		}
		if e.ID == "" || e.Revision < 1 || !e.Retracted && (e.File.Size < 0 || e.Data.Parts < 1 || e.Data.LastOffset-e.Data.FirstOffset < int64(e.Data.Parts-1)) {
			t.Errorf("an impossible event was taken: %+v", e)
		}
	})
}

// FuzzPart feeds arbitrary headers to the reader of parts: one that is taken is a
// part of its product, and is written again as it was read.
func FuzzPart(f *testing.F) {
	f.Add("chl/a.nc/r1", "0", "2", "5", strings.Repeat("ab", 32))
	f.Add("x", "2", "2", "-1", "")
	f.Add("x", "9223372036854775808", "+1", "0x1", "é")
	f.Fuzz(func(t *testing.T, id, part, parts, size, sum string) {
		var m kafkago.Message
		for k, v := range map[string]string{"id": id, "part": part, "parts": parts, "size": size, "sha256": sum} {
			m.Headers = append(m.Headers, kafkago.Header{Key: k, Value: []byte(v)})
		}
		p, err := ParsePart(m)
		if err != nil {
			return
		}
		if p.ID == "" || p.Number < 0 || p.Number >= p.Parts {
			t.Errorf("an impossible part was taken: %+v", p)
		}
		if again, err := ParsePart(kafkago.Message{Headers: p.headers()}); err != nil || again != p {
			t.Errorf("%+v is read back as %+v, %v", p, again, err)
		}
	})
}
