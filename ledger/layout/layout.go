// Package layout holds the layouts of the ledger's file, each as the SQL of the step
// from the one before. A step that was released is never edited; a change is a new
// one, at the end.
//
// Times are text in UTC, all of one width, so that they sort as they read.
package layout

// Steps returns the steps from an empty file to the newest layout.
func Steps() []string {
	return []string{first, outbox, object, rolling, grid, owner, absence, look}
}

// first is the layout of the first release: granules, their fields and their history.
const first = `
CREATE TABLE granule (
	id             INTEGER PRIMARY KEY,
	dataset        TEXT NOT NULL,
	name           TEXT NOT NULL,
	revision       INTEGER NOT NULL CHECK (revision >= 1),
	sha256         TEXT NOT NULL, -- empty where it was refused unread
	size           INTEGER NOT NULL,
	mod_time       TEXT NOT NULL,
	spool_path     TEXT NOT NULL,
	state          TEXT NOT NULL CHECK (state IN
		('discovered', 'fetched', 'filled', 'stored', 'announced', 'quarantined')),
	reason         TEXT NOT NULL CHECK ((state = 'quarantined') = (reason <> '')),
	first_time     TEXT NOT NULL, -- empty until the file was read
	last_time      TEXT NOT NULL,
	product_path   TEXT NOT NULL CHECK ((state IN ('stored', 'announced')) = (product_path <> '')),
	product_sha256 TEXT NOT NULL,
	observed       REAL NOT NULL DEFAULT 0, -- share of the sea with a value, before
	covered        REAL NOT NULL DEFAULT 0, -- and after
	recorded       TEXT NOT NULL,
	changed        TEXT NOT NULL,
	UNIQUE (dataset, name, revision)
) STRICT;
CREATE INDEX granule_by_state ON granule (dataset, state);
CREATE INDEX granule_pending ON granule (dataset, name, revision) WHERE state IN ('fetched', 'filled');
CREATE INDEX granule_by_change ON granule (changed, id);
CREATE INDEX granule_by_state_change ON granule (state, changed, id);

-- The times of the fields in a granule: what a window of days is looked up in.
CREATE TABLE field_time (
	dataset TEXT NOT NULL,
	time    TEXT NOT NULL,
	granule INTEGER NOT NULL REFERENCES granule (id),
	PRIMARY KEY (dataset, time, granule)
) STRICT, WITHOUT ROWID;
CREATE INDEX field_time_by_granule ON field_time (granule);

CREATE TABLE history (
	id      INTEGER PRIMARY KEY,
	granule INTEGER NOT NULL REFERENCES granule (id),
	state   TEXT NOT NULL,
	at      TEXT NOT NULL,
	note    TEXT NOT NULL
) STRICT;
CREATE INDEX history_by_granule ON history (granule, id);
CREATE TRIGGER history_is_not_rewritten BEFORE UPDATE ON history
	BEGIN SELECT RAISE (ABORT, 'history is only appended to'); END;
CREATE TRIGGER history_is_not_erased BEFORE DELETE ON history
	BEGIN SELECT RAISE (ABORT, 'history is only appended to'); END;

CREATE TABLE grid (
	dataset     TEXT PRIMARY KEY,
	fingerprint TEXT NOT NULL,
	json        TEXT NOT NULL,
	since       TEXT NOT NULL
) STRICT, WITHOUT ROWID;
`
