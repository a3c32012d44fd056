package layout

// rolling is the step that lets a product be made anew, scores products,
// and counts as it goes.
//
// A granule's row becomes a revision that has a cause. A reopening is a
// product that has to be looked at again because a neighbour came; a skill is
// a score, due or had. The tallies follow from granule and delivery and are
// kept by triggers, so that counting a million rows costs nothing.
const rolling = `
ALTER TABLE granule ADD COLUMN lane TEXT NOT NULL DEFAULT 'live' CHECK (lane IN ('live', 'backfill'));
ALTER TABLE granule ADD COLUMN cause TEXT NOT NULL DEFAULT 'archive' CHECK (cause IN ('archive', 'reanalysis', 'redo'));
ALTER TABLE granule ADD COLUMN why TEXT NOT NULL DEFAULT '' CHECK ((cause = 'archive') = (why = ''));
DROP INDEX granule_pending;
CREATE INDEX granule_pending ON granule (dataset, lane DESC, name, revision) WHERE state IN ('fetched', 'filled');

CREATE INDEX publication_by_granule ON publication (granule); -- what a new granule is checked against

CREATE TABLE reopening (
	id         INTEGER PRIMARY KEY,
	dataset    TEXT NOT NULL,
	name       TEXT NOT NULL, -- of the granule whose product it is
	time       TEXT NOT NULL, -- of its first field
	lane       TEXT NOT NULL CHECK (lane IN ('live', 'backfill')),
	opened     TEXT NOT NULL, -- when the first neighbour came
	latest     TEXT NOT NULL, -- and the latest
	due        TEXT NOT NULL, -- when it is looked at, unless another comes
	neighbours INTEGER NOT NULL,
	why        TEXT NOT NULL, -- of the latest
	outcome    TEXT NOT NULL DEFAULT '' CHECK (outcome IN ('', 'revised', 'unchanged', 'overtaken', 'dropped')),
	ended      TEXT NOT NULL DEFAULT '' CHECK ((outcome = '') = (ended = '')),
	change     REAL NOT NULL DEFAULT 0, -- in standard deviations, where it was compared
	note       TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE UNIQUE INDEX reopening_open ON reopening (dataset, name) WHERE outcome = '';
CREATE INDEX reopening_line ON reopening (dataset, lane, due, id) WHERE outcome = '';
CREATE INDEX reopening_by_product ON reopening (dataset, name, id);

CREATE TABLE skill (
	id        INTEGER PRIMARY KEY,
	granule   INTEGER NOT NULL REFERENCES granule (id), -- whose observations are the truth
	kind      TEXT NOT NULL CHECK (kind IN ('overlay', 'revealed')),
	dataset   TEXT NOT NULL,
	day       TEXT NOT NULL,
	scored    INTEGER REFERENCES publication (id), -- with revealed: what was said before
	state     TEXT NOT NULL DEFAULT 'due' CHECK (state IN ('due', 'had', 'skipped')),
	method    TEXT NOT NULL DEFAULT '',
	mse       REAL NOT NULL DEFAULT 0,
	bias      REAL NOT NULL DEFAULT 0,
	covered90 REAL NOT NULL DEFAULT 0,
	pixels    INTEGER NOT NULL DEFAULT 0,
	at        TEXT NOT NULL,
	note      TEXT NOT NULL DEFAULT '' CHECK ((state = 'skipped') = (note <> '')),
	UNIQUE (granule, kind)
) STRICT;
CREATE INDEX skill_due ON skill (dataset, id) WHERE state = 'due';
CREATE INDEX skill_by_day ON skill (dataset, day, id) WHERE state = 'had';

CREATE TABLE tally (
	dataset  TEXT NOT NULL,
	state    TEXT NOT NULL,
	granules INTEGER NOT NULL,
	PRIMARY KEY (dataset, state)
) STRICT, WITHOUT ROWID;
INSERT INTO tally SELECT dataset, state, count(*) FROM granule GROUP BY dataset, state;
CREATE TRIGGER granule_is_counted AFTER INSERT ON granule BEGIN
	INSERT OR IGNORE INTO tally VALUES (new.dataset, new.state, 0);
	UPDATE tally SET granules = granules + 1 WHERE dataset = new.dataset AND state = new.state;
END;
CREATE TRIGGER granule_is_counted_anew AFTER UPDATE OF state ON granule WHEN old.state <> new.state BEGIN
	INSERT OR IGNORE INTO tally VALUES (new.dataset, new.state, 0);
	UPDATE tally SET granules = granules + 1 WHERE dataset = new.dataset AND state = new.state;
	UPDATE tally SET granules = granules - 1 WHERE dataset = old.dataset AND state = old.state;
END;
CREATE TRIGGER granule_is_counted_out AFTER DELETE ON granule BEGIN
	UPDATE tally SET granules = granules - 1 WHERE dataset = old.dataset AND state = old.state;
END;

CREATE TABLE delivery_tally (
	sink       TEXT NOT NULL,
	state      TEXT NOT NULL,
	deliveries INTEGER NOT NULL,
	PRIMARY KEY (sink, state)
) STRICT, WITHOUT ROWID;
INSERT INTO delivery_tally SELECT sink, state, count(*) FROM delivery GROUP BY sink, state;
CREATE TRIGGER delivery_is_counted AFTER INSERT ON delivery BEGIN
	INSERT OR IGNORE INTO delivery_tally VALUES (new.sink, new.state, 0);
	UPDATE delivery_tally SET deliveries = deliveries + 1 WHERE sink = new.sink AND state = new.state;
END;
CREATE TRIGGER delivery_is_counted_anew AFTER UPDATE OF state ON delivery WHEN old.state <> new.state BEGIN
	INSERT OR IGNORE INTO delivery_tally VALUES (new.sink, new.state, 0);
	UPDATE delivery_tally SET deliveries = deliveries + 1 WHERE sink = new.sink AND state = new.state;
	UPDATE delivery_tally SET deliveries = deliveries - 1 WHERE sink = old.sink AND state = old.state;
END;
CREATE TRIGGER delivery_is_counted_out AFTER DELETE ON delivery BEGIN
	UPDATE delivery_tally SET deliveries = deliveries - 1 WHERE sink = old.sink AND state = old.state;
END;
`
