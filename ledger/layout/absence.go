package layout

// absence is the step that lets a row stand for a time of which the
// archive has no granule, so that its product goes the way of all others.
const absence = `
ALTER TABLE granule ADD COLUMN absent INTEGER NOT NULL DEFAULT 0 CHECK (absent IN (0, 1)); -- 1: there is no such granule
CREATE INDEX granule_unseen ON granule (dataset, first_time) WHERE product_path <> '' AND observed = 0; -- a product without an observation
CREATE INDEX granule_absent ON granule (dataset, state) WHERE absent = 1;
`
