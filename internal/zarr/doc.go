// Package zarr describes and reads Zarr stores, versions 2 and 3, as far as
// archives of gridded data use them.
//
// A Store gives bytes by key: a folder, a ZIP file, a bucket. Open reads the
// metadata of a group, consolidated or not, and Array.Read the numbers of a
// region, exactly as they were stored, little endian and row-major. Regular
// chunks and shards are read; of the codecs bytes, transpose, gzip, zlib, zstd,
// lz4, bz2, blosc, shuffle and crc32c. An array of another kind, such as one of
// strings, has an Unusable reason and does no harm to the others.
//
// A store may be hostile. Keys never leave the store; documents, chunks, shards
// and what they inflate to are bounded before memory is taken, and a chunk must
// have the length that its metadata say. Every error names the key.
//
// ArrayV3, GroupV3 and NamedCodec are the documents of version 3 as they stand
// in a store, for those who write one too; EncodeChunk is the counterpart of
// what Read does with a chunk.
//
// Package zarr knows nothing of CF beyond the names of the attributes whose type is
// that of their variable, nothing of grids, and caches nothing.
package zarr
