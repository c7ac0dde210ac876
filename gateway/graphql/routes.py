"""Lists every route of the GraphQL door."""

from aiohttp import web

from gateway.graphql import pages, view
from gateway.graphql.documents import Documents
from gateway.graphql.schema import schema

PATH = "/graphql"


def add_graphql(app: web.Application) -> None:
    """Add the routes of the storefront to `app`."""
    app[view.DOCUMENTS] = Documents(schema())
    app.router.add_get(PATH, view.get)
    app.router.add_post(PATH, view.post)
    app.router.add_options(PATH, view.options)
    app.router.add_get(pages.SCHEMA, pages.schema_text)
    app.router.add_get(pages.ASSETS, pages.asset)
    app.router.add_route("*", PATH, view.refuse_method)
