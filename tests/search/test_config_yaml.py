import pytest

from search import config_yaml
from search.errors import UsageError

parse = config_yaml.parse


def message(text: str) -> str:
    with pytest.raises(UsageError) as caught:
        parse(text, "search.yaml")
    return str(caught.value)


def test_scalars_follow_the_core_schema_of_yaml_1_2():
    text = "a: [1, -2, 1e-3, .5, true, False, null, ~, no, 10:30, 2026-11-30, 0x1, '3', 1_000]"
    assert parse(text, "x").values == {
        "a": [1, -2, 1e-3, 0.5, True, False, None, None, "no", "10:30", "2026-11-30", "0x1", "3", "1_000"]
    }


def test_every_key_and_item_knows_its_line():
    document = parse("a:\n  b: 1\n  c:\n    - x\n    - {d: 2}\n", "x")
    assert document.origins.lines == {
        ("a",): 1,
        ("a", "b"): 2,
        ("a", "c"): 3,
        ("a", "c", 0): 4,
        ("a", "c", 1): 5,
        ("a", "c", 1, "d"): 5,
    }


def test_a_message_takes_the_line_of_the_nearest_key_that_has_one():
    origins = parse("a:\n  b: 1\n", "x.yaml").origins
    assert origins.message(("a", "b"), "odd") == "x.yaml:2: a.b: odd"
    assert origins.message(("a", "missing"), "odd") == "x.yaml:1: a.missing: odd"
    assert origins.message(("z",), "odd") == "x.yaml: z: odd"


@pytest.mark.parametrize(
    "text, expected",
    [
        ("", "search.yaml: is empty"),
        ("# only a comment\n", "search.yaml: is empty"),
        ("- a\n", "search.yaml:1: needs `key: value` lines"),
        ("word", "search.yaml:1: needs `key: value` lines"),
        ("a: 1\nb: [1\n", "search.yaml:3: is not valid YAML"),
        ("a:\n\t- 1\n", "search.yaml:2: is not valid YAML"),
        ("a: 1\nb: \x01", "search.yaml:2: holds a character"),
        ("a: 1\nb: {c: 1, c: 2}", "search.yaml:2: b.c: is given twice"),
        ("a: 1\n? [x]\n: 2\n", "search.yaml:2: a key needs to be a plain word"),
        ("a: 1\n---\nb: 2\n", "search.yaml:2: a second YAML document"),
        ("a: !!python/object/apply:os.system [x]", "search.yaml:1: the YAML tag"),
        ("a: !!str 1", "search.yaml:1: the YAML tag"),
        ("a: !custom {}", "search.yaml:1: the YAML tag"),
        ("a: &x 1\nb: *x\n", "search.yaml:1: YAML anchors (&) and aliases (*)"),
        ("a: .nan", "search.yaml:1: a: .nan is not a number"),
        ("a: -.inf", "search.yaml:1: a: -.inf is not a number"),
        ("a: 1e999", "search.yaml:1: a: 1e999 is not a number"),
        ("a: " + 40 * "9", "search.yaml:1: a: the number is too large"),
        ('a: "\\0"', "search.yaml:1: a: '\\x00' holds a control character"),
        ('a: "\\ud800"', "search.yaml:1: a: '\\ud800' holds a control character"),
        ("a: " + 5_000 * "[", "search.yaml:1: is nested over 16 levels deep"),
        ("a: " + 300_000 * "x", "search.yaml: holds over 200,000 characters"),
    ],
)
def test_what_is_not_plain_yaml_is_refused_with_its_line(text, expected):
    found = message(text)
    assert found.startswith(expected)
    assert "\n" not in found


def test_an_alias_bomb_is_refused_before_it_is_expanded():
    levels = [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 30)]
    assert "aliases" in message("a0: &a0 [x]\n" + "\n".join(levels))


def test_an_override_replaces_adds_and_parses_its_value():
    document = parse("a: {b: 1, c: 2}\n", "x.yaml")
    document = config_yaml.override(document, "a.b=[1, 2e-1]")
    document = config_yaml.override(document, "new.deep.key=true")
    document = config_yaml.override(document, "a.c=")
    assert document.values == {"a": {"b": [1, 0.2], "c": None}, "new": {"deep": {"key": True}}}
    assert document.origins.message(("a", "b"), "odd") == "--set a.b: odd"
    assert document.origins.message(("a", "b", 0), "odd") == "--set a.b[1]: odd"


def test_an_override_leaves_the_document_alone():
    document = parse("a: {b: 1}\n", "x.yaml")
    config_yaml.override(document, "a.b=2")
    assert document.values == {"a": {"b": 1}}


@pytest.mark.parametrize(
    "assignment, expected",
    [
        ("a", "--set a: needs the form key=value"),
        ("=3", "--set =3: needs the form"),
        ("a..b=3", "--set a..b=3: needs the form"),
        ("name.x=3", "--set name.x: name is 'n', which holds no keys"),
        ("a=[1", "--set a: is not valid YAML"),
        ("a=.nan", "--set a: .nan is not a number"),
        ("a=&x 1", "--set a: YAML anchors"),
        ("a={b: 1, b: 2}", "--set a.b: is given twice"),
        ('a="\\0"', "--set a: '\\x00' holds a control character"),
    ],
)
def test_a_bad_override_names_itself(assignment, expected):
    with pytest.raises(UsageError) as caught:
        config_yaml.override(parse("name: n\n", "x.yaml"), assignment)
    assert str(caught.value).startswith(expected)


def test_files_that_cannot_be_read_are_errors(tmp_path):
    (tmp_path / "latin.yaml").write_bytes("name: é\n".encode("latin-1"))
    for path, expected in [
        (tmp_path / "none.yaml", "no such file"),
        (tmp_path, "is a folder"),
        (tmp_path / "latin.yaml", "is not UTF-8"),
    ]:
        with pytest.raises(UsageError, match=expected):
            config_yaml.read(path)


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path):
    path = tmp_path / "bom.yaml"
    path.write_bytes("\ufeffname: a\n".encode())
    assert config_yaml.read(path).values == {"name": "a"}


@pytest.mark.parametrize("key", ["\\e[31mred", "a\\u202eb", "a\\ud800b", "a\\nb", "x" * 121])
def test_a_key_that_a_terminal_would_act_on_is_refused_at_its_line(key):
    with pytest.raises(UsageError) as caught:
        parse(f'name: n\nspace: {{"{key}": 3}}\n', "x.yaml")
    assert str(caught.value).startswith("x.yaml:2: the key '")
    assert str(caught.value).isprintable()
    with pytest.raises(UsageError) as caught:
        config_yaml.override(parse("name: n\n", "x.yaml"), "\x1b[31mred=3")
    assert str(caught.value).isprintable()


def test_keys_of_any_alphabet_are_fine():
    assert parse("größe: 1\n日本: 2\n", "x.yaml").values == {"größe": 1, "日本": 2}
