"""Families of the user's own: what is allowed, what is checked, and every mistake in a line with nothing written."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from search import own_families
from search.brought import Brought
from search.cli.main import main
from search.config import from_dict
from search.errors import UsageError, UserError
from search.plan import Plan, make_plan
from spaces.dims import Choice
from workers.data.summary import summarise

EXAMPLES = Path(__file__).parents[2] / "examples"
HEAD = "name: hunt\ndata: {source: digits}\nbaselines: {}\n"
CONFIG = HEAD + "space: {families: [vit, mine:Mine]}\n"
MINE = """
from own_family import Mixer
from spaces.costs import Analysis
from spaces.dims import Choice, FloatRange, Grid, IntRange, Rule
from spaces.spec import ArchSpec

class Mine(Mixer):
    name = "mine"
"""
BARE = """
class Mine:
    name = "mine"
    conditions = {}
    named = {}
"""


def with_limits(domain: str, name: object = "width") -> str:
    return f"    def limits(self, task): return {{**super().limits(task), {name!r}: {domain}}}\n"


def with_rule(rule: str) -> str:
    return f"    def rules(self, task): return [{rule}]\n"


def with_spec(spec: str) -> str:
    return f"    def spec(self, task, values): return {spec}\n"


HEAD_ARGS = "{'in_chans': 1, 'num_classes': 10}"
MISTAKES: dict[str, tuple[str, str]] = {
    "a module that raises": (
        "1 / 0\n",
        "plugin 'mine' cannot be imported: ZeroDivisionError: division by zero",
    ),
    "a module that is no Python": ("class\n", "plugin 'mine' cannot be imported: SyntaxError"),
    "a module that lacks another": (
        "import no_such_thing\n",
        "plugin 'mine' cannot be imported: No module named 'no",
    ),
    "a class of another name": ("class Mime: pass\n", "Mine is not in its module; nearest: Mime"),
    "no class at all": ("x = 1\n", "Mine is not in its module; it has no class"),
    "a function": ("def Mine(): pass\n", "Mine is no class"),
    "a class that takes arguments": (
        MINE + "    def __init__(self, width): pass\n",
        "Mine() raises TypeError",
    ),
    "a class that lacks methods": (BARE, "is no family: it lacks limits, rules, spec; a family has name"),
    "a class that the module has from elsewhere": (
        "class Mine:\n    def __init__(self): open('made', 'w')\n",
        "is no family: it lacks limits, rules, spec",
    ),
    "a class without a name": (
        MINE.partition("class")[0] + "class Mine:\n    limits = rules = spec = print\n",
        "it lacks name, conditions, named",
    ),
    "a method that is none": (MINE + "    rules = ()\n", "rules is (), no method"),
    "an optional method that is none": (MINE + "    ranges = {}\n", "ranges is {}, no method"),
    "a member that raises": (
        MINE + "    @property\n    def named(self): return 1 / 0\n",
        "Mine raises ZeroDivisionError",
    ),
    "a name with a dash": (MINE + "    name = 'my-mixer'\n", "name is 'my-mixer'; a plain word is"),
    "no name": (MINE + "    name = None\n", "name is None; a plain word is"),
    "the name of a family of ours": (
        MINE + "    name = 'swin'\n",
        "name 'swin' is that of a family of paretovit",
    ),
    "a name that a config uses": (MINE + "    name = 'preset'\n", "name 'preset' has another meaning"),
    "conditions that are a list": (MINE + "    conditions = []\n", "conditions is [], no mapping; {} is one"),
    "a condition that is no pair": (
        MINE + "    conditions = {'kernel': True}\n",
        "conditions: 'kernel': True is no (dimension, (value, ...))",
    ),
    "a condition about nothing": (
        MINE + "    conditions = {'heads': ('gated', (True,))}\n",
        "conditions: 'heads' is none of its dimensions: patch_size, width",
    ),
    "a condition on what comes later": (
        MINE + "    conditions = {'width': ('gated', (True,))}\n",
        "conditions: width: limits(task) has no 'gated' in front of it",
    ),
    "limits that raise": (
        MINE + "    def limits(self, task): raise KeyError('x')\n",
        "limits(task) raises KeyError: 'x'",
    ),
    "limits of an error of their own": (
        MINE + "    class Odd(Exception): pass\n    def limits(self, task): raise self.Odd('odd')\n",
        "limits(task) raises Odd: odd",
    ),
    "limits that are none": (
        MINE + "    def limits(self, task): return {}\n",
        "limits(task) names no dimension",
    ),
    "limits that are a number": (
        MINE + "    def limits(self, task): return 3\n",
        "limits(task) gives 3, no mapping",
    ),
    "a list for a domain": (
        MINE + with_limits("[8, 16]"),
        "limits(task): width: [8, 16] is none of spaces.dims.Choice",
    ),
    "a choice of a list": (
        MINE + with_limits("Choice([8, 16])"),
        "width: Choice needs a tuple of values, not [8, 16]",
    ),
    "a choice twice": (MINE + with_limits("Choice((8, 8))"), "width: Choice: (8, 8) has a value twice"),
    "a choice of 1 and true": (MINE + with_limits("Choice((1, True))"), "has a value twice"),
    "a choice of lists": (
        MINE + with_limits("Choice(([8], [16]))"),
        "width: Choice: [8] is no str, int, float or bool",
    ),
    "a choice of nan": (MINE + with_limits("Choice((float('nan'),))"), "width: Choice: nan is no str"),
    "a range of fractions": (MINE + with_limits("IntRange(8, 16.0)"), "low, high and step need to be int"),
    "a range of no step": (MINE + with_limits("IntRange(8, 16, 0)"), "needs a positive step"),
    "a range the wrong way": (
        MINE + with_limits("IntRange(16, 8)"),
        "needs a positive step, and low not above high",
    ),
    "a range that misses its end": (
        MINE + with_limits("IntRange(8, 16, 3)"),
        "high is no whole number of steps above low",
    ),
    "a range of whole floats": (
        MINE + with_limits("FloatRange(1, 2, 1)"),
        "low, high and step need to be float",
    ),
    "a huge range": (MINE + with_limits("IntRange(1, 10**12)"), "has over 10,000 values"),
    "a dimension with a dot": (
        MINE + with_limits("Choice((1,))", "stage.width"),
        "limits(task): 'stage.width' is no name of a dimension; a plain word is",
    ),
    "a dimension that is no text": (
        MINE + with_limits("Choice((1,))", 3),
        "limits(task): 3 is no name of a dimension",
    ),
    "ranges of another dimension": (
        MINE + "    def ranges(self, task): return {'heads': Choice((1,))}\n",
        "ranges(task): 'heads' is none of its dimensions",
    ),
    "ranges beyond the limits": (
        MINE + "    def ranges(self, task): return {'width': Choice((12,))}\n",
        "ranges(task): width: 12 is not legal; legal: 8 to 512 in steps of 8",
    ),
    "a grid of words": (
        MINE + "    def ranges(self, task): return {'patch_size': Grid('4', 16)}\n",
        "ranges(task): patch_size: Grid(low='4', high=16): low and high need to be whole numbers from 1",
    ),
    "a grid of what are no patches": (
        MINE + "    def ranges(self, task): return {'gated': Grid(4, 16)}\n",
        "ranges(task): gated: Grid(low=4, high=16) is for sizes of patches: whole numbers from 1; legal: false, true",
    ),
    "a grid that no image has": (
        MINE + "    def ranges(self, task): return {**super().ranges(task), 'patch_size': Grid(900, 901)}\n",
        "mine.patch_size: none cuts 8 px images into 900 to 901 patches a side; nearest image sizes that work: none",
    ),
    "a rule about a word": (
        MINE + with_rule("Rule('width', id)"),
        "rules(task): number 1: its keys are 'width', no tuple of dimensions",
    ),
    "a rule about a list": (MINE + with_rule("Rule(([],), id)"), "number 1: its keys are ([],), no tuple"),
    "a check without a reason": (
        MINE + with_rule("Rule(('width',), lambda values: '')"),
        "the check of rule 1 gives '': a reason against the values, or None",
    ),
    "a reason on many lines": (
        MINE + with_rule("Rule(('width',), lambda values: 'never ' + 'so\\n' * 900)"),
        "mine: no legal point for 8 px images: never so so",
    ),
    "rules that are none": (
        MINE + "    def rules(self, task): pass\n",
        "rules(task) gives None, no list; [] is one",
    ),
    "a rule that is none": (
        MINE + with_rule("'width'"),
        "rules(task): number 1 is 'width', not a spaces.dims.Rule",
    ),
    "a rule about nothing": (
        MINE + with_rule("Rule(('heads',), id)"),
        "number 1 is about 'heads', which is no dimension",
    ),
    "a check that raises": (
        MINE + with_rule("Rule(('width',), lambda values: values['heads'])"),
        "the check of rule 1 at {'width': 16} raises KeyError: 'heads'",
    ),
    "a check that says yes": (
        MINE + with_rule("Rule(('width',), lambda values: True)"),
        "the check of rule 1 gives True: a reason against the values, or None",
    ),
    "a rule that forbids everything": (
        MINE + with_rule("Rule(('width',), lambda values: 'never')"),
        "mine: no legal point for 8 px images: never",
    ),
    "a spec that raises": (MINE + with_spec("values['heads']"), "raises KeyError: 'heads'"),
    "a spec that is a dict": (
        MINE + with_spec("{'model': 'x'}"),
        "spec() gives {'model': 'x'}, not a spaces.spec.ArchSpec",
    ),
    "a spec that is not JSON": (
        MINE + with_spec("ArchSpec('own_mixer', {'x': object()}, 8)"),
        "raises TypeError: Object of type object is not JSON serializable",
    ),
    "a spec without a head": (
        MINE + with_spec("ArchSpec('own_mixer', dict(values), 8)"),
        "spec(): args need in_chans: 1, as the task says",
    ),
    "a spec of another image size": (
        MINE + with_spec(f"ArchSpec('own_mixer', {HEAD_ARGS}, 9)"),
        "spec(): image_size is 9, where the task says 8",
    ),
    "a spec with weights": (
        MINE + with_spec(f"ArchSpec('resnet18', {HEAD_ARGS}, 8, 'resnet18.a1_in1k')"),
        "spec() names weights, 'resnet18.a1_in1k'",
    ),
    "a spec of an unknown model": (
        MINE + with_spec(f"ArchSpec('no_such_model', {HEAD_ARGS}, 8)"),
        "is no entry point of timm; mine has to register it with timm.models.register_model",
    ),
    "a spec of arguments that do not fit": (
        MINE + with_spec(f"ArchSpec('own_mixer', {HEAD_ARGS}, 8)"),
        "it does not run on 8 px images: own_mixer() missing 6 required keyword-only arguments",
    ),
    "a closed form that is a dict": (
        MINE + "    def analyse(self, spec): return {'params': 1}\n",
        "analyse(spec) gives {'params': 1}, not a spaces.costs.Analysis",
    ),
    "a closed form that miscounts parameters": (
        MINE
        + "    def analyse(self, spec): return super().analyse(ArchSpec(spec.model, spec.args | {'depth': 9}, 8))\n",
        "and the network has",
    ),
    "a closed form that miscounts FLOPs": (
        MINE + "    def analyse(self, spec): return super().analyse(ArchSpec(spec.model, spec.args, 16))\n",
        "FLOPs, and torch's counter",
    ),
}
KEYS = {
    "a dimension that there is not": (
        "  mine: {depht: [1]}\n",
        ":6: space.mine: unknown name 'depht'; nearest: depth",
    ),
    "a value that is not legal": (
        "  mine: {depth: [99]}\n",
        ":6: space.mine.depth: 99 is not legal; legal: 1 to 32",
    ),
    "dimensions under the class": (
        "  'mine:Mine': {depth: [1]}\n",
        ":6: space.mine:Mine: its dimensions go under its name: mine",
    ),
    "a name that is near": ("  mime: {depth: [1]}\n", ":6: space.mime: unknown key or family; nearest: mine"),
}


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PARETOVIT_DB", raising=False)
    monkeypatch.setenv("PARETOVIT_PLUGINS", "")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))
    (tmp_path / "modules").mkdir()
    yield
    sys.modules.pop("mine", None)


def written(module: str, config: str = CONFIG) -> None:
    Path("modules/mine.py").write_text(module)
    Path("search.yaml").write_text(config)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a command says as it refuses; it must be a line or two, and nothing may be written."""
    before = sorted(path for path in Path().rglob("*") if "__pycache__" not in path.parts)
    code = main(list(arguments))
    out, err = capsys.readouterr()
    assert (code, out) == (2, ""), err
    assert len(err.splitlines()) == 1, err
    assert sorted(path for path in Path().rglob("*") if "__pycache__" not in path.parts) == before
    return err


def plan_of(monkeypatch: pytest.MonkeyPatch, module: str, **sections: Any) -> Plan:
    monkeypatch.setenv("PARETOVIT_PLUGINS", "mine")
    written(module)
    config = from_dict(
        {
            "name": "hunt",
            "data": {"source": "digits"},
            "baselines": {},
            "space": {"families": ["mine:Mine"], **sections},
        }
    )
    return make_plan(config, summarise(config.data), own=own_families.named(config))


@pytest.mark.parametrize("module, says", MISTAKES.values(), ids=list(MISTAKES))
def test_a_mistake_in_a_family_is_one_line_at_the_key_that_names_it(
    module: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    written(module)
    err = refused(capsys, "--plugin", "mine", "validate", "search.yaml")
    assert says in err
    assert err.startswith(
        "paretovit: --plugin: " if "cannot be imported" in says else "paretovit: search.yaml:4: space."
    )


@pytest.mark.parametrize("command", ["validate", "run"])
@pytest.mark.parametrize("lines, says", KEYS.values(), ids=list(KEYS))
def test_a_mistake_in_the_dimensions_of_a_family_names_their_line(
    command: str, lines: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    written(MINE, HEAD + "space:\n  families: [mine:Mine]\n" + lines)
    err = refused(capsys, "--plugin", "mine", command, "search.yaml")
    assert says in err


@pytest.mark.parametrize("command", ["validate", "run"])
@pytest.mark.parametrize("allowed", [(), ("--plugin", "own_family")])
def test_a_config_never_makes_a_module_be_imported_that_was_not_allowed(
    command: str, allowed: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    written("open('imported', 'w')\n")
    err = refused(capsys, *allowed, command, "search.yaml")
    assert "space.families: mine:Mine: its module was not allowed" in err
    assert "paretovit --plugin mine ..." in err
    assert "mine" not in sys.modules
    assert not Path("imported").exists()


def test_a_database_never_makes_a_module_be_imported(capsys: pytest.CaptureFixture[str]) -> None:
    from search.store.session import open_store
    from search.store.write import searches

    written("open('imported', 'w')\n")
    config = from_dict({"name": "hunt", "data": {"source": "digits"}, "space": {"families": ["mine:Mine"]}})
    store = open_store("paretovit.db", create=True)
    data = asdict(summarise(config.data)) | {"plugins": {"families": {"mine": "mine"}}}
    store.write(lambda s: searches.create(s, "hunt", config.to_dict(), data, "artifacts", None))
    store.close()
    assert main(["resume", "hunt"]) == 2
    assert "space.families: mine:Mine: its module was not allowed" in capsys.readouterr().err
    for command in (["status"], ["front", "hunt"], ["report", "hunt", "--to", "report.html"]):
        assert main(command) == 0
    assert not Path("imported").exists()


@pytest.mark.parametrize("families", ["[nowhere:Mine]", "[vit]"])
def test_a_module_that_is_not_there_is_named(families: str, capsys: pytest.CaptureFixture[str]) -> None:
    written(MINE, HEAD + f"space: {{families: {families}}}\n")
    err = refused(capsys, "--plugin", "nowhere", "run", "search.yaml")
    assert err == (
        "paretovit: --plugin: plugin 'nowhere' cannot be imported: No module named 'nowhere'; is it on PYTHONPATH?\n"
    )


@pytest.mark.parametrize("name", ["mine.Mine", "mine:", ":Mine", "mine:Mine()", "../mine:Mine", "mine:a.b"])
def test_what_is_no_module_and_class_is_no_family(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    written(MINE, HEAD + f"space: {{families: ['{name}']}}\n")
    err = refused(capsys, "--plugin", "mine", "validate", "search.yaml")
    assert f"space.families: unknown '{name}'" in err
    assert "module:Class" in err


def test_two_families_of_one_name_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    written(MINE + "class Other(Mine): pass\n", HEAD + "space: {families: [mine:Mine, mine:Other]}\n")
    err = refused(capsys, "--plugin", "mine", "validate", "search.yaml")
    assert "mine:Other: name 'mine' is that of mine:Mine too" in err


@pytest.mark.parametrize("key", ["objectives: [accuracy, flops]", "constraints: {flops: 1000000}"])
def test_flops_are_refused_where_a_family_does_not_know_them(
    key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    without = (
        "from own_family import Mixer\nclass Mine(Mixer):\n    name = 'mine'\n    analyse = property()\n"
    )
    written(without, CONFIG + key + "\n")
    err = refused(capsys, "--plugin", "mine", "validate", "search.yaml")
    assert "the FLOPs of mine are not known; give its class analyse(spec)" in err
    sys.modules.pop("mine")
    written(MINE, CONFIG + key + "\n")
    assert main(["--plugin", "mine", "validate", "search.yaml"]) == 0


def test_a_traceback_of_the_users_code_is_shown_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    written(MINE + with_spec("values['heads']"))
    with pytest.raises(UsageError) as found:
        main(["--debug", "--plugin", "mine", "validate", "search.yaml"])
    causes, error = "", found.value
    while error is not None:
        causes, error = causes + str(error), error.__cause__
    assert "modules/mine.py" in causes


def test_a_family_without_ranges_searches_all_that_is_legal(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(monkeypatch, MINE + "    ranges = property()\n")
    domains = {each.name: each.domain for each in plan.space.dimensions}
    assert len(domains["mine.width"].values) == 64
    assert domains["mine.kernel"] == Choice((3, 5, 7, 9)), "9 x 9 reaches beyond 4 x 4 patches, not 8 x 8"
    sys.modules.pop("mine")
    narrowed = plan_of(monkeypatch, MINE)
    assert {each.name: each.domain for each in narrowed.space.dimensions}["mine.patch_size"] == Choice((1, 2))


def test_image_sizes_are_searched_with_a_family_of_the_users_too(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (MINE, MINE + "    ranges = property()\n"):
        sys.modules.pop("mine", None)
        plan = plan_of(monkeypatch, module, image_size=[8, 12])
        own_families.try_out(plan)
        assert {spec.image_size for spec in own_families.drawn(plan, "mine")} == {8, 12}


def test_a_family_that_has_changed_since_the_search_began_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(monkeypatch, MINE)
    (spec, other, *_) = own_families.drawn(plan, "mine")
    before = own_families.brought(plan)
    point = {
        "family": "mine",
        **{f"mine.{k}": v for k, v in spec.args.items() if k not in ("in_chans", "num_classes")},
    }
    row: Any = SimpleNamespace(number=4, family="mine", point=point, digest=spec.digest)
    own_families.check_unchanged(plan, before, [row])
    other_row: Any = SimpleNamespace(**vars(row) | {"digest": other.digest})
    with pytest.raises(UserError, match="mine:Mine: it makes another network of #4, or none, since"):
        own_families.check_unchanged(plan, before, [other_row])
    sys.modules.pop("mine")
    changed = plan_of(monkeypatch, MINE + with_limits("Choice((8, 16))") + "    ranges = property()\n")
    with pytest.raises(UserError, match="mine:Mine: its dimensions have changed since the search began"):
        own_families.check_unchanged(changed, before, [])


def test_what_is_stored_says_what_to_import_and_only_where_something_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = own_families.brought(plan_of(monkeypatch, MINE))
    assert before.module("mine", "own_mixer") == "mine"
    assert before.module("vit", "vit_tiny_patch16_224") is None
    assert Brought.of(before.to_dict()) == before
    sys.modules.pop("mine")
    of_timm = with_spec("ArchSpec('resnet10t', {'in_chans': 1, 'num_classes': 10}, 8)")
    plan = plan_of(monkeypatch, MINE + of_timm + "    analyse = property()\n")
    assert own_families.brought(plan).module("mine", "resnet10t") is None
    assert own_families.brought(replace(plan, own={})).to_dict() == {}


def test_the_space_of_a_family_is_shown_with_what_is_known_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    shown = ["--plugin", "mine", "space", "tiny", "--families", "vit,mine:Mine", "--image-size", "8"]
    written(MINE)
    assert main([*shown, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["dimensions"][0]["values"] == ["vit", "mine"]
    assert "mine.kernel" in {each["name"] for each in found["dimensions"]}
    assert all(sample["flops"] > 0 for sample in found["samples"])
    sys.modules.pop("mine")
    written(MINE + "    analyse = property()\n")
    assert main([*shown[:-4], "--families", "mine:Mine", "--image-size", "8"]) == 0
    out = capsys.readouterr().out
    assert "FLOPs: not known" in out
    assert "median" in out.partition("FLOPs")[0]


@pytest.mark.parametrize(
    "allowed, module, says",
    [
        ((), MINE, "space: families: mine:Mine: its module was not allowed"),
        (("--plugin", "mine"), "1 / 0\n", "space: plugin 'mine' cannot be imported: ZeroDivisionError"),
        (("--plugin", "mine"), MINE + with_spec("{}"), "space: families: mine:Mine: spec() gives {}, not a"),
    ],
)
def test_a_space_that_cannot_be_shown_is_told_in_a_line(
    allowed: tuple[str, ...], module: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    written(module)
    assert says in refused(capsys, *allowed, "space", "tiny", "--families", "mine:Mine")
