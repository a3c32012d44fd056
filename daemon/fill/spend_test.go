package fill

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"slices"
	"testing"

	"lacuna/pipeline/infer"
	"lacuna/pipeline/ingest"
)

// The analysis of a history that nobody needs afterwards is made where it lies, and is
// that of one that stays.
func TestASpentHistoryMakesTheSameProduct(t *testing.T) {
	job := starterJob(t, 12)
	job.History = append(job.History, job.Granule) // as lacuna fill has it
	for _, method := range []string{infer.MethodModel, "oi"} {
		if job.Fill.Method = method; method == "oi" {
			job.Model, job.Scaling = nil, nil
		}
		want, err := Analyse(t.Context(), job, nil)
		if err != nil {
			t.Fatal(err)
		}
		spent := job
		spent.Spend, spent.History = true, nil
		for _, h := range job.History {
			h.Fields = slices.Clone(h.Fields)
			for i := range h.Fields {
				h.Fields[i].Values = slices.Clone(h.Fields[i].Values)
			}
			spent.History = append(spent.History, h)
		}
		spent.Granule = spent.History[len(spent.History)-1]
		got, err := Analyse(t.Context(), spent, nil)
		if err != nil {
			t.Fatal(err)
		}
		a, b := want.Analyses[0], got.Analyses[0]
		if !bytes.Equal(bits(t, a.Value), bits(t, b.Value)) || !bytes.Equal(bits(t, a.Sigma), bits(t, b.Sigma)) || !bytes.Equal(a.Flags, b.Flags) {
			t.Errorf("%s: the analysis of a spent history is another", method)
		}
		if !reflect.DeepEqual(want.Product.Inputs, got.Product.Inputs) || !reflect.DeepEqual(want.Product.Windows, got.Product.Windows) ||
			want.Product.Step != got.Product.Step || want.Product.Mode != got.Product.Mode || want.Observed != got.Observed {
			t.Errorf("%s: the product of a spent history says other things of itself", method)
		}
		if held := slices.ContainsFunc(spent.History[:len(job.History)-1], func(h ingest.Granule) bool {
			return h.Fields[0].Values != nil
		}); held {
			t.Errorf("%s: values of the history are held on to", method)
		}
		if !bytes.Equal(bits(t, job.Granule.Fields[0].Values), bits(t, spent.Granule.Fields[0].Values)) {
			t.Errorf("%s: the granule's own values were changed", method)
		}
	}
}

// bits are those of the values, so that NaN is like itself.
func bits(t *testing.T, values []float32) []byte {
	t.Helper()
	out, err := binary.Append(nil, binary.LittleEndian, values)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
