#include <netcdf.h>

// lacuna_prepare initialises netCDF-C and HDF5 in a template, once for all of its
// copies: package sandbox calls it.
void lacuna_prepare(void) { nc_initialize(); }
