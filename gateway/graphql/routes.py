"""Lists every route of the GraphQL door."""

from aiohttp import web

from gateway.graphql import graphiql, view

PATH = "/graphql"


def add_graphql(router: web.UrlDispatcher) -> None:
    """Add the routes of the storefront."""
    router.add_get(PATH, view.get)
    router.add_post(PATH, view.post)
    router.add_options(PATH, view.options)
    router.add_get(graphiql.SCHEMA, graphiql.schema_text)
    router.add_get(graphiql.ASSETS, graphiql.asset)
    router.add_route("*", PATH, view.refuse_method)
