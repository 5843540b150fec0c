from pathlib import Path

import pytest

from search.cli import packages


@pytest.fixture
def home(tmp_path) -> dict[str, Path | None]:
    """The four packages as an installation has them, with the files that tell them."""
    places: dict[str, Path | None] = {}
    for name in packages.PACKAGES:
        place = tmp_path / "site-packages" / name
        place.mkdir(parents=True)
        (place / packages._OURS[name]).touch()
        places[name] = place
    return places


def test_packages_of_one_root_are_ours(home):
    assert packages.foreign(home) is None


def test_this_checkout_is_of_one_root():
    packages.check_packages()


def test_a_package_from_elsewhere_is_named(home, tmp_path):
    other = tmp_path / "other" / "spaces"
    other.mkdir(parents=True)
    name, text = packages.foreign(home | {"spaces": other}) or ("", "")
    assert name == "spaces"
    assert str(other) in text


def test_a_missing_package_is_named(home):
    assert (packages.foreign(home | {"workers": None}) or ("",))[0] == "workers"


def test_a_package_that_was_replaced_in_place_is_named(home, tmp_path):
    (tmp_path / "site-packages" / "spaces" / "spec.py").unlink()
    assert "replaced" in (packages.foreign(home) or ("", ""))[1]


def test_the_other_distribution_spaces_installed_over_ours_is_named(home, tmp_path):
    (tmp_path / "site-packages" / "spaces-0.50.4.dist-info").mkdir()
    name, text = packages.foreign(home) or ("", "")
    assert name == "spaces"
    assert "over paretovit's package" in text
