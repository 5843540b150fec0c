from __future__ import annotations

import json

from search.brought import KEY, Brought

BROUGHT = Brought({"own_net": "mine"}, {"mixer": "mine, other"}, {"mixer": "0123"})


def test_it_is_stored_as_json_and_read_back() -> None:
    data = {"image_size": 8} | json.loads(json.dumps(BROUGHT.to_dict()))
    assert list(data) == ["image_size", KEY]
    assert Brought.of(data) == BROUGHT


def test_a_search_without_modules_of_the_users_stores_nothing() -> None:
    assert Brought().to_dict() == {}
    assert Brought.of({"image_size": 8}) == Brought()


def test_a_network_is_brought_by_the_module_of_its_entry_point_or_else_of_its_family() -> None:
    assert BROUGHT.module("baseline", "own_net") == "mine"
    assert BROUGHT.module("mixer", "own_net_of_another_depth") == "mine, other"
    assert BROUGHT.module("vit", "vit_tiny_patch16_224") is None
