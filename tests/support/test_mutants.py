"""The choice of mutants, and the report on them."""

from collections import Counter
from pathlib import Path

import pytest

from tests.support.mutants import PACKAGES, forget_old_files, line, modules, mutants, sample


def test_every_module_of_the_packages_is_chosen_unless_some_are_named() -> None:
    policy = Path("outbox/queue/state/policy.py")
    everything = modules([])
    assert policy in everything
    assert {"/".join(path.parts[:2]) for path in everything} == set(PACKAGES)
    assert modules([str(policy), "outbox/queue/state"]).count(policy) == 1


@pytest.mark.parametrize("path", ["gateway/rest", "outbox/queue/state/absent.py", "outbox"])
def test_other_paths_are_refused(path: str) -> None:
    with pytest.raises(SystemExit, match=f"{path} is not in outbox/queue"):
        modules([path])


def test_a_sample_is_the_same_for_the_same_seed() -> None:
    names = mutants(Path("outbox/queue/state/policy.py"))
    assert sample(names, 5, 1) == sample(names, 5, 1)
    assert len(set(sample(names, 5, 1))) == 5
    assert sample(names, 5, 1) != sample(names, 5, 2)
    assert sample(names, 0, 1) == sample(names, 10**6, 1) == names


def test_old_copies_of_changed_files_are_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in (".", "mutants"):
        for name in ("outbox/queue/log.py", "outbox/kept.py", "outbox/edited.py"):
            file = Path(folder, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(folder if name != "outbox/kept.py" else "")
    for name in ("tests/test_a.py", "outbox/queue/log.py.meta", "outbox/queue/gone.py"):
        Path("mutants", name).parent.mkdir(parents=True, exist_ok=True)
        Path("mutants", name).touch()
    forget_old_files()
    left = {path.relative_to("mutants").as_posix() for path in Path("mutants").rglob("*.*")}
    assert left == {"outbox/queue/log.py", "outbox/queue/log.py.meta", "outbox/kept.py"}


def test_changes_of_capitals_alone_are_left_out(tmp_path: Path) -> None:
    module = tmp_path / "cups.py"
    module.write_text("def name(row):\n    return row['name']\n")
    [changed] = mutants(module)
    assert changed.endswith("x_name__mutmut_1")


def test_a_score_counts_what_was_killed_or_survived() -> None:
    counts = Counter({"killed": 7, "timeout": 1, "survived": 2, "no tests": 3})
    assert line("here", counts) == "  80.0%      8 of 10     here (3 no tests)"
    assert line("here", Counter({"no tests": 1})).startswith("      -      0 of 0")
