"""Resolves stores."""

from gateway.graphql.ids import global_id
from gateway.graphql.visit import Args, Visit
from gateway.records.record import Record


async def store(visit: Visit, args: Args) -> Record:
    return (await visit.visitor(args["hostname"])).store


QUERIES = {"store": store}
TYPES = {
    "Store": {
        "id": lambda found, visit, args: global_id("Store", found.id),
        "name": lambda found, visit, args: found["name"],
        "hostname": lambda found, visit, args: found["hostname"],
    }
}
