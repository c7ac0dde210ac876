"""Commands speak to people in the language of the locale, and to programs as ever."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gateway import texts
from gateway.cli import language
from gateway.cli.command_line import COMMANDS, GROUPS

PT = texts.own_keys("pt-BR")


@pytest.mark.parametrize(
    ("environment", "code"),
    [
        ({}, "en"), ({"LANG": "C.UTF-8"}, "en"), ({"LANG": "pt_BR.UTF-8"}, "pt-BR"),
        ({"LANG": "pt_PT.UTF-8"}, "pt-BR"), ({"LANG": "pt_BR", "LC_MESSAGES": "en_US"}, "en"),
        ({"LANG": "en_US", "LC_MESSAGES": "pt_BR"}, "pt-BR"),
        ({"LANG": "pt_BR", "LC_MESSAGES": "pt_BR", "LC_ALL": "C"}, "en"),
        ({"LANG": "pt_BR", "LC_ALL": ""}, "pt-BR"), ({"LANG": "ptolemy"}, "en"),
    ],
)  # fmt: skip
def test_the_language_of_a_locale(environment: dict[str, str], code: str) -> None:
    assert language.code(environment) == code


def test_every_command_has_a_summary_in_portuguese() -> None:
    words = [command.words.replace(" ", "_") for command in COMMANDS] + list(GROUPS)
    assert {word for word in words if f"command.{word}" not in PT} == set()
    known = {*words, "product", "example"}
    assert {key for key in PT if key.startswith("command.")} == {f"command.{one}" for one in known}


def carteiro(folder: Path, locale: str, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LC_ALL": locale, "PYTHONUTF8": "1"}
    return subprocess.run(
        [sys.executable, "-m", "gateway", *words], cwd=folder, env=environment, text=True,
        capture_output=True, check=False, timeout=60,
    )  # fmt: skip


def test_the_help_is_in_the_language_of_the_locale(tmp_path: Path) -> None:
    assert "Entregas" not in carteiro(tmp_path, "C.UTF-8", "--help").stdout
    portuguese = carteiro(tmp_path, "pt_BR.UTF-8", "--help").stdout
    assert "Executa a API, o console e a entrega de webhooks." in portuguese
    assert "Exemplo: carteiro serve" in portuguese
    assert "Run the API, the console" in carteiro(tmp_path, "C.UTF-8", "--help").stdout


def test_a_verdict_of_the_doctor_and_its_json(tmp_path: Path) -> None:
    target = "https://nowhere.invalid/hook"
    portuguese = carteiro(tmp_path, "pt_BR.UTF-8", "doctor", target).stdout
    assert "Uma entrega a este receptor falharia: " in portuguese
    assert (
        "A delivery to this receiver would fail: "
        in carteiro(tmp_path, "C.UTF-8", "doctor", target).stdout
    )
    english, other = (
        json.loads(carteiro(tmp_path, locale, "doctor", target, "--json").stdout)
        for locale in ("C.UTF-8", "pt_BR.UTF-8")
    )
    for record in (english, other):
        for step in record["steps"]:
            del step["micros"]
    assert english == other
