"""Images of products over HTTP: what people send, what is stored, served and removed."""

from __future__ import annotations

import asyncio
import io
import struct
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from PIL import Image, ImageCms

from gateway.domain.images import encoding, uploads
from gateway.server.config import Config, Images, Server
from gateway.server.images.images import IMAGES
from outbox.database.transaction import Database, Tx
from tests.support.document import answer_faults
from tests.support.rest import UNLIMITED, Person, Reply, RestApi
from tests.support.site import serving

BASE = "https://crm.example.com"
RED, BLUE = (254, 0, 0), (0, 0, 254)


def drawn(size: tuple[int, int] = (60, 40), mode: str = "RGB") -> Image.Image:
    """Return a picture that is red on the left and blue on the right."""
    image = Image.new("RGB", size, "blue")
    image.paste("red", (0, 0, size[0] // 2, size[1]))
    return image.convert(mode)


def file_of(image: Image.Image, kind: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def located() -> bytes:
    """Return the EXIF data of a phone that lay on its side, with a place."""
    exif = Image.Exif()
    exif[0x0112] = 6
    exif[0x010F] = "Phone"
    exif.get_ifd(0x8825)[2] = (23.0, 33.0, 1.0)
    return exif.tobytes()


def two_pictures() -> bytes:
    """Return a photo as phones write it: a second picture stands behind the first (MPO)."""
    return file_of(drawn(), "MPO", save_all=True, append_images=[drawn((20, 20))])


def transparent() -> Image.Image:
    image = drawn(mode="RGBA")
    image.putalpha(Image.linear_gradient("L").resize(image.size))
    return image


def animated() -> bytes:
    return file_of(drawn(), "GIF", save_all=True, append_images=[Image.new("RGB", (60, 40))])


def heic() -> bytes:
    brands = b"ftypheic" + b"\0\0\0\0" + b"mif1heic"
    return struct.pack(">I", len(brands) + 4) + brands + b"\0" * 400


def with_scans(scans: int) -> bytes:
    """Return a progressive JPEG with its last scan once more, up to `scans` of them."""
    file = file_of(drawn(), "JPEG", progressive=True)
    last = file[file.rindex(SCAN) : -2]
    return file[:-2] + last * (scans - file.count(SCAN)) + file[-2:]


SCAN = b"\xff\xda"
FILM = b"\0\0\0\x18ftypmp42" + SCAN * 300
HTML = b"<html><script>alert(1)</script></html>"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>'
P3 = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
TAKEN: dict[str, tuple[Callable[[], bytes], str, tuple[int, int]]] = {
    "jpeg": (lambda: file_of(drawn(), "JPEG"), "jpg", (60, 40)),
    "progressive": (lambda: file_of(drawn(), "JPEG", progressive=True), "jpg", (60, 40)),
    "100 scans": (lambda: with_scans(100), "jpg", (60, 40)),
    "a film behind": (lambda: file_of(drawn(), "JPEG") + FILM, "jpg", (60, 40)),
    "a comment of scans": (lambda: file_of(drawn(), "JPEG", comment=FILM), "jpg", (60, 40)),
    "restarts": (lambda: file_of(drawn(), "JPEG", restart_marker_blocks=1), "jpg", (60, 40)),
    "turned by EXIF": (lambda: file_of(drawn(), "JPEG", exif=located()), "jpg", (40, 60)),
    "turned WebP": (lambda: file_of(drawn(), "WEBP", exif=located()), "jpg", (40, 60)),
    "CMYK": (lambda: file_of(drawn(mode="CMYK"), "JPEG"), "jpg", (60, 40)),
    "damaged EXIF": (lambda: file_of(drawn(), "WEBP", exif=b"Exif\0\0x"), "jpg", (60, 40)),
    "with a comment": (lambda: file_of(drawn(), "JPEG", comment=b"at home"), "jpg", (60, 40)),
    "two pictures": (two_pictures, "jpg", (60, 40)),
    "with a profile": (lambda: file_of(drawn(), "JPEG", icc_profile=P3), "jpg", (60, 40)),
    "broken profile": (lambda: file_of(drawn(), "JPEG", icc_profile=b"x" * 99), "jpg", (60, 40)),
    "png": (lambda: file_of(drawn(), "PNG"), "jpg", (60, 40)),
    "palette": (lambda: file_of(drawn(mode="P"), "PNG"), "jpg", (60, 40)),
    "transparent": (lambda: file_of(transparent(), "PNG"), "webp", (60, 40)),
    "opaque with alpha": (lambda: file_of(drawn(mode="RGBA"), "PNG"), "jpg", (60, 40)),
    "webp": (lambda: file_of(drawn(), "WEBP", lossless=True), "jpg", (60, 40)),
    "avif": (lambda: file_of(drawn(), "AVIF"), "jpg", (60, 40)),
    "animation": (animated, "jpg", (60, 40)),
    "50 megapixels": (lambda: file_of(drawn((8160, 6120)), "JPEG"), "jpg", (2048, 1536)),
    "HTML behind": (lambda: file_of(drawn(), "PNG") + HTML, "jpg", (60, 40)),
}
REFUSED: dict[str, tuple[Callable[[], bytes], str]] = {
    "HEIC": (heic, "heic_image"),
    "SVG": (lambda: SVG, "unknown_image"),
    "HTML with the mark of a GIF": (lambda: b"GIF89a" + HTML, "unknown_image"),
    "cut off": (lambda: file_of(drawn((400, 400)), "JPEG", quality=95)[:1500], "broken_image"),
    "bomb": (lambda: file_of(Image.new("1", (20_000, 20_000)), "PNG"), "too_many_pixels"),
    "scans": (lambda: with_scans(101), "too_many_pixels"),
    "TIFF": (lambda: file_of(drawn(), "TIFF"), "unknown_image"),
    "PDF": (lambda: b"%PDF-1.7\n%\xe2\xe3", "unknown_image"),
    "nothing": (lambda: b"", "empty_image"),
}


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return msgspec.structs.replace(
        UNLIMITED, images=Images(folder=str(tmp_path / "images")), server=Server(public_url=BASE)
    )


@pytest.fixture
async def shop(still: Database, config: Config) -> AsyncIterator[RestApi]:
    async with serving(still, config) as site:
        yield RestApi(site)


async def product(who: Person, **fields: Any) -> str:
    made = await who.post("/api/products", {"name": "Café", "price": 10, **fields})
    assert made.status == 201, made.text
    return str(made.body["id"])


async def send(who: Person, at: str, data: bytes, query: str = "") -> Reply:
    return await who.call(
        "POST", f"/api/products/{at}/images{query}", data=data, Content_Type="image/jpeg"
    )


async def served(shop: RestApi, url: str, **headers: str) -> tuple[int, Any, bytes]:
    path = url.removeprefix(BASE)
    async with shop.site.http.get(path, headers=headers) as answer:
        return answer.status, answer.headers, await answer.read()


async def names(db: Database) -> set[str]:
    async def unit(tx: Tx) -> set[str]:
        return {row["name"] for row in await tx.all("select name from images")}

    return await db.read(unit)


@pytest.mark.slow
async def test_what_people_send_is_stored_upright_small_and_without_its_place(
    shop: RestApi, config: Config
) -> None:
    who = await shop.person()
    for case, (make, ending, size) in TAKEN.items():
        at = await product(who, name=case)
        sent = await send(who, at, make(), "?alt=A%20bag")
        assert sent.status == 201, (case, sent.text)
        assert answer_faults("POST", "/api/products/{id}/images", 201, sent.body) == []
        url = sent.body["url"]
        assert url.startswith(f"{BASE}/images/"), case
        assert url.endswith(f".{ending}"), case
        shown = (await who.get(f"/api/products/{at}")).body["images"]
        assert shown == [{"url": url, "alt": "A bag"}], case
        status, headers, body = await served(shop, url)
        kind = {"jpg": "image/jpeg", "webp": "image/webp"}[ending]
        assert (status, headers["Content-Type"]) == (200, kind), case
        assert len(body) == sent.body["bytes"]
        image = Image.open(io.BytesIO(body))
        assert (image.size, image.mode) == (size, "RGBA" if ending == "webp" else "RGB"), case
        assert (sent.body["width"], sent.body["height"]) == size
        assert not image.getexif(), case
        assert not {"icc_profile", "xmp", "comment"} & image.info.keys(), case
        assert b"<script" not in body
        if ending == "jpg":
            # Turned clockwise, the left side is above.
            red, blue = (2, 2), (size[0] - 3, size[1] - 3)
            pairs = [(image.getpixel(red), RED), (image.getpixel(blue), BLUE)]
            for got, wanted in pairs:
                assert isinstance(got, tuple)
                assert all(abs(g - w) < 30 for g, w in zip(got, wanted, strict=True)), (case, got)
    assert not list(Path(config.images.folder).rglob(".new-*"))


@pytest.mark.slow
async def test_what_is_no_image_of_the_web_is_refused_by_name(shop: RestApi) -> None:
    who = await shop.person()
    at = await product(who)
    for case, (make, code) in REFUSED.items():
        sent = await send(who, at, make())
        assert (case, sent.status, sent.faults) == (case, 400, {"file": code}), sent.text
    assert await names(shop.db) == set()


@pytest.mark.parametrize(
    ("program", "status", "code"),
    [
        ("import os\nprint(os.environ.get('CARTEIRO_SECRET'), file=open(PATH, 'w'))", 400,
         "too_many_pixels"),
        # It was ended while it wrote.
        ("""print('{"width": 1, "height": 1, "media_type": "image/jpeg"}\\nhalf', flush=True)
import os; os.kill(os.getpid(), 9)""", 400, "too_many_pixels"),
        (None, 503, None),
    ],
)  # fmt: skip
async def test_an_encoder_that_fails_stores_nothing_and_knows_no_secret(
    shop: RestApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str | None,
    status: int, code: str | None,
) -> None:  # fmt: skip
    monkeypatch.setenv("CARTEIRO_SECRET", "known")
    seen = tmp_path / "seen"
    if program is None:
        monkeypatch.setattr("sys.executable", str(tmp_path / "none"))
    else:
        (tmp_path / "encoder.py").write_text(program.replace("PATH", repr(str(seen))))
        monkeypatch.setattr(encoding, "PROGRAM", tmp_path / "encoder.py")
    who = await shop.person()
    sent = await send(who, await product(who), file_of(drawn(), "PNG"))
    assert (sent.status, sent.faults.get("file")) == (status, code), sent.text
    assert await names(shop.db) == set()
    assert not seen.exists() or seen.read_text() == "None\n"


async def test_a_form_with_any_name_of_a_file_is_taken(shop: RestApi) -> None:
    who = await shop.person()
    at = await product(who)
    for n, name in enumerate(("foto da praça ☕.jpg", "../../etc/passwd", "a.php", "x.svg")):
        alt = f"Foto {n}"
        body = (
            (
                f'--x\r\nContent-Disposition: form-data; name="alt"\r\n\r\n{alt}\r\n'
                f'--x\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
                "Content-Type: image/svg+xml\r\n\r\n"
            ).encode()
            + file_of(drawn((60 + n, 40)), "PNG")
            + b"\r\n--x--\r\n"
        )
        sent = await who.call(
            "POST", f"/api/products/{at}/images", data=body,
            Content_Type="multipart/form-data; boundary=x",
        )  # fmt: skip
        assert (sent.status, sent.body["alt"]) == (201, alt), sent.text
    shown = (await who.get(f"/api/products/{at}")).body["images"]
    assert [one["alt"] for one in shown] == [f"Foto {n}" for n in range(4)]


async def test_an_image_is_kept_for_ever_and_runs_nothing(shop: RestApi) -> None:
    who = await shop.person()
    url = (await send(who, await product(who), file_of(drawn(), "PNG"))).body["url"]
    _, headers, _ = await served(shop, url)
    assert headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert headers["Access-Control-Allow-Origin"] == "*"
    status, again, body = await served(shop, url, **{"If-None-Match": headers["ETag"]})
    assert (status, again["ETag"], body) == (304, headers["ETag"], b"")
    async with shop.site.http.head(url.removeprefix(BASE)) as answer:
        assert (answer.status, await answer.read()) == (200, b"")
    for path in ("/images/../carteiro.db", f"/images/{'0' * 40}.jpg", "/images/a.jpg"):
        assert (await served(shop, path))[0] == 404


@pytest.mark.slow
async def test_only_the_owner_adds_images_and_not_without_bound(
    still: Database, config: Config
) -> None:
    limits = msgspec.structs.replace(UNLIMITED.limits, images_per_owner=2)
    async with serving(still, msgspec.structs.replace(config, limits=limits)) as site:
        shop = RestApi(site)
        who, other, reader = await shop.person(), await shop.person(), await shop.person(["read"])
        at, file = await product(who), file_of(drawn(), "PNG")
        asked = [await send(one, at, file) for one in (shop.nobody, other, reader)]
        assert [one.status for one in asked] == [401, 403, 403]
        assert (await send(who, "0" * 24, file)).status == 404
        # The same file again changes nothing.
        first, again = await send(who, at, file), await send(who, at, file)
        assert first.body["url"] == again.body["url"]
        assert len((await who.get(f"/api/products/{at}")).body["images"]) == 1
        assert (await send(who, at, file_of(drawn((61, 40)), "PNG"))).status == 201
        full = await send(who, at, file_of(drawn((62, 40)), "PNG"))
        assert (full.status, full.faults) == (409, {"file": "too_many_images"})
        large = await send(who, at, b"\0" * (encoding.MOST_BYTES + 1))
        assert large.status == 413
        mine = (await who.get(f"/api/products/{at}")).body["images"]
        at = await product(other, images=mine)
        # Another's product may show it, but does not keep it.
        assert (await send(other, at, file)).body["url"] != first.body["url"]


async def test_the_file_of_an_image_goes_a_week_after_its_last_product(
    db: Database, config: Config
) -> None:
    async with serving(db, config) as site:
        shop = RestApi(site)
        who, images = await shop.person(), site.app[IMAGES]
        one, two = await product(who), await product(who)
        file = file_of(drawn(), "PNG")
        url = (await send(who, one, file)).body["url"]
        other = (await send(who, one, file_of(drawn((70, 40)), "PNG"))).body["url"]
        await who.call("PATCH", f"/api/products/{two}", {"images": [{"url": url}]})
        # What a server leaves that is ended while it writes goes with the image.
        name = url.rpartition("/")[2]
        (Path(config.images.folder) / name[:2] / f".new-{name}-x").touch()
        await age(db)
        await images.sweep()
        assert len(await names(db)) == 2
        await who.call("PATCH", f"/api/products/{one}", {"images": [{"url": other}]})
        await who.delete(f"/api/products/{one}")
        await images.sweep()
        assert len(await names(db)) == 2
        await age(db)
        await images.sweep()
        assert await names(db) == {url.rpartition("/")[2]}
        assert (await served(shop, other))[0] == 404
        await who.delete(f"/api/products/{two}")
        # It is used again before its time.
        three = await product(who, images=[{"url": url}])
        await age(db)
        await images.sweep()
        assert (await served(shop, url))[0] == 200
        await who.delete(f"/api/products/{three}")
        await age(db)
        await images.sweep()
        assert not any(path.is_file() for path in Path(config.images.folder).rglob("*"))


async def test_a_removal_ends_also_when_a_product_takes_the_image_meanwhile(shop: RestApi) -> None:
    who = await shop.person()
    at = await product(who)
    url = (await send(who, at, file_of(drawn(), "PNG"))).body["url"]
    await who.delete(f"/api/products/{at}")
    await age(shop.db)
    # The server is ended before the file is deleted.
    await shop.db.write(uploads.removable)
    await product(who, images=[{"url": url}])
    await shop.site.app[IMAGES].sweep()
    assert await names(shop.db) == set()


async def age(db: Database) -> None:
    """Let a week pass for images that nothing uses."""

    async def unit(tx: Tx) -> None:
        await tx.run("update images set unused_at = unused_at - $1", uploads.GRACE + 1)

    await db.write(unit)


async def test_images_follow_the_address_of_the_server(db: Database, config: Config) -> None:
    local = msgspec.structs.replace(config, server=Server(public_url="http://localhost:8080"))
    async with serving(db, local) as site:
        shop = RestApi(site)
        who = await shop.person()
        elsewhere = {"url": "http://localhost:8080/other.jpg"}
        at = await product(who, images=[elsewhere])
        old = (await send(who, at, file_of(drawn(), "PNG"))).body["url"]
        assert old.startswith("http://localhost:8080/images/")
    async with serving(db, config) as site:
        await site.app[IMAGES].sweep()
        moved = await Person(site.http, who.user_id, who.headers).get(f"/api/products/{at}")
        new = old.replace("http://localhost:8080", BASE)
        assert [one["url"] for one in moved.body["images"]] == [elsewhere["url"], new]


@pytest.mark.parametrize("db_url", ["postgres"], indirect=True)
async def test_an_installation_without_a_place_for_images_says_so(db: Database) -> None:
    config = msgspec.structs.replace(UNLIMITED, database=replace_url())
    async with serving(db, config) as site:
        who = await RestApi(site).person()
        sent = await send(who, await product(who), file_of(drawn(), "PNG"))
        assert sent.status == 403
        assert "images.folder" in sent.text


def replace_url() -> Any:
    return msgspec.structs.replace(Config().database, url="postgresql://u@h/d")


async def test_images_of_one_owner_leave_a_place_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ends = list[bytes](), asyncio.Event()

    async def encoded(data: bytes) -> encoding.Picture:
        begun.append(data)
        await ends.wait()
        return encoding.Picture(data, "image/png", 1, 1)

    monkeypatch.setattr(encoding, "encoded", encoded)
    encoder = encoding.Encoder()
    sent = (("greedy", b"1"), ("greedy", b"2"), ("honest", b"3"))
    tasks = [asyncio.create_task(encoder.encode(owner, data)) for owner, data in sent]
    await asyncio.sleep(0)
    assert begun == [b"1", b"3"]
    ends.set()
    assert [picture.data for picture in await asyncio.gather(*tasks)] == [b"1", b"2", b"3"]
