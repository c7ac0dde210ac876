"""`make mutants`: change the code in small ways, and count the changes that tests notice.

mutmut makes the changes (mutants) and runs the tests that enter the changed function, on SQLite and
without the slow ones; `[tool.mutmut]` in pyproject.toml has its settings. A mutant that no test
notices has survived. The score of a module is killed / (killed + survived); one that a test has to
stop is killed. Without --sample each mutant of the modules is tried, and a later run goes on.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from mutmut.mutation.file_mutation import mutate_file_contents
from mutmut.stats import status_by_exit_code
from mutmut.utils.format_utils import get_mutant_name

PACKAGES = ("outbox/queue", "outbox/sending", "gateway/records")
FOLDER = Path("mutants")
LOG = FOLDER / "run.log"
KILLED = ("killed", "timeout", "segfault")
JUDGED = (*KILLED, "survived")


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


def run(names: list[str], children: int) -> None:
    """Let mutmut try the mutants. Raise SystemExit with the end of its log when it fails."""
    FOLDER.mkdir(exist_ok=True)
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
    for module, names in chosen.items():
        ended = statuses(module, names)
        print(line(str(module), Counter(ended.values())))
        packages["/".join(module.parts[:2])].update(ended.values())
        survivors += [name for name, status in ended.items() if status in ("survived", "no tests")]
    for package, counts in packages.items():
        print(line(package, counts))
    if options.verbose:
        print("mutmut show NAME prints the change of a survivor:", *survivors, sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
