"""Defines regular expressions for checks and JSON Schemas, in syntax of ECMA-262 and Python."""

import re

# White space, controls, and invisible format characters and fillers.
BLANK = (
    r"\s\u0000-\u0020\u007f-\u00a0\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    r"\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff"
)
VISIBLE = rf"^[^\u0000]*[^{BLANK}][^\u0000]*$"
# Format characters that show, and characters of private use; `emails` knows those above U+FFFF.
_HIDDEN = rf"{BLANK}\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\ue000-\uf8ff"
_ATOM = rf"[^{_HIDDEN}\"(),.:;<>@\[\\\]]+"
_LETTER = r"[^\s\u0000-\u002f\u003a-\u0040\u005b-\u0060\u007b-\u00a0]"
_INNER = r"[^\s\u0000-\u002c\u002e\u002f\u003a-\u0040\u005b-\u0060\u007b-\u00a0]"
_LABEL = rf"{_LETTER}(?:{_INNER}{{0,61}}{_LETTER})?"
_MAIL_LABEL = _LABEL.replace(r"\u007b-\u00a0", rf"\u007b-\u00a0{_HIDDEN}")
EMAIL = rf"^{_ATOM}(?:\.{_ATOM})*@{_MAIL_LABEL}(?:\.{_MAIL_LABEL})+$"
# 1 to 65535.
_PORT = r"[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]"
_REST = rf"(?::(?:{_PORT}))?(?:[/?#][^\s\u0000-\u0020\u007f]*)?$"
_SCHEME_AND_HOST = rf"[Hh][Tt][Tt][Pp][Ss]?://{_LABEL}(?:\.{_LABEL})*"
URL = rf"^{_SCHEME_AND_HOST}{_REST}"
WEBSITE = rf"^(?:{_SCHEME_AND_HOST}|{_LABEL}(?:\.{_LABEL})+){_REST}"
# A name of a host, maybe with a port: the ASCII of names, and whatever IDNA reads of the rest.
_HOST = r"[^\s\u0000-\u002c\u002f\u003a-\u0040\u005b-\u0060\u007b-\u007f]+(?::[0-9]{1,5})?\s*$"
HOST = rf"^\s*{_HOST}"
ORIGIN = rf"^[Hh][Tt][Tt][Pp][Ss]?://\s*{_HOST}"
SLUG = r"^[a-z0-9]+(?:-[a-z0-9]+)*$"
CODE = rf"^[^{BLANK}]+$"
# The form alone: it does not check the two check digits.
CNPJ = r"^\s*[0-9A-Za-z]{2}\.?[0-9A-Za-z]{3}\.?[0-9A-Za-z]{3}/?[0-9A-Za-z]{4}-?[0-9]{2}\s*$"
PHONE = r"^[0-9+()\-. x]{3,40}$"
# The form alone: gateway.records.values.zones lists the names.
ZONE = r"^[A-Z][0-9A-Za-z_+-]*(?:/[0-9A-Za-z_+-]+){0,2}$"
# Control characters except tab and line ends, and lone surrogates: not allowed in text.
NOT_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
