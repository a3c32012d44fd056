// Package fill turns a decoded granule into a product in memory: it chooses the
// method (the champion of the dataset, a starter model, optimal interpolation),
// keeps the models loaded, analyses, and describes the result. The service and
// `lacuna fill` share it, so the same granule gives the same product.
//
// It does not know the ledger, earlier revisions, the spool or the sinks: the
// caller hands it the granule, its neighbours and its sea mask.
package fill
