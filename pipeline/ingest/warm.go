package ingest

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

// warmBytes is what netCDF-C takes for a granule of a megapixel: the chunk
// before and after each filter.
const warmBytes = 12 << 20

// warmUp does, before there is a file, what would otherwise be done while
// somebody waits for one: netCDF-C and HDF5 set themselves up, and the
// allocator takes memory from the system and keeps it. A child that is
// started ahead has the time; any other would need it sooner or later.
func warmUp() { C.warm(warmBytes) }
