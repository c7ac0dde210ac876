"""Writes a sheet as a PDF file with the fonts that every reader of PDF has.

These know the letters of Western Europe; every other letter is spelled with them.
"""

import io
import unicodedata
from collections.abc import Sequence
from html import escape
from typing import Any

import segno
from anyascii import anyascii

from gateway.domain.sales.sheets import Sheet

ENCODING = "cp1252"
"""What the fonts can show."""
MOST_LINES = 15
"""Lines of an address or of bank details."""


def plain(text: str) -> str:
    """Return text in letters of the fonts, without control characters."""
    composed = unicodedata.normalize("NFC", text)
    letters = (_spelled(letter) for letter in composed)
    return "".join(one if one.isprintable() or one == "\xa0" else " " for one in letters)


def _spelled(letter: str) -> str:
    try:
        letter.encode(ENCODING)
    except UnicodeEncodeError:
        return anyascii(letter)
    return letter


def pdf_of(sheet: Sheet) -> bytes:
    """Return the PDF file of a sheet. It takes long, so call it on a thread."""
    # Only for files; it takes longer to load than the rest of a start.
    from reportlab.lib import colors, pagesizes, units
    from reportlab.lib.enums import TA_RIGHT
    from reportlab.lib.styles import ParagraphStyle
    from reportlab.lib.utils import ImageReader
    from reportlab.platypus import (
        CondPageBreak,
        Image,
        Paragraph,
        SimpleDocTemplate,
        Spacer,
        Table,
        TableStyle,
    )

    mm: float = units.mm
    faint = colors.HexColor("#5b6470")
    text = ParagraphStyle("text", fontName="Helvetica", fontSize=10, leading=13.5)
    bold = ParagraphStyle("bold", text, fontName="Helvetica-Bold")
    right = ParagraphStyle("right", text, alignment=TA_RIGHT)
    sum_label = ParagraphStyle("sum", bold, alignment=TA_RIGHT, fontSize=12)
    title = ParagraphStyle("title", bold, fontSize=18, leading=23)
    small = ParagraphStyle("small", text, fontSize=8.5, leading=11, textColor=faint)
    small_right = ParagraphStyle("small-right", small, alignment=TA_RIGHT)
    code = ParagraphStyle("code", text, fontName="Courier", fontSize=8, leading=10)

    def said(value: str, style: Any = text) -> Any:
        # On one line, because a row of a table cannot be higher than a page.
        return Paragraph(escape(plain(value)), style)

    def several(lines: Sequence[str], first: Any = text) -> list[Any]:
        kept = lines[:MOST_LINES]
        return [said(line, first if place == 0 else text) for place, line in enumerate(kept)]

    file = io.BytesIO()
    document = SimpleDocTemplate(
        file, pagesize=pagesizes.A4, leftMargin=18 * mm, rightMargin=18 * mm, topMargin=18 * mm,
        bottomMargin=18 * mm, title=plain(sheet.title), author=plain(sheet.sender),
        lang=sheet.language, invariant=1,
    )  # fmt: skip
    # The frame of a page has a padding of 6 points.
    width = document.width - 12
    flat = TableStyle(
        [("VALIGN", (0, 0), (-1, -1), "TOP"), ("LEFTPADDING", (0, 0), (-1, -1), 0),
         ("RIGHTPADDING", (0, 0), (-1, -1), 0)]
    )  # fmt: skip
    head = [said(sheet.title, title), *(said(f"{label}: {day}") for label, day in sheet.dates)]
    if sheet.state_word:
        head.append(said(sheet.state_word, bold))
    sender = several([sheet.sender, *sheet.sender_lines], bold)
    if sheet.logo is not None:
        picture = ImageReader(io.BytesIO(sheet.logo.data))
        wide, high = picture.getSize()
        scale = min(50 * mm / wide, 20 * mm / high)
        logo = Image(io.BytesIO(sheet.logo.data), wide * scale, high * scale, hAlign="LEFT")
        sender = [logo, Spacer(1, 2 * mm), *sender]
    story: list[Any] = [
        Table([[head, sender]], colWidths=[width * 0.55, width * 0.45], style=flat, hAlign="LEFT"),
        Spacer(1, 6 * mm),
    ]
    if sheet.customer_lines:
        story += [said(sheet.customer_label, small), *several(sheet.customer_lines, bold)]
        story.append(Spacer(1, 6 * mm))
    if sheet.lines:
        cells = [
            [
                said(one.description, small if heading else text),
                *(
                    said(value, small_right if heading else right)
                    for value in (
                        one.quantity, one.price, *[one.discount] * bool(sheet.headings.discount),
                        one.total,
                    )
                ),
            ]
            for heading, one in [(True, sheet.headings), *((False, line) for line in sheet.lines)]
        ]  # fmt: skip
        count = len(cells[0]) - 1
        widths = [width - 20 * mm - 28 * mm * (count - 1), 20 * mm, *[28 * mm] * (count - 1)]
        ruled = TableStyle(
            [("VALIGN", (0, 0), (-1, -1), "TOP"), ("LINEBELOW", (0, 0), (-1, -1), 0.5, faint),
             ("LEFTPADDING", (0, 0), (0, -1), 0), ("RIGHTPADDING", (-1, 0), (-1, -1), 0)]
        )  # fmt: skip
        story += [
            Table(cells, colWidths=widths, style=ruled, hAlign="LEFT", repeatRows=1),
            Spacer(1, 4 * mm),
        ]
    last = len(sheet.amounts) - 1
    sums = [
        [said(label, sum_label if place == last else right),
         said(value, sum_label if place == last else right)]
        for place, (label, value) in enumerate(sheet.amounts)
    ]  # fmt: skip
    story += [
        Table(sums, colWidths=[width - 40 * mm, 40 * mm], style=flat, hAlign="LEFT"),
        Spacer(1, 6 * mm),
    ]
    if sheet.pix:
        side = 38 * mm
        paying = [said(sheet.pix_label, bold), Spacer(1, 2 * mm), said(sheet.pix, code)]
        drawn = [[_qr(sheet.pix, side), paying]]
        story += [
            CondPageBreak(side + 6 * mm),
            Table(
                drawn, colWidths=[side + 6 * mm, width - side - 6 * mm], style=flat, hAlign="LEFT"
            ),
            Spacer(1, 6 * mm),
        ]
    if sheet.bank:
        story += [said(sheet.bank_label, small), *several(sheet.bank.splitlines())]
        story.append(Spacer(1, 6 * mm))
    if sheet.notes:
        story += [said(sheet.notes_label, small), *map(said, sheet.notes.splitlines())]
    document.build(story)
    return file.getvalue()


def _qr(code: str, side: float) -> Any:
    """Return the drawing of a QR code with its quiet zone."""
    from reportlab.graphics.shapes import Drawing, Rect

    rows = [list(row) for row in segno.make(code, error="m", micro=False).matrix_iter(border=4)]
    size = side / len(rows)
    drawing = Drawing(side, side)
    for place, row in enumerate(rows):
        start = None
        for column, dark in enumerate([*row, 0]):
            if dark and start is None:
                start = column
            elif not dark and start is not None:
                bar = Rect(start * size, side - (place + 1) * size, (column - start) * size, size)
                bar.strokeColor = None
                drawing.add(bar)
                start = None
    return drawing
