package ingest

import "lacuna/pipeline/ingest/ncfile"

// What package ncfile says of a file, by the names that they have here.
type (
	// BadGranule says that a file cannot be used.
	BadGranule = ncfile.BadGranule

	header    = ncfile.Header
	headerVar = ncfile.Var
	rawAttr   = ncfile.Attr
)

const again = ncfile.Again

// CheckName refuses names that no archive has a reason to use; the error is a
// *BadGranule.
func CheckName(name string) error { return ncfile.CheckName(name) }

func bad(problem, remedy string) error { return ncfile.Bad(problem, remedy) }

func list(names []string) string { return ncfile.List(names) }
