// Package modelstore keeps the versions of trained models on disk, and the log
// of which of them serves.
//
// A store is a folder:
//
//	versions/ID/     card.json and the files it lists; never changed once there
//	promotions.log   which version became champion of which dataset, when and why
//	pins/ID          versions that garbage collection must keep
//	calendars/NAME   which days of a dataset are learned from, and which judge
//	incoming/        versions being written
//	trash/           versions being deleted
//	lock             held by the one process that changes the above
//
// A version is named by its content: the last part of its ID is the sha256 of
// card.json, and card.json lists the other files with size and sha256. It
// appears whole or not at all, and every byte is checked when it is loaded: a
// file that was changed, cut or lost is refused by name. The log is only ever
// appended to, and each line carries the hash of the one before. A process that
// dies at any moment, by kill -9 too, leaves a store that reads as it did
// before or after the change it was making.
//
// Reading needs no lock and no write permission, so a store on a read-only file
// system serves. The checks do not find that whole lines were cut off the end
// of the log: a chain does not know its missing links.
//
// Package modelstore knows bytes and cards. It knows no tensors, does not judge
// models, and imports nothing of this module.
package modelstore
