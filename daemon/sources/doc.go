// Package sources makes one granule of those that the sources of a dataset have of a
// day.
//
// Each source is a series of its own in the ledger, named DATASET.SOURCE (Series),
// with granules that its watcher brings. The Merger reads those that are new, refuses
// with a sentence those that cannot be brought to the units and the grid of the
// dataset, and writes a granule of every day that they concern: a NetCDF file in the
// spool whose cells come each from the best source that saw them (package merge),
// with their errors and the names of their sources beside them. To the rest of the
// service it is a granule like any other, so neighbours, models and scores see merged
// days only. When another source brings the same day, the granule gets other bytes
// and its product another revision.
//
// The same bytes in several sources, as mirrors have them, count once. A source that
// brings nothing takes nothing away: the days go on from the others.
//
// In the ledger a granule of a source rests in the state filled when it was merged.
// What was fitted of the sources is kept in the state folder, a summary a day; a
// crash at any point leaves work that is done again to the same bytes.
//
// Package sources does not know archives, nor what fills a granule.
package sources
