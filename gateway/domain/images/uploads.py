"""Keeps the list of uploaded images: whose they are, which products have them, which are unused.

The row of an image is written before its file, and its file is deleted before its row, so that no
file is ever forgotten.
"""

import re
from collections.abc import Sequence
from hashlib import sha256

from gateway.domain.images.encoding import FIELD, Picture
from gateway.records.errors import Fault, Refusal
from outbox.database import times
from outbox.database.sql import IDS, items
from outbox.database.transaction import Tx
from outbox.durations import DAY

PATH = "/images/"
"""The path of images; their URLs are stored in products and in pages elsewhere."""
ENDINGS = {"image/jpeg": "jpg", "image/webp": "webp"}
NAME = re.compile(r"[0-9a-f]{40}\.(?:jpg|webp)", re.ASCII)
_IN_URL = re.compile(rf'{PATH}({NAME.pattern})"', re.ASCII)
GRACE = 7 * DAY
"""How long the file of an image stays that no product has: pages and mails may still show it."""
REMOVED_AT_ONCE = 50
REWRITTEN_AT_ONCE = 20

_KEEP = """
insert into images (name, owner_id, media_type, bytes, width, height, base, created_at, unused_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $8)
on conflict (name) do update
set unused_at = case when images.unused_at is null then null else excluded.unused_at end
where not images.removing
"""
_LINK = f"""
insert into product_images (product_id, name, owner_id)
select $2, name, owner_id from images where owner_id = $3 and name in {IDS} and not removing
on conflict do nothing
"""
_UNLINK = f"delete from product_images where name in {IDS} and product_id = $2"
_USED = f"""
update images set unused_at = null where name in {IDS} and owner_id = $2 and not removing
"""
_UNUSED = f"""
update images set unused_at = $3 where name in {IDS} and owner_id = $2
and not exists (select 1 from product_images u where u.name = images.name)
"""


def name_of(owner_id: str, picture: Picture) -> str:
    """Return the name of an image: the digest of its owner and its bytes.

    The same image of two owners has two names, as each may delete theirs.
    """
    digest = sha256(owner_id.encode() + picture.data).hexdigest()[:40]
    return f"{digest}.{ENDINGS[picture.media_type]}"


async def keep(
    tx: Tx, owner_id: str, picture: Picture, base: str, most: int, most_bytes: int
) -> str:
    """Note an image whose file is written next, and return its name.

    `most` and `most_bytes` bound the images of the owner, 0 does not. Raises conflict.
    """
    name = name_of(owner_id, picture)
    size = len(picture.data)
    row = await tx.one(
        "select count(*) as n, coalesce(sum(bytes), 0) as bytes from images"
        " where owner_id = $1 and name <> $2",
        owner_id,
        name,
    )
    assert row is not None
    if (most and row["n"] >= most) or (most_bytes and row["bytes"] + size > most_bytes):
        text = (
            f"The account has {row['n']} images of {row['bytes'] // 1024**2} MiB; more than {most} "
            f"or {most_bytes // 1024**2} MiB are not stored. Remove images that are not needed."
        )
        raise Refusal("conflict", text, faults=[Fault(FIELD, "too_many_images", text)])
    if not await tx.run(
        _KEEP, name, owner_id, picture.media_type, size, picture.width, picture.height, base, tx.now
    ):
        text = "The same image is being removed at this moment; send it again in a minute."
        raise Refusal("conflict", text, faults=[Fault(FIELD, "image_leaves", text)])
    return name


def names_in(images: str | None) -> frozenset[str]:
    """Return the names of uploaded images among the stored images of a product."""
    return frozenset(_IN_URL.findall(images)) if images and PATH in images else frozenset()


def path_in(url: str) -> str:
    """Return the path of an uploaded image in its URL; empty for an image from elsewhere."""
    found = _IN_URL.search(f'{url}"')
    return f"{PATH}{found[1]}" if found else ""


async def follow(tx: Tx, owner_id: str, product_id: str, before: str | None, now: str) -> None:
    """Note which uploaded images a product has from now on."""
    old, new = names_in(before), names_in(now)
    if added := sorted(new - old):
        await tx.run(_LINK, items(added), product_id, owner_id)
        await tx.run(_USED, items(added), owner_id)
    if gone := sorted(old - new):
        await tx.run(_UNLINK, items(gone), product_id)
        await release(tx, owner_id, gone)


async def release(tx: Tx, owner_id: str, names: Sequence[str]) -> None:
    """Note that a product had these images and has them no more."""
    await tx.run(_UNUSED, items(names), owner_id, tx.now)


async def removable(tx: Tx) -> list[str]:
    """Choose images that nothing has used for GRACE, and return their names: delete their files."""
    now = await times.earlier(tx)
    rows = await tx.all(
        """update images set removing = true where name in (
          select name from images where unused_at < $1 order by unused_at limit $2)
        and unused_at < $1 returning name""",
        now - GRACE,
        REMOVED_AT_ONCE,
    )
    return [row["name"] for row in rows]


async def removed(tx: Tx, names: Sequence[str]) -> None:
    """Forget images whose files are deleted."""
    await tx.run(f"delete from images where name in {IDS} and removing", items(names))


async def rewrite(tx: Tx, base: str) -> int:
    """Write `base` into the URLs of images that have another one; return the number of images.

    Otherwise products would go on naming an address at which this server answers no more, such as
    the localhost of its first day.
    """
    rows = await tx.all(
        "select name, base from images where base < $1 or base > $1 order by base, name limit $2",
        base,
        REWRITTEN_AT_ONCE,
    )
    for row in rows:
        await tx.run(
            """update products set images = replace(images, $2, $3), version = version + 1
            where id in (select product_id from product_images where name = $1)""",
            row["name"],
            f'"{row["base"]}{PATH}{row["name"]}"',
            f'"{base}{PATH}{row["name"]}"',
        )
        await tx.run("update images set base = $2 where name = $1", row["name"], base)
    return len(rows)
