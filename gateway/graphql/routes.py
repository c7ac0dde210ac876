"""Lists every route of the GraphQL door."""

from aiohttp import web

from gateway.graphql import view

PATH = "/graphql"


def add_graphql(app: web.Application) -> None:
    """Add the routes of the storefront to `app`."""
    app.router.add_get(PATH, view.get)
    app.router.add_post(PATH, view.post)
