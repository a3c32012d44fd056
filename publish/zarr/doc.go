// Package zarr keeps the products of a dataset as one growing Zarr v3 store, in
// a folder or a bucket.
//
//	<root>/<dataset>.zarr/zarr.json             the group, with the metadata of every array
//	                     /<array>/zarr.json     the same of one array
//	                     /<map>/c/<slot>/0/0    a shard: the whole map of one time
//	                     /<series>/c/<n>        numbers and names along time, seriesChunk of them
//	      .manifests/<dataset>/<YYYY>/<MM>/<YYYYMMDD>.manifest.json
//	      .shift/<dataset>.json, .next          slots that are being moved
//
// A time has a slot, and slots are in the order of time. A map has a shard a
// time, so that a day more, or a day anew, writes that day only, however long the
// store is; the shard is cut into chunks, so that a reader fetches the part that
// it asks for. A time without a product is an empty slot: fill values, and 0 as
// its revision.
//
// Every object appears whole or not at all, and the group's zarr.json, which
// readers open, comes last: what was appended is seen with it, all variables at
// once. A product that replaces another is out of sight meanwhile: its revision
// is 0 and its variable absent, so that the values of one revision are never
// seen beside the uncertainty of another, also after a crash. A time before
// the last one takes an empty slot; where there is none, the later slots are
// moved, and the store shows the earlier ones only until that is done.
//
// Package zarr does not keep members, nor files of earlier revisions. It knows
// nothing of how products are made, and reads them as package netcdf wrote them.
package zarr
