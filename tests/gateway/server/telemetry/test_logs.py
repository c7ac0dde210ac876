"""Log lines: one JSON object each, or text on a terminal, and never a reason to wait."""

import asyncio
import fcntl
import json
import logging
import os
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest
import structlog

from gateway.server.telemetry import logs
from gateway.server.telemetry.log_sink import PIECE, Sink
from outbox.clock import SystemClock
from tests.support.log_lines import Lines


def configure(level: logs.Level, **given: Any) -> None:
    logs.configure(level, clock=SystemClock(), node="n1", version="1.2", **given)


def test_the_fields_of_every_line_and_its_level(lines: Lines) -> None:
    logs.logger().info("request", status=200, request_id="r1")
    line = lines.last
    assert list(line)[:3] == ["ts", "level", "event"]
    assert (line["event"], line["level"], line["node"], line["version"]) == (
        "request", "info", "n1", "1.2",
    )  # fmt: skip
    assert (len(line["ts"]), line["ts"][-1]) == (24, "Z")
    assert (line["status"], line["request_id"]) == (200, "r1")
    logs.logger().debug("quiet")
    logging.getLogger("lib").debug("quiet")
    assert len(lines.raw) == 1
    logs.logger().warn("w")
    assert lines.last["level"] == "warning"
    assert logs.record_writer("served") is not None
    configure("warning", file=lines)
    assert logs.record_writer("served") is None


class Record(msgspec.Struct, omit_defaults=True):
    path: str
    actor: str | None = None


@pytest.mark.parametrize(
    "path", ["/a", "/\x9b\u2028ä", '/\ud800\x1b"\n', "/" + "x" * 100_000, "/" + "\x01" * 6_000]
)
@pytest.mark.parametrize("actor", [None, "a1"])
def test_a_record_makes_the_line_of_its_fields(lines: Lines, path: str, actor: str | None) -> None:
    fields = {"path": path} | ({} if actor is None else {"actor": actor})
    logs.logger().info("served", **fields)
    put = logs.record_writer("served")
    assert put is not None
    put(Record(path, actor), False)
    first, second = (json.loads(line) for line in lines.raw[-2:])
    assert list(first) == list(second)
    assert first | {"ts": ""} == second | {"ts": ""}
    assert lines.raw[-1].decode().rstrip("\n").isprintable()


def test_an_exception_is_a_field(lines: Lines) -> None:
    try:
        raise ValueError("inside")
    except ValueError as error:
        logs.logger().error("failed", exc_info=error)
        assert "ValueError: inside" in lines.last["traceback"]
        logs.logger().exception("failed")
        assert "ValueError: inside" in lines.last["traceback"]
        logging.getLogger("lib").exception("x")
        assert "ValueError: inside" in lines.last["traceback"]


def test_the_standard_librarys_logging_has_the_same_form(lines: Lines) -> None:
    logging.getLogger("lib").warning("a %s", "b", extra={"webhook_id": "w"})
    line = lines.last
    assert (line["event"], line["logger"], line["level"], line["webhook_id"]) == (
        "a b", "lib", "warning", "w",
    )  # fmt: skip
    unfit = {"name": "lib", "levelname": "ERROR", "msg": "%d", "args": ("no number",)}
    logs.Forward().emit(logging.makeLogRecord(unfit))
    assert "no number" in lines.last["event"]
    structlog.get_logger("outbox").info("attempt", delivery_id="d", node="other")
    assert lines.last["node"] == "other"


def test_a_long_line_into_a_nearly_full_pipe_costs_no_time() -> None:
    """A path of a request may be longer than what a writable pipe takes at once."""
    reader, writer = os.pipe()
    try:
        room = fcntl.fcntl(writer, fcntl.F_GETPIPE_SZ)
        os.write(writer, b"x" * (room - PIECE - 1) + b"\n")
        sink = Sink(writer)
        done = threading.Thread(target=sink.write, args=(b"y" * 8_000 + b"\n",), daemon=True)
        done.start()
        done.join(120)
        stuck = done.is_alive()
        os.read(reader, room)
        assert not stuck
        assert sink.dropped == 1
        sink.write(b"{}\n")
        *_, last = os.read(reader, room).splitlines()
        assert last == b"{}"
    finally:
        os.close(reader)
        os.close(writer)


def test_a_line_holds_no_character_that_a_terminal_obeys() -> None:
    said = "\x1b[2J\x9b2J\u202e\u2028\r\nä€"
    line = logs.line_of({"path": said})
    assert json.loads(line) == {"path": said}
    text = line.decode()
    assert "ä€" in text
    assert text.isprintable()


async def test_lines_of_one_turn_of_the_loop_go_out_together_and_whole() -> None:
    reader, writer = os.pipe()
    try:
        sink = Sink(writer)
        lines = [b"x" * size + b"\n" for size in (10, 3_000, 3_000, 9_000, 20)]
        for line in lines:
            sink.write(line)
        await asyncio.sleep(0)
        assert os.read(reader, 65_536) == b"".join(lines)
    finally:
        os.close(reader)
        os.close(writer)


@pytest.mark.usefixtures("lines")
def test_a_line_to_a_file_is_there_at_once_and_a_record_when_asked(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as file:
        sink = Sink(file.fileno())
        sink.write(b'{"path":"first"}\n')
        assert (tmp_path / "log").read_bytes() == b'{"path":"first"}\n'
        configure("info", file=sink)
        put = logs.record_writer("served")
        assert put is not None

        async def served() -> list[bytes]:
            found = []
            for path, at_once in (("/a", False), ("/b", True)):
                put(Record(path), at_once)
                found.append((tmp_path / "log").read_bytes())
            return found

        before, after = asyncio.run(served())
    assert before.count(b"\n") == 1
    assert [json.loads(line)["path"] for line in after.splitlines()] == ["first", "/a", "/b"]


def test_a_full_disk_costs_lines_and_no_error() -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        sink = Sink(full)
        for _ in range(3):
            sink.write(b"{}\n")
        assert sink.dropped == 3
    finally:
        os.close(full)


@pytest.mark.usefixtures("lines")
@pytest.mark.parametrize("form", ["auto", "json", "text"])
def test_a_terminal_gets_text_and_a_file_json_unless_told_otherwise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, form: logs.Form
) -> None:
    ours, theirs = os.openpty()
    with os.fdopen(theirs, "w") as terminal, (tmp_path / "log").open("w") as file:
        for output in (terminal, file):
            monkeypatch.setattr("sys.stderr", output)
            configure("info", form=form)
            logs.logger().warning("slow_place", path="/a", who="Ana Lima", times=3)
        shown = os.read(ours, PIECE).decode().strip()
        os.close(ours)
    text = 'Z warning slow_place path=/a who="Ana Lima" times=3'
    for line, readable in (
        (shown, form != "json"), ((tmp_path / "log").read_text().strip(), form == "text"),
    ):  # fmt: skip
        assert line[12:] == text if readable else json.loads(line)["node"] == "n1"


@pytest.mark.usefixtures("lines")
def test_text_is_inert_on_a_terminal(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as file:
        configure("info", file=Sink(file.fileno(), logs.of))
        try:
            raise ValueError("two\nlines \x1b[31m")
        except ValueError as error:
            logs.logger().error("failed", exc_info=error, path="/\x1b[2J\x9b\u202e\x7f\n=")
    [head, *traceback] = (tmp_path / "log").read_text().splitlines()
    assert head.endswith(r'error   failed path="/\u001b[2J\u009b\u202e\u007f\n="')
    assert traceback[0].startswith("Traceback")
    assert traceback[-1] == r"lines \u001b[31m"
