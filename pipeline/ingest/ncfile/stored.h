#ifndef LACUNA_STORED_H
#define LACUNA_STORED_H

#include <hdf5.h>
#include <stddef.h>

enum { MOST_DIMENSIONS = 8 };

// piece is a chunk as it lies in the file.
typedef struct {
	unsigned long long at, size, offset[MOST_DIMENSIONS];
} piece;

// stored is how the numbers of a data set lie in the file. The caller sets rank, dims
// and the type, the rest is found.
typedef struct {
	int rank;
	unsigned long long dims[MOST_DIMENSIONS];
	unsigned width;
	int floating, is_signed;

	int shuffled, deflated;
	unsigned long long chunk[MOST_DIMENSIONS];
	unsigned pieces;
} stored;

// lacuna_stored finds the chunks of a data set, most at the most. It is 0 where they
// are stored in a way that lacuna_inflate does not undo.
int lacuna_stored(hid_t file, const char *name, const char *other, stored *s, piece *out, unsigned most);

// lacuna_inflate unpacks a chunk of bytes bytes; scratch has room for as many.
int lacuna_inflate(const void *in, size_t size, void *out, void *scratch, size_t bytes, unsigned width, int shuffled);

#endif
