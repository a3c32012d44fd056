#include "stored.h"

#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

// The number type of a data set, if it is stored as this machine has it in memory.
static int plain(hid_t dataset, unsigned width, int floating, int is_signed) {
	hid_t type = H5Dget_type(dataset);
	if (type < 0) return 0;
	int same = 0;
	if (floating) {
		same = H5Tequal(type, width == 4 ? H5T_IEEE_F32LE : H5T_IEEE_F64LE) > 0;
	} else if (H5Tget_class(type) == H5T_INTEGER && H5Tget_size(type) == width) {
		same = H5Tget_precision(type) == 8 * width && H5Tget_sign(type) == (is_signed ? H5T_SGN_2 : H5T_SGN_NONE) &&
			(width == 1 || H5Tget_order(type) == H5T_ORDER_LE);
	}
	H5Tclose(type);
	return same;
}

// The filters of a data set: deflate, alone or after shuffle.
static int filters(hid_t made, stored *s) {
	int n = H5Pget_nfilters(made);
	for (int i = 0; i < n; i++) {
		unsigned flags, config;
		size_t values = 0;
		switch (H5Pget_filter2(made, (unsigned)i, &flags, &values, NULL, 0, NULL, &config)) {
		case H5Z_FILTER_SHUFFLE:
			if (i != 0) return 0;
			s->shuffled = 1;
			break;
		case H5Z_FILTER_DEFLATE:
			if (i != n - 1) return 0;
			s->deflated = 1;
			break;
		default: return 0;
		}
	}
	return n >= 0 && s->deflated;
}

static int layout(hid_t dataset, stored *s) {
	hid_t made = H5Dget_create_plist(dataset);
	if (made < 0) return 0;
	hsize_t chunk[MOST_DIMENSIONS];
	int ok = H5Pget_layout(made) == H5D_CHUNKED && H5Pget_chunk(made, MOST_DIMENSIONS, chunk) == s->rank && filters(made, s);
	for (int i = 0; ok && i < s->rank; i++) s->chunk[i] = chunk[i];
	H5Pclose(made);
	return ok;
}

static int pieces(hid_t dataset, stored *s, piece *out, unsigned most) {
	hid_t space = H5Dget_space(dataset);
	if (space < 0) return 0;
	hsize_t dims[MOST_DIMENSIONS], n = 0;
	int ok = H5Sget_simple_extent_ndims(space) == s->rank && H5Sget_simple_extent_dims(space, dims, NULL) == s->rank;
	for (int i = 0; ok && i < s->rank; i++) ok = dims[i] == s->dims[i];
	ok = ok && H5Dget_num_chunks(dataset, space, &n) >= 0 && n <= most;
	for (hsize_t i = 0; ok && i < n; i++) {
		hsize_t offset[MOST_DIMENSIONS], size;
		haddr_t at;
		unsigned skipped; // a bit for each filter that this chunk was not put through
		ok = H5Dget_chunk_info(dataset, space, i, offset, &skipped, &at, &size) >= 0 && skipped == 0 && at != HADDR_UNDEF;
		if (!ok) break;
		out[i].at = at;
		out[i].size = size;
		for (int d = 0; d < s->rank; d++) out[i].offset[d] = offset[d];
	}
	s->pieces = (unsigned)n;
	H5Sclose(space);
	return ok;
}

// Addresses count from the beginning of the file only where no user block precedes it.
static int begins(hid_t file) {
	hid_t made = H5Fget_create_plist(file);
	if (made < 0) return 0;
	hsize_t block = 1;
	herr_t got = H5Pget_userblock(made, &block);
	H5Pclose(made);
	return got >= 0 && block == 0;
}

int lacuna_stored(hid_t file, const char *name, const char *other, stored *s, piece *out, unsigned most) {
	// A variable that shares its name with a dimension has another one in the file.
	if (!begins(file) || H5Lexists(file, other, H5P_DEFAULT) != 0) return 0;
	hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
	if (dataset < 0) return 0;
	int ok = plain(dataset, s->width, s->floating, s->is_signed) && layout(dataset, s) && pieces(dataset, s, out, most);
	H5Dclose(dataset);
	return ok;
}

// Numbers whose first bytes come first, then their second ones.
static void unshuffle(unsigned char *restrict dst, const unsigned char *restrict src, size_t n, unsigned width) {
	if (width == 4) {
		const unsigned char *a = src, *b = a + n, *c = b + n, *d = c + n;
		for (size_t i = 0; i < n; i++) {
			dst[4 * i] = a[i], dst[4 * i + 1] = b[i], dst[4 * i + 2] = c[i], dst[4 * i + 3] = d[i];
		}
		return;
	}
	for (unsigned k = 0; k < width; k++)
		for (size_t i = 0; i < n; i++) dst[i * width + k] = src[k * n + i];
}

int lacuna_inflate(const void *in, size_t size, void *out, void *scratch, size_t bytes, unsigned width, int shuffled) {
	struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
	if (d == NULL) return 0;
	// Without a place for the size it succeeds only where all of out was written.
	enum libdeflate_result r = libdeflate_zlib_decompress(d, in, size, shuffled ? scratch : out, bytes, NULL);
	libdeflate_free_decompressor(d);
	if (r != LIBDEFLATE_SUCCESS) return 0;
	if (shuffled) unshuffle(out, scratch, bytes / width, width);
	return 1;
}
