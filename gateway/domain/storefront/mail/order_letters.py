"""Writes the mails to buyers: order received, paid, canceled, expired.

They are in the language of the store and never repeat a text that the buyer wrote, except a first
name: whoever orders can give the address of somebody else.
"""

import re
from collections.abc import Mapping
from typing import cast

from babel.dates import format_date

from gateway.domain.queued_mail import Letter, Post, QueuedMail, line
from gateway.domain.sales import document_lines, pix
from gateway.domain.sales.order_mails import Kind
from gateway.domain.storefront.mail import order_texts
from gateway.domain.storefront.mail.mail_bodies import Amounts, Body, as_html, as_text, with_query
from gateway.domain.storefront.mail.order_texts import Texts
from gateway.records.values import dates, zones
from outbox.database.transaction import Row, Tx
from outbox.ids import digest_of

MOST_ITEMS = 50
LONGEST_TITLE = 120
LONGEST_NAME = 40
STATUSES: Mapping[Kind, str] = {
    "order_received": "pending",
    "order_paid": "paid",
    "order_canceled": "canceled",
    "order_expired": "expired",
}
"""The status that an order has while its mail is news."""
_NAME = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_ORDER = """
select o.number, o.status, o.name, o.email, o.items, o.subtotal, o.discount, o.shipping, o.total,
  o.shipping_option, o.payment_method, o.expires_at, s.name as store, s.hostname, s.language,
  s.pix_key, s.order_page_url, u.timezone
from orders o join stores s on s.id = o.store_id join users u on u.id = s.owner_id
where o.id = $1 and o.contact_id is not null and s.order_mails and u.disabled_at is null
"""
_ADD_DIGEST = "insert into order_tokens (digest, order_id) values ($1, $2)"


async def letter(tx: Tx, mail: QueuedMail, post: Post) -> Letter | None:
    """Write the mail of an order, with a new token that shows it; None when it is no news now."""
    order = await tx.one(_ORDER, mail.order_id)
    kind = cast(Kind, mail.kind)
    if order is None or order["status"] != STATUSES[kind]:
        return None
    link = ""
    if order["order_page_url"] is not None:
        link = with_query(order["order_page_url"], number=order["number"], token=post.token)
        await tx.run(_ADD_DIGEST, digest_of(post.token), mail.order_id)
    return _letter(mail, kind, order, link)


def _letter(mail: QueuedMail, kind: Kind, order: Row, link: str) -> Letter:
    language = order["language"]
    texts = order_texts.of(language)
    number, store = order["number"], line(order["store"])
    free = kind == "order_paid" and not order["total"]
    title = texts.free_title if free else texts.titles[kind]
    title = title.format(number=number)
    opening = (texts.free_opening,) if free else texts.opening[kind]
    new = kind == "order_received"
    code = _pix_code(order) if new else None
    body = Body(
        language=language,
        store=store,
        title=title,
        opening=(
            _greeting(texts, order["name"]),
            *(text.format(number=number) for text in opening),
            *(_payment(texts, order, code) if new else ()),
        ),
        code_label=texts.pix_code,
        code=code or "",
        link_label=texts.link,
        link=link,
        items_label=texts.items,
        items=_items(texts, order),
        sums=_sums(texts, order),
        closing=(*[texts.link_warning] * bool(link), *[texts.not_you] * new),
        footer=texts.footer.format(store=store, hostname=order["hostname"]),
    )
    subject = f"{title} - {store}"
    return Letter(mail, order["email"], store, subject, as_text(body), as_html(body))


def _greeting(texts: Texts, name: str) -> str:
    """Greet the buyer by the first name, if it is a plain word: others could be a message."""
    first = next(iter(name.split()), "")
    if len(first) > LONGEST_NAME or _NAME.fullmatch(first) is None:
        return texts.hello
    return texts.hello_name.format(name=first)


def _pix_code(order: Row) -> str | None:
    if order["payment_method"] != "pix" or order["pix_key"] is None:
        return None
    return pix.code(order["pix_key"], order["store"], order["total"], order["number"])


def _payment(texts: Texts, order: Row, code: str | None) -> tuple[str, str]:
    """Return how to pay an order that waits for its payment, and until when."""
    if code is None:
        how = texts.pay_other.format(method=texts.methods[order["payment_method"]])
    else:
        how = texts.pay_pix.format(total=texts.money(order["total"]))
    return how, texts.lasts.format(time=_moment(texts, order["expires_at"], order["timezone"]))


def _items(texts: Texts, order: Row) -> Amounts:
    lines = document_lines.read(order["items"])
    items = [
        (f"{item.quantity // 1000} × {_title(item.description)}", texts.money(item.total))
        for item in lines[:MOST_ITEMS]
    ]
    if len(lines) > MOST_ITEMS:
        rest = lines[MOST_ITEMS:]
        label = texts.more_items.format(count=len(rest))
        items.append((label, texts.money(sum(item.total for item in rest))))
    return items


def _title(description: str) -> str:
    text = line(description)
    return text if len(text) <= LONGEST_TITLE else f"{text[: LONGEST_TITLE - 1]}…"


def _sums(texts: Texts, order: Row) -> Amounts:
    sums = []
    if order["discount"]:
        sums.append((texts.discount, f"-{texts.money(order['discount'])}"))
    if order["shipping"]:
        sums.append((texts.shipping, texts.money(order["shipping"])))
    elif order["shipping_option"] is not None:
        sums.append((texts.shipping, texts.free))
    if sums:
        sums.insert(0, (texts.subtotal, texts.money(order["subtotal"])))
    return (*sums, (texts.total, texts.money(order["total"])))


def _moment(texts: Texts, micros: int, zone: str) -> str:
    """Return a time of the store's owner, such as 04/12/2026 às 12:00 (horário de Brasília)."""
    moment = dates.local(micros, zone)
    date = format_date(moment, texts.date, texts.locale)
    offset = moment.strftime("%z")
    name = texts.brasilia if zone == zones.DEFAULT else f"GMT{offset[:3]}:{offset[3:]}"
    return texts.time.format(date=date, time=f"{moment:%H:%M}", zone=name)
