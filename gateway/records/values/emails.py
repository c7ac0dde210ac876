"""Says when two e-mail addresses are one mailbox, and which characters no address has.

The part before the @ is compared in lower case: `straße@` and `strasse@` are two mailboxes. The
domain is compared as DNS looks it up, in its ASCII form.
"""

import hashlib
import re
import unicodedata
from functools import lru_cache

import idna

from gateway.records.values.patterns import BLANK

LONGEST = 1_000
"""No address is longer; the time to sort a run of marks grows with the square of its length."""
LONGEST_LABEL = 63
"""Characters between two points of a domain."""
_HIDDEN = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp", "Zs"})
# Fillers and variation selectors are letters and marks that show nothing.
_FILLER = re.compile(rf"[{BLANK}\U000e0000-\U000e0fff]")
# Controls have no name in Unicode.
_CONTROLS = {
    "\0": "NULL", "\t": "CHARACTER TABULATION", "\n": "LINE FEED", "\v": "LINE TABULATION",
    "\f": "FORM FEED", "\r": "CARRIAGE RETURN", "\x1b": "ESCAPE", "\x7f": "DELETE",
    "\x85": "NEXT LINE",
}  # fmt: skip

DOTTED = {"gmail.com": "gmail.com", "googlemail.com": "gmail.com"}
"""Providers that ignore dots before the @, with the name under which they are counted."""


def fold_email(email: str) -> str:
    """Return the form in which addresses of one mailbox are equal."""
    email = email.strip()
    if email.isascii() or len(email) > LONGEST:
        return email.lower()
    local, at, domain = unicodedata.normalize("NFC", email).rpartition("@")
    return unicodedata.normalize("NFC", local.lower()) + at + ascii_domain(domain)


def earlier_fold(email: str) -> str:
    """Return an address in lower case alone, without IDNA.

    Of two accounts that have had one mailbox since before IDNA, the later one is stored so.
    """
    return unicodedata.normalize("NFC", email.strip()).lower()


def folds(email: str) -> tuple[str, ...]:
    """Return every form in which an account may have an address: see `earlier_fold`."""
    return tuple(dict.fromkeys((fold_email(email), earlier_fold(email))))


def spellings(email: str) -> tuple[str, ...]:
    """Return an address as it is, and with its domain in the ASCII and in the Unicode form."""
    local, at, domain = email.rpartition("@")
    plain = ascii_domain(domain)
    every = (email, local + at + plain, local + at + unicode_domain(plain))
    return tuple({one.lower(): one for one in reversed(every)}.values())[::-1]


@lru_cache(maxsize=1024)
def ascii_domain(domain: str) -> str:
    """Return a domain in lower case, its other letters as punycode (UTS 46, nontransitional).

    A domain that IDNA does not allow stays as it is, in lower case.
    """
    if domain.isascii():
        return domain.lower()
    try:
        mapped = idna.uts46_remap(domain, std3_rules=False, transitional=False).split(".")
        # The time of punycode grows with the square of the length.
        if max(map(len, mapped)) <= LONGEST_LABEL:
            return ".".join(
                label if label.isascii() else "xn--" + label.encode("punycode").decode()
                for label in mapped
            )
    except (idna.IDNAError, UnicodeError):
        pass
    return unicodedata.normalize("NFC", domain.lower())


def unicode_domain(domain: str) -> str:
    """Return the readable form of a domain that `ascii_domain` made."""
    labels = domain.split(".")
    for place, label in enumerate(labels):
        if label.startswith("xn--"):
            try:
                labels[place] = label[4:].encode().decode("punycode")
            except UnicodeError:
                continue
    readable = ".".join(labels)
    # Other programs' punycode may hold what the ASCII form does not lead back to.
    return readable if ascii_domain(readable) == domain else domain


def invisible(text: str) -> str:
    """Return the first character that shows nothing, or steers how others show; else nothing.

    A space of the keyboard is none: everybody sees where it is.
    """
    if text.isascii() and text.isprintable():
        return ""
    for character in text.replace(" ", ""):
        if unicodedata.category(character) in _HIDDEN or _FILLER.match(character):
            return character
    return ""


def character_name(character: str) -> str:
    """Return a character as its code and name: `U+200B ZERO WIDTH SPACE`."""
    name = unicodedata.name(character, "") or _CONTROLS.get(character, "WITHOUT A NAME")
    return f"U+{ord(character):04X} {name}"


def counted_email(email: str) -> str:
    """Return the form in which an email is counted: without case, `+tag` and ignored dots."""
    folded = fold_email(email)
    local, at, domain = folded.rpartition("@")
    local = local.partition("+")[0] or local
    if domain in DOTTED:
        local, domain = local.replace(".", "") or local, DOTTED[domain]
    return f"{local}{at}{domain}"


def holders(email: str) -> tuple[bytes, bytes]:
    """Return the digest under which the coupons of a person count, and that of earlier releases."""
    counted, folded = (
        hashlib.sha256(text.encode()).digest() for text in (counted_email(email), fold_email(email))
    )
    return counted, folded
