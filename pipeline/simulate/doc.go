// Package simulate makes satellite feeds whose truth is known.
//
// A World is a stretch of real coastline with an invented ocean. Eddies and a
// rim current stir a tracer (chlorophyll, temperature or salinity) that
// relaxes towards a large-scale state with seasons, river plumes and coastal
// gradients, so filaments and fronts form by themselves; polar orbiters pass
// over it and look through drifting clouds. Each day has a Truth that is
// complete over the sea and a Seen field with gaps and sensor noise, and each
// Delivery of the Schedule is a granule in the file layout of a Copernicus
// Marine product, with granules that are late, replaced or empty.
//
//	eddies, rim current ──► back-trajectories ──┐
//	coast, rivers, season ──► source field ─────┴─► truth ─┬─► seen ─► granule
//	orbits, clouds, glint, quality ────────────────────────┘
//
// Everything is a pure function of Config: no clock, no file, no global state.
// Day n is the same whichever days were computed before it, and a
// World may be used by several goroutines.
//
// Package simulate knows nothing of NetCDF libraries, of archives or of the
// pipeline that will read its files. They are marked as simulated: they are for
// demos and tests and replace no real data.
package simulate
