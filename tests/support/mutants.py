"""`make mutants`: change the code in small ways, and count the changes that tests notice.

mutmut makes the changes (mutants) and runs the tests that enter the changed function, on SQLite and
without the slow ones; `[tool.mutmut]` in pyproject.toml has its settings. A mutant that no test
notices has survived. The score of a module is killed / (killed + survived); one that a test has to
stop is killed. Without --sample each mutant of the modules is tried, and a later run goes on.

mutmut turns a mutant on in a process that has imported all modules and run all tests once. It takes
mutants for survivors in functions that make declarations, or that are behind a cache, since they do
not run again; mutmut saw few tests enter such a function. These get a fresh process each.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mutmut.mutation.file_mutation import mutate_file_contents
from mutmut.stats import status_by_exit_code
from mutmut.utils.format_utils import get_mutant_name, mangled_name_from_mutant_name

PACKAGES = ("outbox/queue", "outbox/sending", "gateway/records")
FOLDER = Path("mutants")
LOG = FOLDER / "run.log"
KILLED = ("killed", "timeout", "segfault")
JUDGED = (*KILLED, "survived")
FRESH_TESTS = (
    "tests/gateway/rest/test_openapi.py", "tests/gateway/domain/test_catalogue.py",
    "tests/gateway/records", "tests/conformance",
)  # fmt: skip
"""What a fresh process runs."""
FRESH_SECONDS = 900
FEW = 50
"""So many tests enter a function at most whose survivors get a fresh process."""


def modules(chosen: Sequence[str]) -> list[Path]:
    """Return the modules that the paths name, each once. Raise SystemExit for one that is none."""
    listed: dict[Path, None] = {}
    for path in map(Path, chosen or PACKAGES):
        files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
        if not any(path.is_relative_to(package) for package in PACKAGES) or not path.exists():
            raise SystemExit(f"{path} is not in {', '.join(PACKAGES)}")
        listed |= dict.fromkeys(files)
    return list(listed)


def mutants(module: Path) -> list[str]:
    """Return the names of all mutants of a module.

    Those that differ in capitals alone are left out: to SQLite they are the same column or keyword.
    """
    made = mutate_file_contents(str(module), module.read_text())
    lines = made.code.splitlines()

    def text(name: str) -> str:
        span = made.line_span_by_function_name[name]
        return "\n".join(lines[span.start - 1 : span.end]).replace(name, "").casefold()

    return [
        get_mutant_name(module, name)
        for name in made.mutant_names
        if text(name) != text(f"{name.rpartition('_')[0]}_orig")
    ]


def sample(names: list[str], size: int, seed: int) -> list[str]:
    """Return up to `size` of the names, the same ones for the same seed; all for 0."""
    if not size or size >= len(names):
        return names
    return sorted(random.Random(f"{seed} {names[0]}").sample(names, size))


def forget_old_files() -> None:
    """Delete what mutmut would keep of an earlier run although its source has changed since.

    It makes the changed modules again itself, when their sources are newer.
    """
    shutil.rmtree(FOLDER / "tests", ignore_errors=True)
    for top in ("outbox", "gateway"):
        for copy in [path for path in (FOLDER / top).rglob("*.*") if path.is_file()]:
            source = copy.relative_to(FOLDER)
            changed = any(map(source.is_relative_to, PACKAGES))
            if changed and (source.exists() or copy.suffix != ".py"):
                continue
            if not source.exists() or copy.read_bytes() != source.read_bytes():
                copy.unlink()


def run(names: list[str], children: int) -> None:
    """Let mutmut try the mutants. Raise SystemExit with the end of its log when it fails."""
    FOLDER.mkdir(exist_ok=True)
    forget_old_files()
    # By the same interpreter, since its folder need not be in PATH.
    command = [sys.executable, "-c", "from mutmut.__main__ import cli; cli(prog_name='mutmut')"]
    with LOG.open("w") as log:
        ended = subprocess.run(
            [*command, "run", "--max-children", str(children), *names],
            stdout=log, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
    if ended.returncode:
        raise SystemExit(f"mutmut failed; the end of {LOG}:\n{LOG.read_text()[-2000:]}")


def statuses(module: Path, names: Sequence[str]) -> dict[str, str]:
    """Return what became of each mutant that was tried, as mutmut calls it."""
    codes = json.loads((FOLDER / f"{module}.meta").read_text())["exit_code_by_key"]
    return {name: status_by_exit_code[codes[name]] for name in names if codes[name] is not None}


def passes(tests: Sequence[str], mutant: str) -> bool:
    """Return whether tests pass in a process that has the mutant from its beginning on."""
    try:
        ended = subprocess.run(
            [sys.executable, *tests], cwd=FOLDER, capture_output=True, check=False,
            timeout=FRESH_SECONDS, env=os.environ | {"MUTANT_UNDER_TEST": mutant},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return False
    return ended.returncode == 0


def afresh(names: Sequence[str], children: int) -> dict[str, str]:
    """Try those of the mutants whose function few tests enter, each in a process of its own.

    Return what became of them. Raise SystemExit when the tests fail without a mutant.
    """
    stats = json.loads((FOLDER / "mutmut-stats.json").read_text())
    entered = stats["tests_by_mangled_function_name"]
    chosen = [
        name for name in names if len(entered.get(mangled_name_from_mutant_name(name), ())) <= FEW
    ]
    options = tomllib.loads(Path("pyproject.toml").read_text())["tool"]["mutmut"]
    tests = ["-m", "pytest", "-x", *options["pytest_add_cli_args"], *FRESH_TESTS]
    if chosen and not passes(tests, ""):
        raise SystemExit(f"without a mutant these tests fail in {FOLDER}: {' '.join(FRESH_TESTS)}")
    with ThreadPoolExecutor(children) as threads:
        passed = list(threads.map(lambda name: passes(tests, name), chosen))
    return {name: "survived" if passed[place] else "killed" for place, name in enumerate(chosen)}


def line(title: str, counts: Counter[str]) -> str:
    """Return a line of the report: the score, and what it is made of."""
    killed = sum(counts[status] for status in KILLED)
    judged = sum(counts[status] for status in JUDGED)
    score = f"{killed / judged:7.1%}" if judged else "      -"
    rest = [f"{count} {status}" for status, count in counts.items() if status not in JUDGED]
    return f"{score}  {killed:>5} of {judged:<5}  {title}" + (
        f" ({', '.join(rest)})" if rest else ""
    )


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="make mutants")
    parser.add_argument("--sample", type=int, default=0, help="mutants of each module; 0 is all")
    parser.add_argument("--seed", type=int, default=1, help="another seed is another sample")
    parser.add_argument("--children", type=int, default=2, help="processes that run tests")
    parser.add_argument("--verbose", action="store_true", help="name those that survived")
    parser.add_argument("modules", nargs="*", help=f"files or folders in {', '.join(PACKAGES)}")
    options = parser.parse_args(arguments)
    chosen = {
        module: sample(names, options.sample, options.seed)
        for module in modules(options.modules)
        if (names := mutants(module))
    }
    whole = not options.sample and not options.modules
    print(f"{sum(map(len, chosen.values()))} mutants of {len(chosen)} modules; progress: {LOG}")
    # mutmut keeps the results of a run in which nobody chose, and tries chosen ones anew.
    run([] if whole else [name for names in chosen.values() for name in names], options.children)
    packages: defaultdict[str, Counter[str]] = defaultdict(Counter)
    survivors: list[str] = []
    results = {module: statuses(module, names) for module, names in chosen.items()}
    left = [
        name for ended in results.values() for name, status in ended.items() if status == "survived"
    ]
    fresh = afresh(left, options.children)
    for module, ended in results.items():
        ended |= {name: fresh[name] for name in ended.keys() & fresh.keys()}
        print(line(str(module), Counter(ended.values())))
        packages["/".join(module.parts[:2])].update(ended.values())
        survivors += [name for name, status in ended.items() if status in ("survived", "no tests")]
    for package, counts in packages.items():
        print(line(package, counts))
    if options.verbose:
        print("mutmut show NAME prints the change of a survivor:", *survivors, sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
