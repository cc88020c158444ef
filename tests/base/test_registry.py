"""Shelves: hpcgym's own entries and a user's, by name."""

import pytest

from hpcgym.base import registry
from hpcgym.base.errors import CardError, HpcgymError, ScenarioError, TraceError


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A user's folder with one scenario, before any folder is added."""
    monkeypatch.setattr(registry, "_user_folders", [])
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "scenarios" / "our-cluster.toml").touch()
    return tmp_path


def test_every_shelf_has_entries_in_the_order_of_their_names():
    for shelf in registry.SHELVES:
        entries = registry.shelf_entries(shelf)
        assert entries
        assert list(entries) == sorted(entries)
        assert all(path.is_file() and path.stem == name for name, path in entries.items())


def test_catalogue_of_logs_is_not_an_entry():
    assert "catalogue" not in registry.shelf_entries("traces")
    assert (registry.shelf_folders("traces")[0] / "catalogue.toml").is_file()


def test_entry_of_an_added_folder_is_found_beside_the_bundled_ones(own):
    registry.add_folder(own)
    registry.add_folder(str(own))
    assert registry.find_entry("scenarios", "our-cluster").parent == own / "scenarios"
    assert registry.find_entry("scenarios", "tiny").is_file()
    assert registry.shelf_folders("agents") == registry.shelf_folders("agents")[:1]


def test_name_is_found_whatever_its_case():
    assert registry.find_entry("scenarios", "TINY") == registry.find_entry("scenarios", "tiny")


def test_two_entries_of_one_name_are_refused_with_both_files_named(own):
    (own / "scenarios" / "tiny.toml").touch()
    registry.add_folder(own)
    with pytest.raises(ScenarioError, match=r"two entries are called 'tiny': .*tiny.toml and .*"):
        registry.shelf_entries("scenarios")


@pytest.mark.parametrize(
    ("shelf", "error"),
    [("agents", CardError), ("scenarios", ScenarioError), ("traces", TraceError)],
)
def test_unknown_entry_is_answered_with_the_nearest_name(shelf, error):
    name = next(iter(registry.shelf_entries(shelf)))
    with pytest.raises(error, match=f"unknown {shelf[:-1]} '{name}x'; did you mean '{name}'"):
        registry.find_entry(shelf, name + "x")


def test_folder_that_holds_no_shelf_is_refused(tmp_path):
    with pytest.raises(HpcgymError, match="none of the shelves agents, scenarios, traces"):
        registry.add_folder(tmp_path)
    with pytest.raises(HpcgymError, match="is not a folder"):
        registry.add_folder(tmp_path / "absent")
