package layout

// object is the step that adds the objects of the archives: which content each name was
// last seen with. A granule may be held by several names, for archives move
// and copy files.
const object = `
CREATE TABLE object (
	dataset     TEXT NOT NULL,
	name        TEXT NOT NULL,
	size        INTEGER NOT NULL,
	mod_time    TEXT NOT NULL,
	etag        TEXT NOT NULL,
	md5         TEXT NOT NULL,
	granule     INTEGER NOT NULL REFERENCES granule (id), -- its newest content
	vanished_at TEXT NOT NULL, -- empty while it is listed
	PRIMARY KEY (dataset, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX object_by_granule ON object (granule);
CREATE INDEX granule_by_content ON granule (dataset, sha256);
INSERT INTO object (dataset, name, size, mod_time, etag, md5, granule, vanished_at)
	SELECT dataset, name, size, mod_time, '', '', id, '' FROM granule AS g
	WHERE revision = (SELECT max(revision) FROM granule AS other WHERE other.dataset = g.dataset AND other.name = g.name);

-- When the archive of a dataset was last seen whole.
CREATE TABLE poll (
	dataset TEXT PRIMARY KEY,
	at      TEXT NOT NULL
) STRICT, WITHOUT ROWID;
`
