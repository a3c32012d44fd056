package daemon

import (
	"context"
	"fmt"
	"time"

	"lacuna/fetch"
	"lacuna/ops/ledger"
	"lacuna/pipeline/ingest"
	"lacuna/pipeline/simulate"
	"lacuna/publish/netcdf"
)

// The stages share no types. What passes from one to the next is converted
// here, so that each can change without the others.

// sourceFile is what ingest carries over, in the words of the writer.
func sourceFile(s ingest.Source) netcdf.File {
	attrs := func(as []ingest.Attr) []netcdf.Attr {
		return convert(as, func(a ingest.Attr) netcdf.Attr { return netcdf.Attr(a) })
	}
	return netcdf.File{
		Dims: convert(s.Dims, func(d ingest.Dim) netcdf.Dim { return netcdf.Dim(d) }),
		Vars: convert(s.Vars, func(v ingest.Var) netcdf.Var {
			return netcdf.Var{Name: v.Name, Type: v.Type, Dims: v.Dims, Attrs: attrs(v.Attrs), Raw: v.Raw}
		}),
		Attrs: attrs(s.Attrs),
	}
}

// simulatedFile is a granule of the simulator, in the words of the writer.
func simulatedFile(s simulate.File) netcdf.File {
	attrs := func(as []simulate.Attr) []netcdf.Attr {
		return convert(as, func(a simulate.Attr) netcdf.Attr { return netcdf.Attr(a) })
	}
	return netcdf.File{
		Dims: convert(s.Dims, func(d simulate.Dim) netcdf.Dim { return netcdf.Dim(d) }),
		Vars: convert(s.Vars, func(v simulate.Var) netcdf.Var {
			return netcdf.Var{Name: v.Name, Type: v.Type, Dims: v.Dims, Attrs: attrs(v.Attrs), Raw: v.Raw}
		}),
		Attrs: attrs(s.Attrs),
	}
}

func convert[A, B any](as []A, f func(A) B) []B {
	bs := make([]B, len(as))
	for i, a := range as {
		bs[i] = f(a)
	}
	return bs
}

// deliveries lets a watcher of one dataset see the ledger.
type deliveries struct {
	dataset string
	ledger  *ledger.Ledger
	now     func() time.Time
}

func (d deliveries) Seen(ctx context.Context, o fetch.Object) (bool, error) {
	return d.ledger.Seen(ctx, d.object(o))
}

func (d deliveries) Arrived(ctx context.Context, g fetch.Granule) (bool, error) {
	arrival := ledger.Arrival{
		Object: ledger.Object{Dataset: d.dataset, Name: g.Name, Size: g.Size, ModTime: g.ModTime},
		SHA256: g.SHA256, SpoolPath: g.Path,
	}
	_, fresh, err := d.ledger.Arrive(ctx, arrival, d.now())
	return fresh, err
}

// Refused records an object that is not worth fetching again.
func (d deliveries) Refused(ctx context.Context, o fetch.Object, reason error) error {
	if _, err := d.ledger.Refuse(ctx, d.object(o), fmt.Sprintf("%q: %v", o.Name, reason), d.now()); err != nil {
		return fmt.Errorf("record refusal of %q: %w", o.Name, err)
	}
	return nil
}

func (d deliveries) object(o fetch.Object) ledger.Object {
	return ledger.Object{Dataset: d.dataset, Name: o.Name, Size: o.Size, ModTime: o.ModTime}
}
