package ncfile

/*
#include <malloc.h>
#include <netcdf.h>
#include <stdlib.h>
#include <string.h>

static void warm(size_t bytes) {
#ifdef __GLIBC__
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_THRESHOLD, 32 << 20);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	void *block = malloc(bytes);
	if (block != NULL) memset(block, 1, bytes);
	free(block);
#endif
	nc_initialize();
}
*/
import "C"

// warmBytes is the memory of netCDF-C for a granule of a megapixel: the chunk
// before and after each filter.
const warmBytes = 12 << 20

// WarmUp initialises netCDF-C and HDF5 and fills the allocator before there is
// a file to wait for. A spare child has the time for it; any other child would
// pay the same cost while it decodes.
func WarmUp() { C.warm(warmBytes) }
