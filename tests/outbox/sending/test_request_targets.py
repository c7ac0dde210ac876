"""The URL of a webhook is requested byte for byte as its owner typed it."""

from __future__ import annotations

import pytest
from aiohttp import web

from outbox.database.transaction import Database
from outbox.sending.addresses import Rules, parse_place
from outbox.sending.request_targets import requested
from tests.support.drain import drain, inbox, make, ring, rows
from tests.support.receiver import Visit, hostile, receiver
from tests.support.senders import post, sender

AS_TYPED = [
    # Signed URLs: SAS of Azure, logic apps, pre-signed ones of S3 and GCS.
    "/c/b?sv=2022-11-02&sr=b&se=2030-01-01T00%3A00%3A00Z&sig=Zk%2F9h%2Bq%3D%3D",
    "/workflows/a1/triggers/manual/paths/invoke?sp=%2Ftriggers%2Fmanual%2Frun&sig=a%2Fb%2Bc%3D",
    "/k?X-Amz-Credential=AKIA%2F20261128%2Fsa-east-1%2Fs3%2Faws4_request&X-Amz-Signature=0f",
    # Each reserved character, encoded and plain, in path and query.
    "/%3A%40%21%24%26%27%28%29%2A%2B%2C%3B%3D%2F%3F%23%5B%5D?%3A%40%21%24%26%27%28%29%2A%2B%2C%3B",
    "/:@!$&'()*+,;=[]?:@!$&'()*+,;=/?[]", "/a%2fb%c3%a9%7e%41", "/~a-b_c.d",
    # Ends, empty parts, segments of dots, and encodings that are none.
    "/p?", "/p?&&=&", "/?", "//a///b//", "/a/./b/../c/..", "/../../etc", "/%2e%2e/%2E/x",
    "/a;v=1/b",
    "/100%?b=%zz%4", "/%00%0d%0aX:%201", "/a+b%20c?d+e%20f", "/?a[]=1&a[b][]=2",
    # What looks like another host.
    "/@10.0.0.5/", "/..//10.0.0.5/", "/http://10.0.0.5/", "/%5c@10.0.0.5?@10.0.0.5/",
]  # fmt: skip
ENCODED = {
    "/ação?nome=José": "/a%C3%A7%C3%A3o?nome=Jos%C3%A9",
    "/e\u0301": "/e%CC%81", "/\U0001f4e8": "/%F0%9F%93%A8", "/%C3%A7ç": "/%C3%A7%C3%A7",
    '/"<>^`{|}?"<>^`{|}': "/%22%3C%3E%5E%60%7B%7C%7D?%22%3C%3E%5E%60%7B%7C%7D",
    "": "/", "?x=%2F": "/?x=%2F", "?": "/?",
}  # fmt: skip


async def test_only_what_no_request_line_may_have_is_encoded() -> None:
    heads: list[bytes] = []

    async def keep(visit: Visit) -> None:
        heads.append(await visit.head())
        await visit.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")

    expected = {typed: typed for typed in AS_TYPED} | ENCODED
    hosts = {"hooks.example": "hooks.example", "bücher.example": "xn--bcher-kva.example"}
    names = {name: ["127.0.0.1"] for name in hosts.values()}
    async with hostile(keep) as there, sender(look_up=names.__getitem__) as http:
        port = there.url.rpartition(":")[2].partition("/")[0]
        for host, sent in hosts.items():
            for typed, target in expected.items():
                outcome = await post(http, f"http://{host}:{port}{typed}")
                assert outcome.outcome == "success", typed
                [start, name] = heads.pop().split(b"\r\n")[:2]
                assert start == f"POST {target} HTTP/1.1".encode(), typed
                assert name == f"Host: {sent}:{port}".encode(), typed
                if typed[:1] == "/":
                    url = f"http://{host}:{port}{typed}"
                    assert requested(url) == f"http://{sent}:{port}{target}"


@pytest.mark.slow
async def test_the_log_has_the_url_as_it_was_requested(db: Database) -> None:
    async def gone(_: web.Request) -> web.Response:
        return web.Response(status=410)

    async with inbox(answer=gone) as box, drain(db, ring()) as running:
        await running.webhook(f"{box.url}/a%2Fb/../ç?sig=x%2By%3D&a[]=1")
        await db.write(make, "r1")
        await running.watch.until("delivery_finished")
        [attempt] = await db.read(rows, "select url from attempts")
        assert attempt["url"] == f"{box.url}/a%2Fb/../%C3%A7?sig=x%2By%3D&a[]=1"
        assert box.got[0].path == attempt["url"].removeprefix(box.url)
        # The answer counts for the URL as it is stored.
        [webhook] = await db.read(rows, "select state, url from webhooks")
        assert (webhook["state"], webhook["url"][-9:]) == ("disabled", "%3D&a[]=1")


@pytest.mark.parametrize(
    "place",
    [
        "127.0.0.1:{p}/../", "127.0.0.1:{p}?@public.example/", "[::1]:{p}/", "[::1%25lo]:{p}/",
        "[::1%lo]:{p}/", "[fe80::1%25eth0]:{p}/", "[::ffff:7f00:1]:{p}/",
        "[::ffff:127.0.0.1]:{p}/", "[0:0:0:0:0:0:0:1]:{p}/", "[64:ff9b::7f00:1]:{p}/",
        "127.0.0.1:{p}\\@public.example/", "public.example\\@127.0.0.1:{p}/",
        "public.example@127.0.0.1:{p}/", "public.example%40127.0.0.1:{p}/",
        "public.example:80@127.0.0.1:{p}/", "127.0.0.1\t:{p}/", "127.0.0\n.1:{p}/",
        "127.0.0.1:{p}\r\nHost: public.example/", "%31%32%37.0.0.1:{p}/", "127.0.0.1%2f:{p}/",
        "127。0。0。1:{p}/", "①②⑦.0.0.1:{p}/", "0x7f.0.0.1:{p}/", "0177.0.0.1:{p}/",
        "2130706433:{p}/", "127.1:{p}/", "0:{p}/", "127.0.0.1.:{p}/", "localhost.:{p}/",
        "LOCALHOST:{p}/", "x.localhost:{p}/", "ⓛocalhost:{p}/", "localhost#@public.example/",
        "127.0.0.1:{p};@public.example/", "public.example&@127.0.0.1:{p}/", "@127.0.0.1:{p}/",
        "inside.example:{p}/%2e%2e/", "inside.example:{p}?", "public.example:{p}@inside.example/",
        "inside.example.:{p}/", "inside.example%00.public.example:{p}/", "[127.0.0.1]:{p}/",
        "[::]:{p}/", "0.0.0.0:{p}/", "[v1.::1]:{p}/", "127.0.0.1:0{p}/", "127.0.0.1:+{p}/",
    ],
)  # fmt: skip
async def test_no_spelling_of_a_url_reaches_a_private_address(place: str) -> None:
    names = {"inside.example": ["127.0.0.1"], "public.example": ["192.0.2.1"]}
    asked: list[str] = []

    def look_up(name: str) -> list[str]:
        asked.append(name)
        return names[name]

    only = Rules(allow_http=True, allow=(parse_place("192.0.2.1"),))
    async with receiver() as there, sender(only, look_up=look_up) as http:
        for slashes in ("//", "///", "/", "/\\", "\\\\"):
            url = f"http:{slashes}{place.format(p=there.url.rpartition(':')[2])}"
            outcome = await post(http, url)
            assert (outcome.outcome, outcome.address) == ("blocked", None), url
        assert there.requests == []
    assert set(asked) <= {"inside.example"}
