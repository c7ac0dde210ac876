"""The descriptions of what every resource can do; gateway.rest.records holds the doing."""

from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from gateway.records.query import LIMIT, MOST
from gateway.records.resource import Filter, Remove, Resource
from gateway.records.values import formats, instants, numbers
from gateway.records.values.schemas import ID
from gateway.rest.document import shapes
from gateway.rest.document.operations import Answer, Handler, Operation, Parameter, Shape

Described = Callable[[Handler], Operation]

IF_MATCH = Parameter(
    "If-Match", {"type": "string"}, "An ETag: the change is made only while it is the record's.",
    '"1"', "header",
)  # fmt: skip
IF_NONE_MATCH = Parameter(
    "If-None-Match", {"type": "string"}, "An ETag: answered by 304 while it is the record's.",
    '"7"', "header",
)  # fmt: skip
IDEMPOTENCY_KEY = Parameter(
    "Idempotency-Key",
    {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]([ -~]*[!-~])?$"},
    "Makes it safe to repeat the request for 24 hours: a repeat gets the first one's answer.",
    "6b7f0c1e-order-1042", "header",
)  # fmt: skip
PAGE = Parameter(
    "page", {"type": "integer", "minimum": 1, "default": 1},
    "Which page; anything but a whole number above 0 is page 1.", 1,
)  # fmt: skip


def page_size(default: int = LIMIT, most: int = MOST) -> Parameter:
    """The page size, clamped."""
    schema = {"type": "integer", "minimum": 1, "maximum": most, "default": default}
    text = f"Page size. More than {most} is {most}; anything else that is no size is {default}."
    return Parameter("limit", schema, text, default)


def create(resource: Resource) -> Described:
    """POST on the collection."""
    answer = Answer(
        f"The {resource.noun} was created.", shapes.written(shapes.record(resource)),
        ("ETag", "Location", "X-Ignored-Fields", "Idempotent-Replayed"),
    )  # fmt: skip
    return partial(
        Operation, name=f"create{_thing(resource)}", tag=_tag(resource),
        summary=f"Create {_a(resource)}", answers={201: answer}, parameters=(IDEMPOTENCY_KEY,),
        body=shapes.new(resource), refusals=_taken(resource),
    )  # fmt: skip


def read(resource: Resource) -> Described:
    """GET one record."""
    answer = Answer(f"The {resource.noun}.", shapes.record(resource), ("ETag",))
    return partial(
        Operation, name=f"get{_thing(resource)}", tag=_tag(resource),
        summary=f"Read {_a(resource)}", answers={200: answer},
        parameters=(id_of(resource.noun), IF_NONE_MATCH),
    )  # fmt: skip


def change(resource: Resource, refusals: Sequence[str] = ()) -> Described:
    """PUT and PATCH one record."""
    answer = Answer(
        f"The {resource.noun} as it is now.",
        shapes.written(shapes.record(resource)),
        ("ETag", "X-Ignored-Fields"),
    )
    return partial(
        Operation, name=f"update{_thing(resource)}", tag=_tag(resource),
        summary=f"Change {_a(resource)}", answers={200: answer},
        description="Only what is sent changes; null clears a field (RFC 7396).",
        parameters=(id_of(resource.noun), IF_MATCH), body=shapes.changes(resource),
        refusals=(*_taken(resource), *refusals),
    )  # fmt: skip


def remove(resource: Resource) -> Described:
    """DELETE one record."""
    return partial(
        Operation, name=f"delete{_thing(resource)}", tag=_tag(resource),
        summary=f"Delete {_a(resource)} for good", description=_left(resource),
        answers={200: Answer(shapes.said_of_delete(resource), shapes.deleted(resource))},
        parameters=(id_of(resource.noun), IF_MATCH),
    )  # fmt: skip


def _left(resource: Resource) -> str:
    """What a delete does to the records that point to the deleted one."""
    gone = [each.table for each in resource.cascades if isinstance(each, Remove)]
    kept = [each.table for each in resource.cascades if not isinstance(each, Remove)]
    said = []
    if gone:
        said.append(f"Its {_and(gone)} are deleted with it, without events of their own.")
    if kept:
        said.append(f"The {_and(kept)} that name it stay, without it.")
    return " ".join(said)


def _and(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def verb(
    resource: Resource,
    word: str,
    summary: str,
    *,
    body: Shape | None = None,
    makes: Resource | None = None,
    refusals: Sequence[str] = (),
) -> Described:
    """POST a verb on one record; what it `makes` is another record, answered by 201."""
    result = makes or resource
    headers = ("ETag", "Idempotent-Replayed", *(("Location",) if makes else ()))
    answer = Answer(
        f"The {result.noun} as it is now.", shapes.written(shapes.record(result)), headers
    )
    return partial(
        Operation, name=f"{word}{_thing(resource)}", tag=_tag(resource), summary=summary,
        answers={201 if makes else 200: answer}, parameters=(id_of(resource.noun), IDEMPOTENCY_KEY),
        body=body, body_optional=body is not None, refusals=refusals,
    )  # fmt: skip


def page(resource: Resource, **of: str) -> Described:
    """GET the collection; `of` names filters whose value stands in the path."""
    in_path = tuple(
        Parameter(of[f.name], schema_of(f), f.description, _example(resource, f), "path")
        for f in resource.filters
        if f.name in of
    )
    filters = tuple(
        Parameter(f.name, schema_of(f), f.description, _example(resource, f))
        for f in resource.filters
        if f.name not in of
    )
    answer = Answer(
        f"One page of {resource.plural}.", shapes.page_of(shapes.record(resource)), ("Link",)
    )
    by = "".join(f"By{parameter[:1].upper()}{parameter[1:]}" for parameter in of.values())
    return partial(
        Operation, name=f"list{_plural(resource)}{by}", tag=_tag(resource),
        summary=f"List {resource.plural}" + " of one record" * bool(of), answers={200: answer},
        parameters=(*in_path, PAGE, page_size(), *_search(resource), *filters, *_walk(resource)),
    )  # fmt: skip


def _search(resource: Resource) -> tuple[Parameter, ...]:
    if not resource.search:
        return ()
    fields = " or ".join(resource.search)
    return (
        Parameter(
            "search", {"type": "string"},
            f"Part of {fields}, whatever its case and accents.", "silva",
        ),
    )  # fmt: skip


def _walk(resource: Resource) -> tuple[Parameter, ...]:
    names = "|".join(sort.name for sort in resource.sorts)
    one = rf"\s*-?({names})\s*"
    example = shapes.example_id(resource.noun)
    return (
        Parameter(
            "ids", {"type": "string"}, "Only records with these ids, separated by commas.",
            example,
        ),
        Parameter(
            "updatedSince", {"type": "string", "format": "date-time"},
            "Only records created or changed then or later, in the order of their last change.",
            "2026-11-01T00:00:00Z",
        ),
        Parameter(
            "sort", {"type": "string", "pattern": f"^({one}(,{one})*)?$"},
            f"Keys of the order, separated by commas, a minus before to reverse one: "
            f"{', '.join(sort.name for sort in resource.sorts)}. Default -createdAt.",
            f"-{resource.sorts[0].name}",
        ),
        Parameter(
            "cursor", {"type": "string", "format": "cursor"},
            "The nextCursor of the page before; it walks the default order and nothing is left "
            "out or shown twice while others write.",
            urlsafe_b64encode(f"c{shapes.MOMENT}.{example}".encode()).decode().rstrip("="),
        ),
    )  # fmt: skip


def _example(resource: Resource, offered: Filter) -> Any:
    """That of the field of this name, or of an item of the list that it looks into."""
    named = resource.named
    if offered.name in named:
        return named[offered.name].example
    for ending in ("s", "Ids"):
        field = named.get(offered.name.removesuffix("Id") + ending)
        if field is not None:
            return field.example[0]
    if offered.allowed:
        return offered.allowed[0]
    return {"from": "2026-11-01", "to": "2026-11-01", "money": 1000, "boolean": True}.get(
        offered.kind, "Coffee"
    )


def schema_of(offered: Filter) -> Mapping[str, Any]:
    """The schema of a filter's parameter."""
    if offered.allowed:
        return {"type": "string", "enum": list(offered.allowed)}
    forms = {
        "money": numbers.money(), "boolean": formats.boolean(), "from": instants.instant(),
        "to": instants.instant(),
    }  # fmt: skip
    return forms[offered.kind].schema if offered.kind in forms else {"type": "string"}


def id_of(noun: str) -> Parameter:
    """The id of a record in the path."""
    return Parameter("id", ID, f"The id of the {noun}.", shapes.example_id(noun), "path")


def _taken(resource: Resource) -> tuple[str, ...]:
    return ("conflict",) if any(field.unique for field in resource.fields) else ()


def _thing(resource: Resource) -> str:
    return shapes.title_of(resource)


def _plural(resource: Resource) -> str:
    return "".join(word.capitalize() for word in resource.plural.split("-"))


def _tag(resource: Resource) -> str:
    return resource.plural.replace("-", " ").capitalize()


def _a(resource: Resource) -> str:
    return f"{'an' if resource.noun[0] in 'aeiou' else 'a'} {resource.noun}"
