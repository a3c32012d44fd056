"""A simulated sea, filled once for all tests."""

import pathlib

import pytest
import xarray

import lacuna


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Granules of six days, and a configuration of a service that has filled them."""
    folder = tmp_path_factory.mktemp("service")
    lacuna.run(["simulate", "-o", folder / "archive", "--days", "6", "--grid", "24x32", "--product", "blk-chl", "--seed", "3"])
    (folder / "lacuna.yaml").write_text(f"""
state_dir: {folder}/state
products_dir: {folder}/products
web: {{listen: "127.0.0.1:0"}}
alarms: {{lag: 0s}}
publish:
  quick_look: false
  zarr: {{dir: {folder}/zarr}}
datasets:
  - name: sea
    product: cmems_obs-oc_blk_bgc-plankton_my_l3-multi-1km_P1D
    archive: {{dir: {folder}/archive, settle: 0s}}
    fill: {{method: persistence}}
    daily_skill: false
""")
    lacuna.run(["once", "--config", folder / "lacuna.yaml"])
    return folder


@pytest.fixture(scope="session")
def granules(archive: pathlib.Path) -> list[pathlib.Path]:
    return sorted((archive / "archive").glob("**/*.nc"))


@pytest.fixture(scope="session")
def filled(granules: list[pathlib.Path]) -> xarray.Dataset:
    with xarray.open_dataset(granules[2]) as granule:
        return lacuna.fill(granule, history=granules[:2], variable="CHL", model="oi")
