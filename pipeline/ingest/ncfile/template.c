#include <netcdf.h>
#include <stdlib.h>

#include "../sandbox/landlock.h"

// A template initialises netCDF-C and HDF5 once, before it is copied and after
// it is confined: see template.c of package sandbox.
__attribute__((constructor(102))) static void initialise(void) {
	if (getenv(LACUNA_SANDBOX_TEMPLATE) != NULL) nc_initialize();
}
