"""Writes the mails to customers, in Portuguese and English, when they are sent."""

from urllib.parse import urlencode

from gateway.domain.queued_mail import Letter, line
from gateway.domain.storefront.mail import mail_tokens, mails
from gateway.domain.storefront.mail.mails import Kind
from outbox.database.transaction import Tx

_FOUND = """
select c.id, c.email, s.name, s.hostname, s.password_reset_url, s.email_verification_url
from customers c join stores s on s.id = c.store_id where c.id = $1 and c.email is not null
"""
SUBJECTS: dict[Kind, str] = {
    "reset": "Nova senha / New password",
    "verify": "Confirme seu e-mail / Confirm your email",
    "secured": "Sua conta foi protegida / Your account was secured",
}
TEXTS: dict[Kind, str] = {
    "reset": """\
Para escolher uma nova senha em {store}, abra este link dentro de uma hora:
To choose a new password at {store}, open this link within an hour:

{link}

Se você não pediu isso, ignore esta mensagem: sua senha continua a mesma.
If you did not ask for this, ignore this message: your password stays the same.
""",
    "verify": """\
Para confirmar que este e-mail é seu em {store}, abra este link dentro de sete dias:
To confirm that this email is yours at {store}, open this link within seven days:

{link}

Se você não criou uma conta, ignore esta mensagem.
If you did not create an account, ignore this message.
""",
    "secured": """\
Alguém entrou em {store} com um provedor de identidade que confirma que este e-mail é seu. O e-mail
da conta ainda não estava confirmado; por isso, a senha e as sessões anteriores foram removidas.
Somebody signed in at {store} with an identity provider that confirms this email as theirs. The
account's email was not confirmed before, so its password and earlier sessions were removed.

Se não foi você, responda a esta mensagem.
If this was not you, reply to this message.
""",
}


async def next_letter(tx: Tx, token: str) -> Letter | None:
    """Start an attempt at the mail that is due first, with a new token; None when none is due."""
    while (mail := await mails.take(tx)) is not None:
        row = await tx.one(_FOUND, mail.customer_id)
        if row is None:
            await mails.sent(tx, mail)
            continue
        link = ""
        if mail.kind == "reset":
            link = _link(row["password_reset_url"], row["hostname"], "reset-password", token)
            await mail_tokens.add(tx, mail.customer_id, "reset", token)
        elif mail.kind == "verify":
            link = _link(row["email_verification_url"], row["hostname"], "verify-email", token)
            await mail_tokens.add(tx, mail.customer_id, "verify", token)
        store = line(row["name"])
        return Letter(
            mail, row["email"], store, f"{SUBJECTS[mail.kind]} - {store}",
            TEXTS[mail.kind].format(store=store, link=link),
        )  # fmt: skip
    return None


def _link(page: str | None, hostname: str, path: str, token: str) -> str:
    """Return the address of the shop's page with the token.

    The hostname is the store's own, never one that a request names.
    """
    address = page or f"https://{hostname}/{path}"
    before, hash_sign, fragment = address.partition("#")
    joint = "&" if "?" in before else "?"
    return f"{before}{joint}{urlencode({'token': token})}{hash_sign}{fragment}"
