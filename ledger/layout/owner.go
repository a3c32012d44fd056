package layout

// owner is the step that gives a state an identity, one row for every
// epoch, and lets it know which revisions were taken by others: by a later
// life of this state, if it was restored from an older copy, or by another.
//
// A publication that was displaced is one whose number turned out to be taken
// by other bytes; it is retracted, and another revision follows.
const owner = `
CREATE TABLE identity (
	epoch INTEGER PRIMARY KEY CHECK (epoch >= 1),
	state TEXT NOT NULL CHECK (state <> ''), -- made at random, once
	since TEXT NOT NULL,
	why   TEXT NOT NULL -- somebody took over; empty with the first
) STRICT;

CREATE TABLE taken (
	dataset  TEXT NOT NULL,
	name     TEXT NOT NULL, -- of the granule
	revision INTEGER NOT NULL,
	sink     TEXT NOT NULL, -- where it was found
	sha256   TEXT NOT NULL, -- of the bytes there; empty: not known
	ours     TEXT NOT NULL, -- of the bytes that this state had for the number; empty: none
	at       TEXT NOT NULL,
	PRIMARY KEY (dataset, name, revision, sink)
) STRICT, WITHOUT ROWID;
CREATE INDEX taken_by_time ON taken (at);

CREATE TABLE compared (
	sink  TEXT PRIMARY KEY, -- that was compared with the ledger as a whole
	epoch INTEGER NOT NULL, -- in which
	at    TEXT NOT NULL
) STRICT, WITHOUT ROWID;

ALTER TABLE publication ADD COLUMN displaced INTEGER NOT NULL DEFAULT 0 CHECK (displaced IN (0, 1));
CREATE INDEX publication_by_stored ON publication (stored);
`
