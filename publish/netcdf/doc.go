// Package netcdf writes gap-free analyses as NetCDF files that follow CF-1.8
// and ACDD-1.3.
//
// File is a plain description of a NetCDF file and Write turns it into bytes.
// Product is the analysis of one granule; its method File decides everything
// about the format, without touching the disk, and WriteProduct does both.
//
//	Product ──File()──▶ File ──Write()──▶ bytes ──▶ temp, sync, rename, sync of the folder
//
// A Layout says under which names, and in which units and packing, a file has the
// parts of an analysis: those of the input, those of GHRSST or those of the Copernicus
// catalogue. Layout.Names is the one place that knows the names, a file tells them in
// its attributes, and readers ask NamesIn. Products are described in the layout Plain
// first and arranged in another afterwards.
//
// netCDF-C makes the frame of the file: dimensions, attributes, coordinates.
// The chunks of the fields are compressed here, on all cores, and handed to the
// HDF5 beneath it.
//
// Writing is atomic: under the final name there is the old file, the new file
// or none, never a part of one, and a failed write leaves nothing behind. It
// is reproducible: the same Product gives the same bytes, today and tomorrow,
// as long as the binary and its netCDF and HDF5 libraries stay the same, because
// nothing is taken from the clock. A pixel that the sensor saw keeps its stored
// bits, but for a layout that prescribes another packing, whose rounding it takes.
// Land is never filled; File refuses a Product in which a filled pixel has no
// finite value or no uncertainty.
//
// The files of a dataset can be joined along time: every map runs along a time
// coordinate with bounds, also where the input has none, and what the attributes
// say of a file, mode, model, revision and so on, variables say of each field.
//
// netCDF-C and HDF5 are not safe for concurrent use, so one lock of this package
// guards every call; Write may be called from many goroutines. The lock does not
// cover other users of the library in the same process.
//
// Package netcdf knows nothing of where granules come from, how gaps were
// filled or where products are kept. It reads its own files back, for sinks that
// keep products in another form, and no others: granules from outside are decoded
// elsewhere, behind a process boundary.
package netcdf
