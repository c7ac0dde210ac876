"""Prepares passwords for comparison: RFC 8265, profile OpaqueString.

The same password has several spellings: keyboards write é as one character or as two, and some
write a wide space. Case and width stay, because they make passwords different.
"""

from precis_i18n import get_profile

from gateway.records.values.emails import character_name

LONGEST = 1_000
"""No password is longer; the time to sort a run of marks grows with the square of its length."""
_PROFILE = get_profile("OpaqueString")


def prepared(password: str) -> str | None:
    """Return the form in which spellings of a password are equal; None for a forbidden one."""
    if not password or (password.isascii() and password.isprintable()) or len(password) > LONGEST:
        return password
    try:
        return str(_PROFILE.enforce(password))
    except UnicodeEncodeError:
        return None


def forbidden(password: str) -> str:
    """Return the first character that no password has, as its code and name; else nothing."""
    try:
        if prepared(password) is None:
            _PROFILE.enforce(password)
    except UnicodeEncodeError as error:
        return character_name(str(error.object)[error.start])
    return ""
