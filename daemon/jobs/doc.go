// Package jobs is a fill job as a message, and what is made of it. A Message names
// everything that a product depends on: the granule and its neighbours by name and
// hash, the model by its version and the hashes of its files, masks and scalings by
// hash, and the constants, calibration, seed, tier, revision and times themselves.
// Running a message is a pure function: done twice, or on another machine with the
// same program and engine, it gives the same bytes, so a queue that hands a job out
// at least once is enough.
//
//	coordinator                     Folder (shared)                 worker
//	fill.Job ──Pack──▶ Message ──▶  objects by hash   ──▶ Runner.Run ──▶ fill.Analyse
//	                                open messages                          │
//	Result  ◀── Done ◀───────────── results by job    ◀──── Finish ◀── Write
//
// Write is the end of every fill, here and elsewhere: it makes the files of a
// product from an outcome. A daemon that fills by itself calls fill.Analyse and
// Write; a worker does the same with the job that it has unpacked.
//
// A Folder is storage that the coordinator and all workers see, such as a mounted
// file system. Whatever lies in it under a hash is checked against the hash when it
// is read. A message is open from before it is sent until its product is stored: a
// coordinator that starts again sends the same messages, not others. The first
// result of a job counts, and a worker that is handed a finished job answers with
// that.
//
// A Training is a job of the same kind: its inputs are objects, its version is one, and
// so are the files of its checkpoints, with which another worker goes on.
//
// Package jobs does not know the ledger, Kafka, or the order of jobs.
package jobs
