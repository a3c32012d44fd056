// Package shadow watches for new versions of a dataset and compares one with the
// version in use before it is taken.
//
// Memory keeps what is known of the versions of a dataset: the values of version
// attributes that its granules have had, the changes that no operator has accepted
// yet, and the versions that were refused. Compare says how far the granules of a
// new version differ from those in use, day by day; a Report is the result.
//
// It does not know how granules are fetched or filled: package daemon runs the
// service a second time, in a folder of its own, and hands the granules over.
package shadow
