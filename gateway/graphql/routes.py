"""Lists every route of the GraphQL door."""

from aiohttp import web

from gateway.graphql import view


def add_graphql(app: web.Application) -> None:
    """Add the routes of the storefront to `app`."""
    app.router.add_post("/graphql", view.post)
