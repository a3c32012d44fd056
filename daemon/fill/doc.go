// Package fill takes a decoded granule to the product that is written: it
// chooses what fills the granule (the champion of its dataset, a starter model,
// optimal interpolation), keeps the models loaded, analyses, and describes the
// result. The service and `lacuna fill` share it, so the same granule gives the
// same product.
//
// It knows nothing of the ledger, of revisions that came before, of files or of
// sinks: whoever calls it gives it the granule, its neighbours and its sea.
package fill
