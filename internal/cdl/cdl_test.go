package cdl_test

import (
	"encoding/binary"
	"testing"

	"lacuna/internal/cdl"
)

func TestEveryTypeOfNumberHasItsSize(t *testing.T) {
	for typ, number := range map[string]any{
		"byte": []int8{1}, "ubyte": []uint8{1}, "short": []int16{1}, "ushort": []uint16{1},
		"int": []int32{1}, "uint": []uint32{1}, "int64": []int64{1}, "uint64": []uint64{1},
		"float": []float32{1}, "double": []float64{1},
	} {
		if got := cdl.TypeOf(number); got != typ {
			t.Errorf("TypeOf(%T) = %q, want %q", number, got, typ)
		}
		if got, want := cdl.SizeOf(typ), binary.Size(number); got != want {
			t.Errorf("SizeOf(%s) = %d, want %d", typ, got, want)
		}
	}
	if typ := cdl.TypeOf("text"); typ != "char" || cdl.SizeOf(typ) != 1 {
		t.Errorf("text is of type %q with %d bytes a character", typ, cdl.SizeOf(typ))
	}
}

func TestOtherTypesCannotBeStored(t *testing.T) {
	for _, value := range []any{nil, 1, []int{1}, []string{"a"}} {
		if got := cdl.TypeOf(value); got != "" {
			t.Errorf("TypeOf(%T) = %q, want none", value, got)
		}
	}
	if got := cdl.SizeOf("string"); got != 0 {
		t.Errorf("SizeOf(string) = %d, want 0", got)
	}
}
