"""Reads and writes the cookies of the storefront: the customer's token and the cart's token."""

from aiohttp import web

from gateway.server.http.proxies import CLIENT

AUTH = "authJwtClient"
CART = "cartSession"
CART_HEADER = "X-Cart-Session"
SECONDS = 30 * 86_400


class Cookies:
    """The tokens that the request presents, and the changes for its response."""

    def __init__(self, request: web.Request) -> None:
        cookies = request.cookies
        word, _, rest = request.headers.get("Authorization", "").partition(" ")
        bearer = rest.strip() or None if word.lower() == "bearer" else None
        self.bearer: str | None = bearer
        """The customer's token of Authorization: Bearer, which precedes the cookie."""
        self.auth: str | None = cookies.get(AUTH)
        """The customer's token of the cookie."""
        carts = (cookies.get(CART), request.headers.get(CART_HEADER))
        self.carts: tuple[str, ...] = tuple(filter(None, carts))
        """The tokens of carts, of any store: the cookie, then the header X-Cart-Session."""
        self._secure = request[CLIENT].scheme == "https"
        self._set: dict[str, tuple[str, bool]] = {}

    def set_auth(self, token: str | None, same_site: str) -> None:
        """Set the customer's token for the browser; None deletes it. `same_site`: lax or none."""
        self.auth, self.bearer = token, None
        self._set[AUTH] = (token or "", same_site == "none")

    def set_cart(self, token: str | None, same_site: str) -> None:
        """Set the cart's token for the browser; None deletes it."""
        self.carts = () if token is None else (token,)
        self._set[CART] = (token or "", same_site == "none")

    def write(self, response: web.StreamResponse) -> None:
        """Add the Set-Cookie headers of the changes, and the cart's token as a header."""
        for name, (value, cross_site) in self._set.items():
            response.set_cookie(
                name, value, path="/", httponly=True, secure=self._secure,
                max_age=SECONDS if value else 0,
                # SameSite=None needs Secure, so plain http gets Lax.
                samesite="None" if cross_site and self._secure else "Lax",
            )  # fmt: skip
        if CART in self._set:
            response.headers[CART_HEADER] = self._set[CART][0]


COOKIES = web.RequestKey("COOKIES", Cookies)


def cookies_of(request: web.Request) -> Cookies:
    """Return the cookies of a request, which are read once."""
    cookies = request.get(COOKIES)
    if cookies is None:
        cookies = request[COOKIES] = Cookies(request)
    return cookies
