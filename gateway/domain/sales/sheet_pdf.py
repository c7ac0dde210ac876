"""Writes a sheet as a PDF file with the fonts that every reader of PDF has.

These know the letters of Western Europe; every other letter is spelled with them.
"""

import io
import unicodedata
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

import segno
from anyascii import anyascii

from gateway.domain.sales.sheets import Sheet

ENCODING = "cp1252"
"""What the fonts can show."""
MOST_LINES = 15
"""Lines of an address or of bank details."""
LONGEST, PIECE = 60, 16
"""Letters of a spelled word, and of its pieces if it is longer: to break it by width is slow."""
PART = 2_000
"""Letters of a paragraph: reportlab measures all that is left of one again on each page."""


def plain(text: str) -> str:
    """Return text in letters of the fonts, without control characters.

    Emoji are left out, but a text of nothing else has their names.
    """
    spelled = [
        [_spelled(letter) for letter in word]
        for word in unicodedata.normalize("NFC", text).split(" ")
    ]
    said = [[part for part in word if not _is_name(part)] for word in spelled]
    words = [word for word, was in zip(said, spelled, strict=True) if word or not was]
    shown = " ".join(map(_word, words))
    return shown if shown.strip() else " ".join(map(_word, spelled))


def _is_name(spelled: str) -> bool:
    """Return whether a letter is spelled as emoji are: the name between colons."""
    return len(spelled) > 1 and spelled[0] == spelled[-1] == ":"


def _word(letters: Sequence[str]) -> str:
    shown = "".join(one if one.isprintable() or one == "\xa0" else " " for one in letters)
    if len(shown) <= max(len(letters), LONGEST):
        return shown
    return " ".join(shown[place : place + PIECE] for place in range(0, len(shown), PIECE))


def _spelled(letter: str) -> str:
    try:
        letter.encode(ENCODING)
    except UnicodeEncodeError:
        return anyascii(letter)
    return letter


def _parts(text: str) -> Iterator[str]:
    """Yield a text in parts of at most PART letters, cut between words where there are any."""
    place = 0
    while len(text) - place > PART:
        end = text.rfind(" ", place + 1, place + PART + 1)
        end = end if end > 0 else place + PART
        yield text[place:end]
        place = end
    yield text[place:]


def pdf_of(sheet: Sheet) -> bytes:
    """Return the PDF file of a sheet. It takes long, so call it on a thread."""
    # Only for files; it takes longer to load than the rest of a start.
    from reportlab.lib import colors, pagesizes, units
    from reportlab.lib.styles import ParagraphStyle
    from reportlab.lib.utils import ImageReader
    from reportlab.pdfbase.pdfmetrics import stringWidth
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
    title = ParagraphStyle("title", bold, fontSize=18, leading=23)
    small = ParagraphStyle("small", text, fontSize=8.5, leading=11, textColor=faint)
    code = ParagraphStyle("code", text, fontName="Courier", fontSize=8, leading=10)

    def said(value: str, style: Any = text) -> list[Any]:
        # On one line, because a row of a table cannot be higher than a page.
        return [Paragraph(escape(part), style) for part in _parts(plain(value))]

    def several(lines: Sequence[str], first: Any = text) -> list[Any]:
        shown = enumerate(lines[:MOST_LINES])
        return [one for place, line in shown for one in said(line, text if place else first)]

    def broad(values: Sequence[Any], size: int) -> float:
        """Return the width of a column with these texts."""
        widths: list[float] = [stringWidth(value, "Helvetica-Bold", size) for value in values]
        return max(20 * mm, max(widths) + 12)

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
    numbers: list[Any] = [
        ("VALIGN", (0, 0), (-1, -1), "TOP"),
        ("ALIGN", (1, 0), (-1, -1), "RIGHT"),
        ("FONT", (1, 0), (-1, -1), "Helvetica", 10, 13.5),
        ("LEFTPADDING", (0, 0), (0, -1), 0),
        ("RIGHTPADDING", (-1, 0), (-1, -1), 0),
    ]
    head = said(sheet.title, title)
    for label, day in sheet.dates:
        head += said(f"{label}: {day}")
    if sheet.state_word:
        head += said(sheet.state_word, bold)
    sender = several([sheet.sender, *sheet.sender_lines], bold)
    if sheet.logo is not None:
        wide, high = ImageReader(io.BytesIO(sheet.logo.data)).getSize()
        scale = min(50 * mm / wide, 20 * mm / high)
        logo = Image(io.BytesIO(sheet.logo.data), wide * scale, high * scale, hAlign="LEFT")
        sender = [logo, Spacer(1, 2 * mm), *sender]
    # Who sends and each line may be higher than a page.
    story: list[Any] = [
        Table(
            [[head, sender]],
            colWidths=[width * 0.55, width * 0.45],
            style=flat,
            hAlign="LEFT",
            splitInRow=1,
        ),
        Spacer(1, 6 * mm),
    ]
    if sheet.customer_lines:
        story += [*said(sheet.customer_label, small), *several(sheet.customer_lines, bold)]
        story.append(Spacer(1, 6 * mm))
    if sheet.lines:
        # Numbers as texts, which take far less time than paragraphs.
        cells: list[list[Any]] = []
        ends: list[int] = []
        for place, one in enumerate([sheet.headings, *sheet.lines]):
            discount = [one.discount] * bool(sheet.headings.discount)
            values = [*map(plain, (one.quantity, one.price, *discount, one.total))]
            # A part of a long description in each row, for the reason of PART.
            for part in said(one.description, text if place else small):
                cells.append([part, *values])
                values = [""] * len(values)
            ends.append(len(cells) - 1)
        numeric = [broad([row[n] for row in cells], 10) for n in range(1, len(cells[0]))]
        spread = [max(60 * mm, width - sum(numeric)), *numeric]
        ruled = TableStyle(
            [*numbers, *[("LINEBELOW", (0, end), (-1, end), 0.5, faint) for end in ends],
             ("FONT", (1, 0), (-1, 0), "Helvetica", 8.5), ("TEXTCOLOR", (1, 0), (-1, 0), faint)]
        )  # fmt: skip
        table = Table(
            cells, colWidths=spread, style=ruled, hAlign="LEFT", repeatRows=1, splitInRow=1
        )
        story += [table, Spacer(1, 4 * mm)]
    sums = [[plain(label), plain(value)] for label, value in sheet.amounts]
    beside = broad([row[1] for row in sums], 12)
    added = TableStyle([*numbers, ("ALIGN", (0, 0), (0, -1), "RIGHT"),
                        ("FONT", (0, -1), (-1, -1), "Helvetica-Bold", 12)])  # fmt: skip
    story += [
        Table(sums, colWidths=[width - beside, beside], style=added, hAlign="LEFT"),
        Spacer(1, 6 * mm),
    ]
    if sheet.pix:
        side = 38 * mm
        paying = [*said(sheet.pix_label, bold), Spacer(1, 2 * mm), *said(sheet.pix, code)]
        picture = io.BytesIO()
        segno.make(sheet.pix, error="m", micro=False).save(picture, kind="png", scale=4, border=4)
        picture.seek(0)
        drawn = [[Image(picture, side, side), paying]]
        story += [
            CondPageBreak(side + 6 * mm),
            Table(
                drawn, colWidths=[side + 6 * mm, width - side - 6 * mm], style=flat, hAlign="LEFT"
            ),
            Spacer(1, 6 * mm),
        ]
    if sheet.bank:
        story += [*said(sheet.bank_label, small), *several(sheet.bank.splitlines())]
        story.append(Spacer(1, 6 * mm))
    if sheet.notes:
        story += said(sheet.notes_label, small)
        for note in sheet.notes.splitlines():
            story += said(note)
    document.build(story)
    return file.getvalue()
