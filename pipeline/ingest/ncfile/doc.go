// Package ncfile reads a file as it is stored: a header, and numbers as bytes.
//
// Sniff tells from the first bytes and the size whether a file is worth opening. An
// Image is a file in memory, NetCDF or a packed Zarr store; a Library is an Image that
// netCDF-C has open, and the only code that talks to netCDF-C and HDF5. These may
// crash on a hostile file, so whoever opens a Library does it in a process that may
// be lost. What is wrong with a file is a *BadGranule: the problem and the remedy.
//
// Package ncfile does not know what a variable means, nor processes.
package ncfile
