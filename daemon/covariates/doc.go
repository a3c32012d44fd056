// Package covariates reads the maps of the covariates of a dataset, from files and from
// the products or granules of another dataset, and brings them to the grid and the days of a job.
//
// A map that cannot be used, because of its units, its grid or its time, is left out with
// one sentence: the job is done without it, and nothing is lost. In near-real-time no map
// of a later day is used.
//
// It does not know what is made of the maps, nor the ledger: who names a dataset brings
// the files of its granules.
package covariates
