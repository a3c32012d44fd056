package layout

// outbox is the step that adds the queue of what the world is to be
// told. A publication is a revision of a product that was promised to it; a
// delivery is one thing to be told to one sink. The ids of deliveries are the
// order of the queue, so they are never used again.
const outbox = `
CREATE TABLE publication (
	id        INTEGER PRIMARY KEY,
	granule   INTEGER NOT NULL REFERENCES granule (id),
	dataset   TEXT NOT NULL,
	name      TEXT NOT NULL, -- of the granule
	revision  INTEGER NOT NULL,
	time      TEXT NOT NULL, -- of its first field
	file      TEXT NOT NULL, -- with the bytes of this very revision
	size      INTEGER NOT NULL,
	body      TEXT NOT NULL, -- what sinks are told, as JSON
	stored    TEXT NOT NULL,
	retracted TEXT NOT NULL DEFAULT '', -- when; empty: it holds
	why       TEXT NOT NULL DEFAULT '' CHECK ((retracted = '') = (why = '')),
	UNIQUE (dataset, name, revision)
) STRICT;
CREATE INDEX publication_by_time ON publication (time);

CREATE TABLE delivery (
	id          INTEGER PRIMARY KEY AUTOINCREMENT,
	sink        TEXT NOT NULL,
	dataset     TEXT NOT NULL,
	publication INTEGER NOT NULL REFERENCES publication (id),
	kind        TEXT NOT NULL CHECK (kind IN ('publish', 'retract', 'replay')),
	state       TEXT NOT NULL CHECK (state IN ('waiting', 'delivered', 'aside')),
	attempts    INTEGER NOT NULL DEFAULT 0,
	problem     TEXT NOT NULL DEFAULT '', -- of the last attempt
	queued      TEXT NOT NULL,
	ended       TEXT NOT NULL DEFAULT '',
	CHECK (state <> 'aside' OR problem <> '')
) STRICT;
CREATE INDEX delivery_line ON delivery (sink, dataset, id) WHERE state = 'waiting';
CREATE UNIQUE INDEX delivery_waits_once ON delivery (publication, sink, kind) WHERE state = 'waiting';
CREATE INDEX delivery_aside ON delivery (sink, id) WHERE state = 'aside';
CREATE INDEX delivery_by_publication ON delivery (publication, sink);
`
