"""Validate a static STAC catalogue by the official schemas, and print what is found, as JSON.

usage: validate.py CATALOG SCHEMA...

The schemas of STAC itself come with pystac; a SCHEMA is that of an extension. Nothing is
fetched: a schema that is not there is an error.
"""

import hashlib
import json
import pathlib
import sys

import pystac
import pystac.validation

validator = pystac.validation.JsonSchemaSTACValidator()
for path in sys.argv[2:]:
    schema = json.loads(pathlib.Path(path).read_text())
    validator.schema_cache[schema["$id"].rstrip("#")] = schema
pystac.validation.set_validator(validator)

root = pystac.Catalog.from_file(sys.argv[1])
collections, items = {}, {}
for catalog, _, own in root.walk():
    used = catalog.validate()
    assert used, catalog
    if isinstance(catalog, pystac.Collection):
        extent = catalog.extent
        collections[catalog.id] = {
            "interval": [[t.isoformat() for t in pair] for pair in extent.temporal.intervals],
            "bbox": extent.spatial.bboxes[0],
        }
    for item in own:
        assert len(item.validate()) == 2, item  # by the schema of items and that of the extension
        assert item.get_collection().id == item.collection_id and item.get_parent() is not None and item.get_root() is not None
        for asset in item.assets.values():
            content = pathlib.Path(asset.get_absolute_href()).read_bytes()
            if "file:checksum" in asset.extra_fields:
                assert asset.extra_fields["file:checksum"] == "1220" + hashlib.sha256(content).hexdigest(), asset
                assert asset.extra_fields["file:size"] == len(content), asset
        items[f"{item.collection_id}/{item.id}"] = {
            "datetime": item.datetime.isoformat(), "geometry": item.geometry["type"], "assets": sorted(item.assets),
            "revision": item.properties["lacuna:revision"],
        }
print(json.dumps({"collections": collections, "items": items}))
