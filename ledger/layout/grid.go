package layout

// grid is the step that lets the first granules of a dataset vote on its
// grid, and keeps every change of it with its reason.
//
// What a file of an older program has settled stays settled: granules with a
// product agree with the grid by which they were taken, and five of them are
// enough (see settledVotes in package daemon). A granule that was set aside for
// its grid while fewer had a product is read again, for it may be the others
// that were odd.
const grid = `
CREATE TABLE grid_seen (
	id          INTEGER PRIMARY KEY,
	dataset     TEXT NOT NULL,
	fingerprint TEXT NOT NULL,
	json        TEXT NOT NULL -- empty: it was not kept
) STRICT;
CREATE INDEX grid_seen_by_dataset ON grid_seen (dataset, id);

CREATE TABLE grid_vote (
	dataset TEXT NOT NULL,
	name    TEXT NOT NULL, -- of the granule: a replacement has no second vote
	granule INTEGER NOT NULL REFERENCES granule (id), -- the revision that was read
	seen    INTEGER REFERENCES grid_seen (id), -- null: it is to be read again
	PRIMARY KEY (dataset, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX grid_vote_by_seen ON grid_vote (dataset, seen);
CREATE INDEX grid_vote_by_granule ON grid_vote (granule);

CREATE TABLE grid_change (
	id          INTEGER PRIMARY KEY,
	dataset     TEXT NOT NULL,
	fingerprint TEXT NOT NULL, -- empty: the grid was forgotten
	json        TEXT NOT NULL,
	at          TEXT NOT NULL,
	why         TEXT NOT NULL
) STRICT;
CREATE INDEX grid_change_by_dataset ON grid_change (dataset, id);

ALTER TABLE grid ADD COLUMN seen INTEGER NOT NULL DEFAULT 0;
INSERT INTO grid_change (dataset, fingerprint, json, at, why)
	SELECT dataset, fingerprint, json, since, 'its first granule has it' FROM grid ORDER BY since;
INSERT INTO grid_seen (dataset, fingerprint, json) SELECT dataset, fingerprint, json FROM grid;
UPDATE grid SET seen = (SELECT id FROM grid_seen WHERE grid_seen.dataset = grid.dataset);
INSERT INTO grid_seen (dataset, fingerprint, json)
	SELECT DISTINCT dataset, 'others, of before they were noted', '' FROM granule
	WHERE state = 'quarantined' AND reason LIKE '%: its grid is %, but dataset %';
` + VotesOfProducts + `
INSERT OR IGNORE INTO grid_vote (dataset, name, granule, seen)
	SELECT dataset, name, max(id), CASE WHEN (SELECT count(*) FROM grid_vote AS v WHERE v.dataset = granule.dataset) < 5 THEN NULL
		ELSE (SELECT id FROM grid_seen AS s WHERE s.dataset = granule.dataset AND s.json = '') END
	FROM granule WHERE state = 'quarantined' AND reason LIKE '%: its grid is %, but dataset %' GROUP BY dataset, name;
`

// VotesOfProducts counts up to five granules with a product for the grid of
// their dataset, by which they were taken.
const VotesOfProducts = `
INSERT OR IGNORE INTO grid_vote (dataset, name, granule, seen)
	SELECT g.dataset, g.name, g.id, grid.seen FROM grid JOIN (
		SELECT dataset, name, max(id) AS id, row_number() OVER (PARTITION BY dataset ORDER BY min(id)) AS place
		FROM granule WHERE state IN ('stored', 'announced') GROUP BY dataset, name
	) AS g ON g.dataset = grid.dataset WHERE g.place <= 5;
`
