"""Writes the body of a mail twice: as text, and as HTML that is readable on every screen.

The HTML loads nothing and runs nothing. Every value is escaped, because it goes through
`Markup.format`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from markupsafe import Markup

Amounts = Sequence[tuple[str, str]]
"""Labels and amounts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """What a mail says, from top to bottom; an empty part is left out."""

    language: str
    store: str
    title: str
    opening: Sequence[str]
    code_label: str = ""
    code: str = ""
    """A text to copy."""
    link_label: str = ""
    link: str = ""
    items_label: str = ""
    items: Amounts = ()
    sums: Amounts = ()
    """The last one is the total."""
    closing: Sequence[str] = ()
    footer: str = ""


def with_query(page: str, **values: str) -> str:
    """Return the address of a page with further values in its query."""
    before, hash_sign, fragment = page.partition("#")
    joint = "&" if "?" in before else "?"
    return f"{before}{joint}{urlencode(values)}{hash_sign}{fragment}"


def as_text(body: Body) -> str:
    """Return a body as plain text."""
    parts = list(body.opening)
    if body.code:
        parts.append(f"{body.code_label}:\n{body.code}")
    if body.link:
        parts.append(f"{body.link_label}:\n{body.link}")
    if body.items:
        rows = [f"{label}: {amount}" for label, amount in body.items]
        parts.append("\n".join((f"{body.items_label}:", *rows)))
    if body.sums:
        parts.append("\n".join(f"{label}: {amount}" for label, amount in body.sums))
    parts += body.closing
    if body.footer:
        parts.append(f"-- \n{body.footer}")
    return "\n\n".join(parts) + "\n"


_PAGE = Markup("""\
<!DOCTYPE html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light">
<meta name="format-detection" content="telephone=no">
<title>{title}</title>
</head>
<body style="margin:0;padding:0;background:#f3f4f6;color:#1f2937;\
font-family:-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif">
<table role="presentation" width="100%" cellpadding="0" cellspacing="0" \
style="background:#f3f4f6"><tr><td align="center" style="padding:24px 12px">
<table role="presentation" width="100%" cellpadding="0" cellspacing="0" \
style="max-width:560px;table-layout:fixed;background:#ffffff;border:1px solid #e5e7eb;\
border-radius:8px;text-align:left"><tr><td style="padding:24px;font-size:16px;line-height:24px;\
overflow-wrap:break-word;word-wrap:break-word">
<p style="margin:0 0 4px;font-size:14px;line-height:20px;color:#4b5563">{store}</p>
<h1 style="margin:0 0 16px;font-size:22px;line-height:28px;color:#111827">{title}</h1>
{parts}
</td></tr></table>
{footer}
</td></tr></table>
</body>
</html>
""")
_PARAGRAPH = Markup('<p style="margin:0 0 16px">{text}</p>')
_HEADING = Markup(
    '<h2 style="margin:24px 0 8px;font-size:16px;line-height:24px;color:#111827">{text}</h2>'
)
_CODE = Markup(
    '<p style="margin:0 0 4px;font-size:14px;line-height:20px;color:#4b5563">{label}</p>\n'
    '<p style="margin:0 0 16px;padding:12px;background:#f3f4f6;border:1px solid #e5e7eb;'
    "border-radius:6px;font-family:Consolas,Menlo,monospace;font-size:14px;line-height:20px;"
    'word-break:break-all">{code}</p>'
)
_LINK = Markup(
    '<p style="margin:0 0 16px"><a href="{link}" style="display:inline-block;padding:12px 20px;'
    "background:#1f2937;border-radius:6px;color:#ffffff;text-decoration:none;"
    'font-weight:bold">{label}</a></p>'
)
_TABLE = Markup(
    '<table role="presentation" width="100%" cellpadding="0" cellspacing="0" '
    'style="margin:0 0 16px;border-top:1px solid #e5e7eb">\n{rows}\n</table>'
)
_ROW = Markup(
    '<tr><td style="padding:8px 12px 8px 0;border-bottom:1px solid #e5e7eb;vertical-align:top;'
    'overflow-wrap:anywhere;font-weight:{weight}">{label}</td>'
    '<td align="right" style="padding:8px 0;border-bottom:1px solid #e5e7eb;vertical-align:top;'
    'white-space:nowrap;font-weight:{weight}">{amount}</td></tr>'
)
_FOOTER = Markup(
    '<p style="max-width:560px;margin:16px auto 0;font-size:13px;line-height:20px;color:#4b5563;'
    'overflow-wrap:break-word">{text}</p>'
)
_LINE = Markup("\n")


def as_html(body: Body) -> str:
    """Return a body as a page of HTML."""
    parts = [_PARAGRAPH.format(text=text) for text in body.opening]
    if body.code:
        parts.append(_CODE.format(label=body.code_label, code=body.code))
    if body.link:
        parts.append(_LINK.format(label=body.link_label, link=body.link))
    if body.items:
        parts.append(_HEADING.format(text=body.items_label))
    if body.items or body.sums:
        rows = [(label, amount, "normal") for label, amount in (*body.items, *body.sums)]
        if body.sums:
            rows[-1] = (*body.sums[-1], "bold")
        parts.append(
            _TABLE.format(
                rows=_LINE.join(
                    _ROW.format(label=label, amount=amount, weight=weight)
                    for label, amount, weight in rows
                )
            )
        )
    parts += [_PARAGRAPH.format(text=text) for text in body.closing]
    return str(
        _PAGE.format(
            language=body.language,
            store=body.store,
            title=body.title,
            parts=_LINE.join(parts),
            footer=_FOOTER.format(text=body.footer) if body.footer else "",
        )
    )
