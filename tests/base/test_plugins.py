"""Parts of one's own: found by file, module and entry point; what is wrong is one sentence."""

import re
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hpcgym.agent.shelf import load_agent
from hpcgym.base import plugins
from hpcgym.base.errors import HpcgymError, PolicyError, ScenarioError
from hpcgym.cli import app
from hpcgym.core import policy
from hpcgym.core.policy import as_policy, policy_names
from hpcgym.env.scenario.load import load_scenario, scenario_names
from hpcgym.evaluation.cross_validation import load_agent_or_trainer


def is_text(found):
    """Tell what these tests look for."""
    return isinstance(found, str)


def is_number(found):
    """Tell what these tests look for in the second place."""
    return isinstance(found, int)


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """An empty working directory; what is imported and read here is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    known = set(sys.modules)
    for cached in (plugins.offered, policy._offered):
        cached.cache_clear()
    yield tmp_path
    for cached in (plugins.offered, policy._offered):
        cached.cache_clear()
    for name in set(sys.modules) - known:
        if Path(getattr(sys.modules[name], "__file__", None) or "/").is_relative_to(tmp_path):
            del sys.modules[name]


@pytest.fixture
def package(place):
    """Return a function that installs a package: its module, and what it offers by group."""

    def install(name="demo", code="", **groups):
        site = place / "site"
        info = site / f"{name}-0.3.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.3\n")
        lines = [f"[hpcgym.{group}]\n{offers}\n" for group, offers in groups.items()]
        (info / "entry_points.txt").write_text("\n".join(lines))
        (site / f"{name}.py").write_text(code)
        if str(site) not in sys.path:
            sys.path.append(str(site))

    return install


@pytest.mark.parametrize("text", ["deep/my-part.py", "deep/my-part.py:TITLE"])
def test_part_of_a_file_is_found_and_the_file_may_import_its_neighbours(place, text):
    (place / "deep").mkdir()
    (place / "deep" / "words.py").write_text("WORD = 'word'")
    (place / "deep" / "my-part.py").write_text("from words import WORD as _\nTITLE = _ * 2")
    assert plugins.load_reference(text, "title", is_text) == ("TITLE", "wordword")


@pytest.mark.parametrize("text", ["books.titles:TITLE", "books.titles:Book.TITLE"])
def test_part_of_a_module_in_the_working_directory_is_found(place, text):
    (place / "books").mkdir()
    (place / "books" / "titles.py").write_text("class Book:\n    TITLE = 'b'\nTITLE = 'b'")
    assert plugins.load_reference(text, "title", is_text)[1] == "b"


def test_file_is_run_once(place):
    (place / "part.py").write_text("open('log', 'a').write('.')\nTITLE = 'x'")
    for _ in range(2):
        plugins.load_reference("part.py", "title", is_text)
    assert (place / "log").read_text() == "."


def test_first_kind_that_a_file_defines_is_meant(place):
    (place / "part.py").write_text("NUMBER = 3\nTITLE = 'x'")
    assert plugins.load_reference("part.py", "title", is_text, is_number)[0] == "TITLE"
    assert plugins.load_reference("part.py", "title", is_number, is_text)[0] == "NUMBER"


@pytest.mark.parametrize(
    ("code", "text", "message"),
    [
        ("", "none.py", "none.py: no such file"),
        ("", "none:Part", "no module called 'none' is installed or in the working directory"),
        ("TITLE = 'x'", "part.py:TITEL", r"part.py: unknown name 'TITEL'; did you mean 'TITLE'"),
        ("TITLE = 'x'", "part:TITEL", r"part: unknown name 'TITEL'; did you mean 'TITLE'"),
        ("NUMBER = 3", "part.py", "part.py defines no title, a text; it defines NUMBER"),
        ("NUMBER = 3", "part.py:NUMBER", "part.py:NUMBER is no title, a text; it is 3"),
        ("A = 'a'\nB = 'b'", "part.py", "more than one title: A, B; add .* as in part.py:A"),
        ("\nx = 1 / 0", "part.py", r"part.py cannot .*/part.py:2: ZeroDivisionError: division"),
        ("\nx = 1 / 0", "part:A", r"part cannot .*/part.py:2: ZeroDivisionError: division"),
        ("int('a')\n", "part.py", r"/part.py:1: ValueError: invalid literal"),
        ("def f(:", "part.py", r"/part.py:1: invalid syntax"),
        ("import nothing_here", "part.py", r"/part.py:1: ModuleNotFoundError: No module named"),
        ("import nothing_here", "part:A", r"/part.py:1: ModuleNotFoundError: No module named"),
        ("raise SystemExit('no\\nmore')", "part.py", r"/part.py:1: SystemExit: no more"),
        ("import sys\n\nimport neighbour", "part.py", r"/neighbour.py:1: NameError: name 'x'"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_sentence_with_its_place(place, code, text, message):
    (place / "part.py").write_text(code)
    (place / "neighbour.py").write_text("x")
    with pytest.raises(HpcgymError, match=message) as caught:
        plugins.load_reference(text, "title, a text", is_text)
    assert "\n" not in str(caught.value)


def test_file_under_the_name_of_another_module_is_refused(place):
    (place / "random.py").write_text("TITLE = 'x'")
    (place / "a.b.py").write_text("TITLE = 'x'")
    with pytest.raises(HpcgymError, match=r"imported as 'random', which is .*; rename the file"):
        plugins.load_reference("random.py", "title", is_text)
    with pytest.raises(HpcgymError, match=r"as 'a.b', which is no name of a module"):
        plugins.load_reference("a.b.py", "title", is_text)


def test_class_and_function_without_arguments_are_called_and_others_are_not():
    class Part:
        pass

    class Needy:
        def __init__(self, size):
            pass

    def broken():
        return {}["key"]

    assert isinstance(plugins.make(Part, "here"), Part)
    assert plugins.make(lambda: 3, "here") == 3
    assert plugins.make(is_text, "here") is is_text
    with pytest.raises(HpcgymError, match="here: Needy needs arguments; name a function"):
        plugins.make(Needy, "here")
    with pytest.raises(HpcgymError, match=r"here: cannot be made: .*py:\d+: KeyError: 'key'"):
        plugins.make(broken, "here")


def test_policy_of_a_package_is_known_by_its_name_in_any_case(package):
    before = policy_names()
    package(code="def wide(jobs):\n    return -jobs.q", policies="WIDE = demo:wide")
    assert as_policy("wide") is as_policy("wide")
    assert (as_policy("WIDE").name, as_policy("WIDE").source) == ("WIDE", "package demo 0.3")
    assert load_agent("Wide").policy.formula.__module__ == "demo"
    assert policy_names() == before  # else the actions of environments would change
    with pytest.raises(PolicyError, match="did you mean 'WIDE'"):
        as_policy("WIDDE")


def test_agent_of_a_package_has_the_name_that_it_is_offered_under(package):
    code = (
        "class Coin:\n    name = 'else'\n    env_keywords = {'action': 'job'}\n"
        "    def predict(self, *_): return 0, None"
    )
    package(code=code, agents="COIN = demo:Coin")
    for found in (load_agent("coin"), load_agent_or_trainer("coin")):
        assert (found.name, found.env_keywords) == ("COIN", {"action": "job"})


@pytest.mark.parametrize("code", ["PATH = {path!r}", "def PATH(): return {path!r}"])
def test_scenario_of_a_package_has_the_name_that_it_is_offered_under(package, place, code):
    (place / "file.toml").write_text(
        'description = "Mine."\n[trace]\nname = "tiny"\nmissing_request = "drop"\n'
        '[machine]\nprocessors = 4\nlargest_request_s = 120\n[episode]\nkind = "whole"\n'
    )
    package(code=code.format(path=str(place / "file.toml")), scenarios="demo-whole = demo:PATH")
    assert load_scenario("demo-whole").name == "demo-whole"
    assert "demo-whole" not in scenario_names()  # those of the shelf
    with pytest.raises(ScenarioError, match="did you mean 'demo-whole'"):
        load_scenario("demo-hole")


def test_broken_package_is_an_error_that_names_it(package):
    package(
        code="PART = 3",
        agents="A = nothing_here:A\nB = demo:B\nC = demo:PART",
        scenarios="S = demo:PART",
    )
    for name, message in {
        "a": "'A', which the package demo 0.3 offers as nothing_here:A, cannot be loaded: Mod",
        "b": "'B', which the package demo 0.3 offers as demo:B, cannot be loaded: AttributeError",
        "c": "C is no policy: allowed are",
    }.items():
        with pytest.raises(HpcgymError, match=re.escape(message)):
            load_agent(name)
    with pytest.raises(ScenarioError, match=r"'S' of demo 0.3 is no scenario: .* got 3"):
        load_scenario("S")


def test_name_that_two_packages_offer_is_refused_where_it_is_used(package):
    package("demo", agents="COIN = demo:Coin")
    package("other", agents="Coin = other:Coin")
    with pytest.raises(HpcgymError, match=r"offered by (demo|other) 0.3 and .*; uninstall one"):
        load_agent("coin")


def test_packages_are_asked_for_unknown_names_only(monkeypatch):
    def asked(**_):
        raise AssertionError

    monkeypatch.setattr("importlib.metadata.entry_points", asked)
    for known in ("SAF", "easy-sjbf", "e=1,wait=-0.5"):
        load_agent(known)
        load_agent_or_trainer(known)
    load_agent_or_trainer("weights")
    load_scenario("tiny")
    as_policy("DYNP")
    for words in (["--help"], ["agents", "info", "SAF"], ["scenarios", "info", "tiny"]):
        assert CliRunner().invoke(app, words).exit_code == 0
    with pytest.raises(AssertionError):
        load_agent("unknown")


POLICY = "def mine(jobs):\n    return jobs.speling\n"
AGENT = "\nclass Mine:\n    def predict(self, seen):\n        return 0, None\n"
NO_PAIR = AGENT.replace("seen", "*seen").replace("0, None", "0")


@pytest.mark.long
@pytest.mark.parametrize(
    ("code", "options", "message"),
    [
        (POLICY, [], "{place}/broken.py:2: AttributeError: "),
        (POLICY, ["--on", "local:2"], "{place}/broken.py:2: AttributeError: "),
        (AGENT, [], "{place}/broken.py:3: TypeError: Mine.predict() takes 2 "),
        (NO_PAIR, [], "agent Mine: predict must return an action and a state, got 0"),
    ],
    ids=["policy", "policy in another process", "arguments", "result"],
)
def test_what_a_part_does_wrong_while_it_runs_ends_a_command_in_one_line(
    place, code, options, message
):
    (place / "broken.py").write_text(code)
    command = ["evaluate", "--agents", "broken.py,FCFS", "--scenario", "tiny", *options]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 2
    last = result.stderr.splitlines()[-1]
    assert last.startswith(f"hpcgym: {message.format(place=place)}")
    assert "Traceback" not in result.stderr


def test_of_two_parts_of_one_name_the_one_loaded_last_is_at_fault(place):
    for name in ("first_of_two", "second_of_two"):
        path = place / f"{name}.py"
        path.write_text(AGENT)
        done = CliRunner().invoke(app, ["evaluate", "-s", "tiny", "-a", f"{path}:Mine"])
        assert done.exit_code == 2
        assert done.stderr.splitlines()[-1].startswith(f"hpcgym: {path}:3: TypeError: ")
