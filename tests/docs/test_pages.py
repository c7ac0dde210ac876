"""Every page: its commands run, its configurations are valid, its links and quotations hold."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from gateway import texts
from gateway.domain.webhooks import file_text
from gateway.server.config import load
from gateway.server.program import program_version
from outbox.sending.request import new_secret
from tests.architecture.tree import ROOT, files, modules
from tests.docs.pages import Block, blocks, names, text_of
from tests.docs.session import Session, agrees
from tests.support.operations import FOLDER as OPERATIONS
from tests.support.requirements import need

APART = (
    "README.md",
    "docs/tutorials/first-webhook.md",
    "docs/how-to/accept-payments.md",
    "docs/how-to/back-up.md",
    "docs/how-to/recover-events.md",
    "docs/how-to/upgrade.md",
    "docs/how-to/verify-signatures.md",
)
"""Pages whose commands other files of this folder run."""
NOTES = {
    "", "compose", "demo", "file", "new machine", "not run", "older", "prints", "step", "stopped",
    "terminal",
}  # fmt: skip
LANGUAGES = {"graphql", "ini", "json", "python", "sh", "step", "text", "toml"}
LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"")
QUOTED = re.compile(r"“([^”]+)”")
SHORTEST = 12
"""Letters that a message has of its own at least, and at least half of those of a quotation."""


def typed(page: str) -> list[Block]:
    """The commands of a page, and what they print."""
    return [
        block
        for block in blocks(page)
        if block.kind != "not run" and (block.language == "sh" or block.kind == "prints")
    ]


# Pages in Portuguese have the commands of the English ones.
TYPED = [page for page in names() if page not in APART and "/pt/" not in page and typed(page)]


def test_every_block_is_of_a_kind_that_the_tests_know() -> None:
    for page in names():
        text = text_of(page)
        examples = blocks(page)
        assert len(re.findall(r"^\s*```", text, re.M)) == 2 * len(
            [block for block in examples if block.kind != "step"]
        ), f"{page}: a block that the tests do not see"
        for block in examples:
            assert block.language in LANGUAGES, block
            assert block.kind in NOTES, f"{block}: {block.note}"
            if block.language == "python" and block.kind != "not run":
                assert block.kind == "file", f"{block} is not run"
                assert page in APART or "/pt/" in page, f"{block} is not run"


def test_every_graphql_document_is_one_that_the_tests_send() -> None:
    sent = {path.read_text("utf-8") for path in OPERATIONS.glob("*.graphql")}
    for page in names():
        for block in blocks(page):
            assert block.language != "graphql" or block.text in sent, block


@pytest.mark.proof
@pytest.mark.parametrize("page", TYPED)
def test_commands_print_what_the_page_tells(page: str, tmp_path: Path) -> None:
    need("curl")
    session = Session(tmp_path, activated=True)
    try:
        session.stay("server", "carteiro serve")
        session.terminals["server"][0].until("Carteiro 0.2.0 is ready;…")
        # A reader has followed the README.
        [first] = [
            block
            for block in blocks("README.md")
            if "user add" in block.text and block.language == "sh"
        ]
        session.run(first)
        for block in typed(page):
            if block.kind == "prints":
                session.prints(block)
            else:
                session.run(block)
    finally:
        session.close()


def test_output_that_differs_is_noticed() -> None:
    assert agrees('{"id": "…", "name": "Bruno", …}', '{"id":"1","name":"Bruno","x":[1, 2]}\n')
    assert not agrees('{"id": "…", "name": "Bruno"}', '{"id":"1","name":"Ana"}')
    assert not agrees('{"name": "Bruno"}', '{"name":"Bruno","x":1}')
    assert agrees("01a201ef0331ab7096d2b54f\ncrt_…", "01a201ef0331ab7096d2ffff\ncrt_Ab-c_9")
    assert not agrees("done", "done\nand more")


def test_configurations_are_valid(tmp_path: Path) -> None:
    settings = [block for page in names() for block in blocks(page) if block.language == "toml"]
    assert settings
    for block in settings:
        if block.text.startswith("[[webhook]]"):
            assert file_text.read(block.text, lambda *_: new_secret(b"s" * 32))
            continue
        file = tmp_path / "config.toml"
        file.write_text(block.text)
        load(file, {})


def test_json_is_json() -> None:
    for page in names():
        for block in blocks(page):
            if block.language == "json":
                whole = re.sub(r", …|…, |…", lambda m: "" if m[0] != "…" else "x", block.text)
                json.loads(re.sub(r":\s*x\b", ": 0", whole))


def anchors(page: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", text_of(page), flags=re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_lead_somewhere() -> None:
    lost = []
    for page in names():
        for match in LINK.finditer(text_of(page)):
            target = match[1] or match[2]
            path, _, anchor = target.partition("#")
            if path.startswith("https://"):
                continue
            file = ((ROOT / page).parent / path if path else ROOT / page).resolve()
            holds = file.exists() and (
                not anchor or anchor in anchors(file.relative_to(ROOT).as_posix())
            )
            if not holds:
                lost.append(f"{page}: {target}")
    assert lost == []


def test_paths_of_the_code_exist() -> None:
    lines = [
        (page, path)
        for page in names()
        for path in re.findall(r"`((?:gateway|outbox|tests)/[\w/.]+)`", text_of(page))
    ]
    assert len(lines) >= 20
    assert [(page, path) for page, path in lines if not (ROOT / path).exists()] == []
    # A name without its folder is one of a file somewhere.
    there = {path.name for path in files()}
    short = [
        (page, path.rpartition("/")[2])
        for page in names()
        for path in re.findall(r"`([\w/]+\.py)`", text_of(page))
    ]
    assert len(short) >= 20
    assert [(page, name) for page, name in short if name not in there] == []


def literals(tree: ast.AST) -> Iterator[str]:
    """The strings of a module as patterns, with `.*` where a value is filled in."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [
                re.escape(part.value)
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
                else ".*"
                for part in node.values
            ]
            yield "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield re.sub(r"\\\{\w*\\\}", ".*", re.escape(node.value))


def letters(text: str) -> int:
    """How many letters a text or a pattern has."""
    return len(re.sub(r"\\.|\W", "", text))


@cache
def messages() -> tuple[re.Pattern[str], ...]:
    """Every string and every text of the product that is long enough to be a message."""
    strings = [
        pattern for path in modules() for pattern in literals(ast.parse((ROOT / path).read_text()))
    ]
    strings += [
        re.sub(r"\\\{\w*\\\}", ".*", re.escape(form))
        for code in texts.CODES
        for forms in texts.of(code).forms.values()
        for form in forms
    ]
    anchors = {pattern for pattern in strings if letters(pattern) >= SHORTEST}
    return tuple(re.compile(pattern, re.DOTALL) for pattern in anchors)


def said(quotation: str) -> bool:
    """Whether the product has this message; … at the end or inside stands for anything."""
    return any(
        pattern.fullmatch(quotation) and 2 * letters(pattern.pattern) >= letters(quotation)
        for pattern in messages()
    )


@pytest.mark.slow
def test_quotations_are_messages_of_the_code() -> None:
    quotations = [(page, quoted) for page in names() for quoted in QUOTED.findall(text_of(page))]
    quotations = [(page, quoted) for page, quoted in quotations if quoted != "…"]
    assert len(quotations) >= 10
    assert [(page, quoted) for page, quoted in quotations if not said(quoted)] == []
    # A reworded one is noticed.
    assert said("API key revoked.")
    assert not said("API key deleted.")
    assert not said("deliveries to that address are not allowed")
    assert not said("this address")


def test_the_index_links_every_page() -> None:
    index = text_of("docs/index.md")
    linked = {(ROOT / "docs" / path).resolve() for path in re.findall(r"\]\(([^)#]+\.md)", index)}
    pages = {ROOT / page for page in names() if page.startswith("docs/")} - {ROOT / "docs/index.md"}
    apart = {page for page in pages if "examples" in page.parts and page.parent.name != "examples"}
    assert sorted(pages - apart - linked) == []


def test_the_changelog_has_the_version() -> None:
    lines = (ROOT / "CHANGELOG.md").read_text().splitlines()
    headings = [line for line in lines if line.startswith("## ")]
    dated = next(line for line in headings if line != "## [Unreleased]")
    assert headings[0] == "## [Unreleased]" or dated.startswith(f"## [{program_version()}] - ")
