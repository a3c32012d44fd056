// Package ingest turns a NetCDF file into fields.
//
// A Reader decodes a granule in a child process of the same binary and hands
// back a Granule: one field per time in physical units, with NaN for a gap,
// the cells whose value was refused, and everything that a product must carry
// over unchanged. The meaning of the file is inferred from its CF attributes;
// names are the last resort and leave a note.
//
//	Read ──sniff──▶ child: netCDF-C, limits ──frames──▶ plan, unpack, judge ──▶ Granule
//
// How a file is stored is known to package ncfile; here are the child that opens it,
// the frames by which it answers, and the meaning of what they bring. The child
// decodes one file and ends. It is a copy of a process that has loaded the libraries and
// has never seen a file: see template.go. It gets the file as an open descriptor and maps it, so neither
// it nor that library ever opens anything; package sandbox takes files, the
// network and other programs from it, and it limits its own memory and time. A
// file that refers to more than itself (external storage, links to other files,
// virtual data sets, filters of plug-ins) is refused before any number is read.
// The child sends the header and the raw numbers that the plan asks for. The
// parent makes the same plan from the same header and takes nothing that the
// plan does not ask for, so its memory is bounded whatever the child sends.
//
// Read guarantees that a file which is broken, hostile or simply of another
// kind costs one error, a *BadGranule that names the file, the problem and
// the remedy. Any other error is a failure of our own and says nothing about
// the file. A value is never changed on the way: a value that a quality rule
// refuses is marked, and the stored numbers travel along as bytes.
//
// Package ingest knows nothing of archives, models or products, nor which
// granule came before. Numbers are little endian in memory and in Var.Raw: it
// is built for amd64 and arm64 Linux.
package ingest
