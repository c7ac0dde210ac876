"""Writes the code of a Pix payment ("Pix copia e cola"): a static BR Code.

It is the Merchant Presented Mode of EMV QR codes with the fields of the Banco Central's "Manual de
Padrões para Iniciação do Pix": two digits of id, two digits of length, then the value.
"""

from anyascii import anyascii

from gateway.records.values import pix_key

KEY_LENGTH, NAME_LENGTH, TXID_LENGTH = 77, 25, 25
MOST_CENTAVOS = 999_999_999_999
"""The largest amount of 13 characters, the length of its field."""
CITY = "BRASIL"
"""The city of the receiver, which every code has; a store has none."""
_ARRANGEMENT = "br.gov.bcb.pix"


def code(key: str, name: str, centavos: int, txid: str) -> str | None:
    """Return the code of a payment to a Pix key, or None when a code cannot express it.

    `txid` comes back in the receiver's statement; only its letters and digits count.
    """
    # A store may have a key from before keys were checked; what is none stays as it is.
    key = pix_key.normal(key) or key.strip()
    if not key.isascii() or not key.isprintable() or not 1 <= len(key) <= KEY_LENGTH:
        return None
    if not 0 < centavos <= MOST_CENTAVOS:
        return None
    words = "".join(letter for letter in txid if letter.isascii() and letter.isalnum())
    amount = f"{centavos // 100}.{centavos % 100:02d}"
    text = "".join(
        (
            _field("00", "01"),
            _field("26", _field("00", _ARRANGEMENT) + _field("01", key)),
            _field("52", "0000"),
            _field("53", "986"),
            _field("54", amount),
            _field("58", "BR"),
            _field("59", plain(name, NAME_LENGTH) or "PIX"),
            _field("60", CITY),
            _field("62", _field("05", words[:TXID_LENGTH] or "***")),
            "6304",
        )
    )
    return f"{text}{crc16(text.encode()):04X}"


def crc16(data: bytes) -> int:
    """Return the CRC-16 with the polynomial 0x1021, begun with 0xFFFF (CCITT-FALSE)."""
    crc = 0xFFFF
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
    return crc


def plain(text: str, most: int) -> str:
    """Return at most `most` ASCII letters, digits, points, hyphens and blanks of a text.

    Some banks refuse every other sign, such as `&`.
    """
    letters = (c if c.isalnum() or c in ".-" else " " for c in anyascii(text))
    return " ".join("".join(letters).split())[:most].strip()


def _field(number: str, value: str) -> str:
    return f"{number}{len(value):02d}{value}"
