"""`v1a` of a real request, verified by libraries that are not ours, and without it when off."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path

import pytest

from outbox.database.transaction import Database, Tx
from outbox.ids import Ids
from outbox.sending import ed25519
from outbox.webhooks import resealing, signing_keys
from outbox.webhooks.key_files import add_key, read_key_file, write_key_file
from tests.architecture.tree import ROOT
from tests.support.drain import Got, add_webhook, drain, inbox, make, ring, rows
from tests.support.node import run_node
from tests.support.requirements import need
from tests.support.waiting import HANG_SECONDS

EXAMPLE = ROOT / "docs" / "examples" / "receivers" / "node" / "verify-public.mjs"
NODE = """
import { createPublicKey } from 'node:crypto';
const { verifyPublic } = await import(process.env.EXAMPLE);
let text = '';
for await (const part of process.stdin) text += part;
const { jwks, requests } = JSON.parse(text);
const keys = jwks.keys.map((jwk) => createPublicKey({ key: jwk, format: 'jwk' }));
const right = requests.map(
  ({ headers, body }) => verifyPublic(headers, Buffer.from(body, 'base64'), keys),
);
console.log(JSON.stringify(right));
""".replace("process.env.EXAMPLE", repr(EXAMPLE.as_uri()))
PHP = """<?php
['keys' => $keys, 'requests' => $requests] = json_decode(stream_get_contents(STDIN), true);
$right = [];
foreach ($requests as ['headers' => $headers, 'body' => $body]) {
    $content = "{$headers['webhook-id']}.{$headers['webhook-timestamp']}." . base64_decode($body);
    $found = false;
    foreach (explode(' ', $headers['webhook-signature']) as $one) {
        [$version, $signature] = explode(',', $one);
        if ($version !== 'v1a') continue;
        foreach ($keys as $key) {
            $public = base64_decode(substr($key, strlen('whpk_')));
            $found = $found || sodium_crypto_sign_verify_detached(
                base64_decode($signature), $content, $public);
        }
    }
    $right[] = $found;
}
echo json_encode($right);
"""


async def public_keys(db: Database) -> list[bytes]:
    return [key.public for key in await db.read(signing_keys.listed) if key.signs]


def as_json(publics: list[bytes], got: list[Got]) -> str:
    requests = [
        {"headers": each.headers, "body": base64.b64encode(each.body).decode()} for each in got
    ]
    return json.dumps(
        {
            "jwks": {"keys": [ed25519.jwk(public) for public in publics]},
            "keys": [ed25519.public_text(public) for public in publics], "requests": requests,
        }
    )  # fmt: skip


def by_node(publics: list[bytes], got: list[Got]) -> list[bool]:
    """What OpenSSL in Node says of each request, with the keys as a JWKS."""
    right: list[bool] = json.loads(run_node(NODE, stdin=as_json(publics, got)).stdout)
    return right


def by_php(publics: list[bytes], got: list[Got], folder: Path) -> list[bool]:
    """What libsodium in PHP says of each request, with the keys as Standard Webhooks has them."""
    program = folder / "verify.php"
    program.write_text(PHP)
    done = subprocess.run(
        [need("php"), str(program)], input=as_json(publics, got), capture_output=True, text=True,
        check=True, timeout=HANG_SECONDS,
    )  # fmt: skip
    right: list[bool] = json.loads(done.stdout)
    return right


def changed(got: Got) -> Got:
    return Got(got.path, got.headers, got.body + b" ")


def versions(got: Got) -> list[str]:
    return [one.partition(",")[0] for one in got.headers["webhook-signature"].split(" ")]


@pytest.mark.slow
async def test_two_outside_libraries_verify_v1a_and_refuse_a_changed_body(
    db: Database, tmp_path: Path
) -> None:
    keys = ring()
    await db.write(signing_keys.ensure, keys, Ids().token(ed25519.SEED_BYTES))
    async with inbox() as box, drain(db, keys) as running:
        await running.webhook(f"{box.url}/public", ed25519=True)
        await running.webhook(f"{box.url}/secret")
        for number in range(5):
            await db.write(make, f"record-{number}")
        got = await box.until(5, "/public")
        plain = await box.until(5, "/secret")
    assert {tuple(versions(each)) for each in got} == {("v1", "v1a")}
    assert {tuple(versions(each)) for each in plain} == {("v1",)}
    publics = await public_keys(db)
    forged = [changed(each) for each in got]
    other = [ed25519.public_of(b"o" * 32)]
    assert by_node(publics, got + forged) == [True] * 5 + [False] * 5
    assert by_php(publics, got + forged, tmp_path) == [True] * 5 + [False] * 5
    assert by_node(other, got) == by_php(other, got, tmp_path) == [False] * 5


@pytest.mark.slow
async def test_no_request_is_refused_while_a_key_is_replaced(db: Database, tmp_path: Path) -> None:
    """A receiver that has the old keys, and one that has the new ones, verify each request."""
    keys = ring()
    await db.write(signing_keys.ensure, keys, Ids().token(ed25519.SEED_BYTES))
    before = await public_keys(db)
    async with inbox() as box, drain(db, keys) as running:
        await running.webhook(box.url, ed25519=True)
        for number in range(30):
            await db.write(make, f"record-{number}")
            if number == 10:
                await db.write(signing_keys.rotate, keys, Ids().token(ed25519.SEED_BYTES))
            if number == 20:
                overlap = await public_keys(db)
                await box.until(20)
                during = len(box.got)
                await db.write(end_overlap)
                assert await db.write(signing_keys.expire, 10) == 1
        got = await box.until(30)
    after = await public_keys(db)
    assert (len(before), len(overlap), len(after)) == (1, 2, 1)
    assert overlap == [*after, *before]
    # The old keys are good until their end, also where they were fetched before the rotation.
    assert all(by_node(before, got[:during]))
    assert all(by_php(overlap, got, tmp_path))
    last = [each for each in got if versions(each) == ["v1", "v1a"]][-5:]
    assert by_node(after, last) == [True] * 5
    assert ["v1", "v1a", "v1a"] in [versions(each) for each in got]
    assert by_node(before, got[-1:]) == [False]


async def end_overlap(tx: Tx) -> None:
    await tx.run("update signing_keys set ends_at = $1 where ends_at is not null", tx.now - 1)


async def test_at_most_three_keys_sign_and_all_others_can_end_at_once(db: Database) -> None:
    keys, ids = ring(), Ids()
    await db.write(signing_keys.ensure, keys, ids.token(32))
    for _ in range(2):
        await db.write(signing_keys.rotate, keys, ids.token(32))
    with pytest.raises(signing_keys.TooManyKeys, match="3 keys sign already"):
        await db.write(signing_keys.rotate, keys, ids.token(32))
    made = await db.write(signing_keys.rotate, keys, ids.token(32), at_once=True)
    assert [key.id for key in await db.read(signing_keys.listed) if key.signs] == [made.id]
    # Their public halves stay, for checkpoints.
    assert len(await db.read(signing_keys.listed)) == 4


async def test_the_rotation_of_the_key_ring_encrypts_them_again(
    db: Database, tmp_path: Path
) -> None:
    file = tmp_path / "keys"
    write_key_file(file, Ids(), 1_760_000_000_000_000)
    await db.write(signing_keys.ensure, read_key_file(file, Ids()), Ids().token(32))
    add_key(file, Ids(), 1_760_000_001_000_000, staged=False)
    newer = read_key_file(file, Ids())
    assert await db.read(resealing.unfinished, newer)
    page = await db.write(resealing.reseal, newer, "", 10)
    assert (page.last, page.done, page.broken) == (None, 1, 0)
    assert not await db.read(resealing.unfinished, newer)
    [key] = await db.read(signing_keys.listed)
    assert key.sealed is not None
    assert not newer.stale(key.sealed)
    key.opened(newer)


async def test_without_a_key_that_opens_a_webhook_waits_and_others_go_on(db: Database) -> None:
    keys, lost = ring(), ring()
    await db.write(signing_keys.ensure, lost, Ids().token(32))
    async with inbox() as box, drain(db, keys) as running:
        waiting, _ = await add_webhook(db, keys, f"{box.url}/public", ed25519=True)
        await running.webhook(f"{box.url}/secret")
        await db.write(make, "record")
        await box.until(1, "/secret")
        await running.watch.until("unreadable")
        [row] = await db.read(rows, "select unreadable from webhooks where id = $1", waiting)
        assert "signing keys of the installation" in row["unreadable"]
        assert not [got for got in box.got if got.path == "/public"]
    assert await db.write(signing_keys.give_up, keys, Ids().token(32)) == 1
    current, ended = await db.read(signing_keys.listed)
    current.opened(keys)
    assert not ended.signs
