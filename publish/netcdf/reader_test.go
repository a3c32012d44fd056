package netcdf

import (
	"bytes"
	"encoding/binary"
	"os/exec"
	"runtime"
	"testing"

	nc "github.com/fhs/go-netcdf/netcdf"
)

// readBack returns the stored numbers of every variable of a file as bytes,
// read through the Go binding of netCDF-C and so independently of Var.Raw.
func readBack(t *testing.T, path string) map[string][]byte {
	t.Helper()
	library.Lock() // the library is not safe beside a write in another test
	defer library.Unlock()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	quiet()
	ds, err := nc.OpenFile(path, nc.NOWRITE)
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	n, err := ds.NVars()
	if err != nil {
		t.Fatal(err)
	}
	vars := map[string][]byte{}
	for i := range n {
		v := ds.VarN(i)
		name, err := v.Name()
		if err != nil {
			t.Fatal(err)
		}
		vars[name] = readVar(t, v)
	}
	return vars
}

func readVar(t *testing.T, v nc.Var) []byte {
	t.Helper()
	typ, err := v.Type()
	if err != nil {
		t.Fatal(err)
	}
	n, err := v.Len()
	if err != nil {
		t.Fatal(err)
	}
	var numbers any
	switch typ {
	case nc.BYTE:
		x := make([]int8, n)
		numbers, err = x, v.ReadInt8s(x)
	case nc.CHAR:
		x := make([]byte, n)
		numbers, err = x, v.ReadBytes(x)
	case nc.UBYTE:
		x := make([]uint8, n)
		numbers, err = x, v.ReadUint8s(x)
	case nc.SHORT:
		x := make([]int16, n)
		numbers, err = x, v.ReadInt16s(x)
	case nc.INT:
		x := make([]int32, n)
		numbers, err = x, v.ReadInt32s(x)
	case nc.FLOAT:
		x := make([]float32, n)
		numbers, err = x, v.ReadFloat32s(x)
	case nc.DOUBLE:
		x := make([]float64, n)
		numbers, err = x, v.ReadFloat64s(x)
	default:
		t.Fatalf("variable of type %v", typ)
	}
	if err != nil {
		t.Fatal(err)
	}
	raw, err := binary.Append(nil, binary.LittleEndian, numbers)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// ncdump returns the text that the tool of that name makes of a file.
func ncdump(t *testing.T, args ...string) []byte {
	t.Helper()
	if _, err := exec.LookPath("ncdump"); err != nil {
		t.Skip("ncdump is not installed: apt install netcdf-bin to run this test")
	}
	var stderr bytes.Buffer
	cmd := exec.Command("ncdump", args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("ncdump %v: %v\n%s", args, err, &stderr)
	}
	return out
}
