package layout

// look is the step that lets people look things up in a ledger of a million
// granules as fast as in a small one: a granule by the end of its path, those of a
// dataset that were not read, and the products of a dataset by time and by age.
const look = `
CREATE INDEX granule_by_file ON granule (` + FileOfName + `);
CREATE INDEX granule_unread ON granule (dataset, state, changed, id) WHERE first_time = '';
CREATE INDEX publication_by_dataset_time ON publication (dataset, time);
CREATE INDEX publication_by_dataset ON publication (dataset); -- in the order of ids
`

// FileOfName is the last part of a granule's path. SQLite has no function for it:
// what is left of the path without its trailing letters that are not slashes is the
// folder. An index has this expression, and a query follows it only with the same.
const FileOfName = `substr(name, length(rtrim(name, replace(name, '/', ''))) + 1)`
