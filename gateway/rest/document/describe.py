"""Describes the operations of every resource; gateway.rest.records has their handlers.

It is one module because lists and exports share their parameters, creates and batches their bodies.
"""

from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from gateway.records import digests, exports
from gateway.records.included import MOST as INCLUDED
from gateway.records.query import LIMIT, MOST
from gateway.records.resource import Filter, Remove, Resource
from gateway.records.values import formats, numbers
from gateway.records.values.schemas import ANY_ID, ID, MOMENT
from gateway.rest.document import shapes
from gateway.rest.document.operations import Handler, Operation, Parameter, Response, Shape
from gateway.rest.document.schema_parts import reference, reference_to, title_of
from gateway.rest.selections import includes
from outbox.ids import ID_LENGTH

Described = Callable[[Handler], Operation]

IF_MATCH = Parameter(
    "If-Match", {"type": "string"},
    'Apply the change only if the record still has this ETag, such as `"1"`.', None, "header",
)  # fmt: skip
IF_NONE_MATCH = Parameter(
    "If-None-Match", {"type": "string"}, "Return 304 if the record still has this ETag.",
    '"7"', "header",
)  # fmt: skip
PREFER = Parameter(
    "Prefer", {"type": "string"},
    "`handling=strict` refuses unknown fields of the body and unknown parameters (RFC 7240).",
    "handling=strict", "header",
)  # fmt: skip
IDEMPOTENCY_KEY = Parameter(
    "Idempotency-Key",
    {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]([ -~]*[!-~])?$"},
    "Makes repeats safe for 24 hours: a repeated request gets the response of the first one. A new "
    "request needs a new key, such as `6b7f0c1e-order-1042`.",
    None, "header",
)  # fmt: skip
PAGE = Parameter(
    "page", {"type": "integer", "minimum": 1, "default": 1},
    "Number of the page.", 1,
)  # fmt: skip


def page_size(default: int = LIMIT, most: int = MOST) -> Parameter:
    """Return the parameter of the page size."""
    schema = {"type": "integer", "minimum": 1, "default": default}
    text = f"Page size; a number above {most} means {most}."
    return Parameter("limit", schema, text, default)


def create(resource: Resource) -> Described:
    """Describe POST on the collection."""
    response = Response(
        f"The {resource.noun} was created.", shapes.written(shapes.record(resource)),
        ("ETag", "Location", "X-Ignored-Fields", "Idempotent-Replayed"),
    )  # fmt: skip
    return partial(
        Operation, name=f"create{_thing(resource)}", tag=_tag(resource),
        summary=f"Create {_a(resource)}", responses={201: response}, parameters=(IDEMPOTENCY_KEY,),
        body=shapes.new(resource), refusals=_taken(resource),
    )  # fmt: skip


def read(resource: Resource) -> Described:
    """Describe GET of one record."""
    response = Response(f"The {resource.noun}.", shapes.selected(resource), ("ETag",))
    return partial(
        Operation, name=f"get{_thing(resource)}", tag=_tag(resource),
        summary=f"Read {_a(resource)}", responses={200: response},
        parameters=(id_of(resource.noun), *_selected(resource), IF_NONE_MATCH),
    )  # fmt: skip


def change(resource: Resource, refusals: Sequence[str] = ()) -> Described:
    """Describe PUT and PATCH of one record."""
    response = Response(
        f"The changed {resource.noun}.",
        shapes.written(shapes.record(resource)),
        ("ETag", "X-Ignored-Fields"),
    )
    return partial(
        Operation, name=f"update{_thing(resource)}", tag=_tag(resource),
        summary=f"Change {_a(resource)}", responses={200: response},
        description="Only the sent fields change; null clears a field (RFC 7396).",
        parameters=(id_of(resource.noun), IF_MATCH), body=shapes.changes(resource),
        refusals=(*_taken(resource), *refusals),
    )  # fmt: skip


def remove(resource: Resource) -> Described:
    """Describe DELETE of one record."""
    return partial(
        Operation, name=f"delete{_thing(resource)}", tag=_tag(resource),
        summary=f"Delete {_a(resource)} permanently", description=_left(resource),
        responses={200: Response(shapes.delete_message(resource), shapes.deleted(resource))},
        parameters=(id_of(resource.noun), IF_MATCH),
    )  # fmt: skip


def _left(resource: Resource) -> str:
    """Describe what a delete does to the records that point to the deleted one."""
    gone = [each.table.replace("_", " ") for each in resource.cascades if isinstance(each, Remove)]
    others = [
        each.table.replace("_", " ") for each in resource.cascades if not isinstance(each, Remove)
    ]
    sentences = []
    if gone:
        sentences.append(f"This also deletes its {_and(gone)}, without events.")
    if others:
        sentences.append(f"Other {_and(others)} that refer to it lose the reference.")
    return " ".join(sentences)


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
    """Describe POST of a verb on one record; if it `makes` another record, the status is 201."""
    result = makes or resource
    headers = ("ETag", "Idempotent-Replayed", *(("Location",) if makes else ()))
    response = Response(
        f"The {'new' if makes else 'changed'} {result.noun}.",
        shapes.written(shapes.record(result)),
        headers,
    )
    return partial(
        Operation, name=f"{word}{_thing(resource)}", tag=_tag(resource), summary=summary,
        responses={201 if makes else 200: response},
        parameters=(id_of(resource.noun), IDEMPOTENCY_KEY),
        body=body, body_optional=body is not None, refusals=refusals,
    )  # fmt: skip


def page(resource: Resource, **of: str) -> Described:
    """Describe GET of the collection; `of` names filters with their value in the path."""
    in_path = tuple(
        Parameter(of[f.name], {"type": "string"}, f.description, _example(resource, f), "path")
        for f in resource.filters
        if f.name in of
    )
    filters = tuple(_filter(resource, f) for f in resource.filters if f.name not in of)
    shape = shapes.page_of(
        shapes.record(resource), selected=shapes.selected(resource),
        beside=shapes.included(resource),
    )  # fmt: skip
    response = Response(f"One page of {resource.plural}.", shape, ("Link",))
    by = "".join(f"By{parameter[:1].upper()}{parameter[1:]}" for parameter in of.values())
    return partial(
        Operation, name=f"list{_plural(resource)}{by}", tag=_tag(resource),
        summary=f"List {resource.plural}" + " of one record" * bool(of), responses={200: response},
        parameters=(
            *in_path, PAGE, page_size(), *_search(resource), *filters, *_walk(resource),
            *_selected(resource),
        ),
    )  # fmt: skip


def batch(resource: Resource, most: int) -> Described:
    """Describe POST of many creates."""
    new = shapes.new(resource)
    body = {
        "type": "object",
        "properties": {
            "items": {
                "type": "array", "minItems": 1, "maxItems": most,
                "items": {
                    "description": "Another value gets a result with 400, alone.",
                    "anyOf": [reference(new.name), {}],
                },
            },
            "atomic": {
                "type": "boolean", "default": False,
                "description": "Write all items in one transaction, or none.",
            },
        },
        "required": ["items"],
    }  # fmt: skip
    example = {"items": [new.example], "atomic": False}
    parts = {new.name: new.schema, **new.parts}
    response = Response(
        "The result of each item: the status and the id of the new record, or the error.",
        shapes.RESULTS, ("X-Ignored-Fields", "Idempotent-Replayed"),
    )  # fmt: skip
    return partial(
        Operation, name=f"batch{_plural(resource)}", tag=_tag(resource),
        summary=f"Create many {resource.plural}", responses={207: response},
        parameters=(IDEMPOTENCY_KEY,),
        body=Shape(body, example, f"{_plural(resource)}Batch", parts),
        description="Each item is written in a transaction of its own, and a refused one leaves "
        "the others. With `atomic` all are written together, or the response is 400 with the "
        "faults of all items, such as `items[3].name`, and nothing is written. An item takes a "
        "token of the write limit. A repeat with the same Idempotency-Key returns the records that "
        "were made and tries refused items again.",
    )  # fmt: skip


def export(resource: Resource) -> Described:
    """Describe GET of the collection as a CSV file."""
    filters = tuple(_filter(resource, f) for f in resource.filters)
    names = ",".join(exports.header(resource))
    text = Shape({"type": "string"}, f"{names}\r\n")
    response = Response(
        f"The {resource.plural}, a line each, under a line with the names of the fields.", text,
        ("Content-Disposition",), media_type="text/csv",
    )  # fmt: skip
    return partial(
        Operation, name=f"export{_plural(resource)}", tag=_tag(resource),
        summary=f"Export {resource.plural} as CSV", responses={200: response},
        description="The records of one moment, oldest first unless `sort` says otherwise. Text "
        "that a spreadsheet would run as a formula has an apostrophe before it, which an import "
        "removes. Lists and objects are JSON. It takes ten tokens of the read limit; an account "
        "runs one export at a time. After five minutes the connection is closed.",
        parameters=(
            *_search(resource), *filters,
            *(parameter for parameter in _walk(resource) if parameter.name != "cursor"),
            Parameter(
                "separator", {"type": "string", "enum": [*exports.SEPARATORS], "default": ","},
                "What separates the cells.", ";",
            ),
            Parameter(
                "numbers",
                {"type": "string", "enum": [*exports.NUMBERS], "default": exports.NUMBERS[0]},
                "How numbers are written, by the names of imports; thousands are not grouped.",
                exports.NUMBERS[1],
            ),
            Parameter(
                "bom", {"type": "boolean", "default": False},
                "Begin with a byte order mark, by which Excel recognises UTF-8.", True,
            ),
        ),
    )  # fmt: skip


def digest(resource: Resource, response: Shape) -> Described:
    """Describe GET of the digest of a range of records."""
    return partial(
        Operation, name=f"digest{_plural(resource)}", tag=_tag(resource),
        summary=f"Compare a copy of the {resource.plural}",
        responses={200: Response("The parts of the range, without holes.", response)},
        description="Count and SHA-256 of a range of the caller's records, in parts of equally "
        "many records. The digest is over the lines `id:version` of the part, each with a line "
        "feed, in the order of ids; the version is the number in the record's ETag. Compare each "
        "part with your own records from `from` to before `to`, and ask for the parts of one that "
        f"differs. At most {digests.MOST:,} records are read; with more, `next` is where to go "
        "on. It takes ten tokens of the read limit.",
        parameters=(
            Parameter("from", ANY_ID, "The first id of the range; all from the start without it.",
                      shapes.example_id(resource.noun)),
            Parameter("to", ANY_ID, "The id behind the range; up to the last record without it.",
                      "f" * ID_LENGTH),
            Parameter(
                "parts",
                {"type": "integer", "minimum": 1, "maximum": digests.PARTS,
                 "default": digests.USUAL_PARTS},
                "How many parts; a range of fewer records has a part for each.", 256,
            ),
        ),
    )  # fmt: skip


def _search(resource: Resource) -> tuple[Parameter, ...]:
    if not resource.search:
        return ()
    fields = " or ".join(resource.search)
    return (
        Parameter(
            "search", {"type": "string"},
            f"Words or parts of words of {fields}, in any order; case and accents are ignored.",
            "silva",
        ),
    )  # fmt: skip


def _walk(resource: Resource) -> tuple[Parameter, ...]:
    names = "|".join(sort.name for sort in resource.sorts)
    sort_key = rf"\s*-?({names})\s*"
    example = shapes.example_id(resource.noun)
    return (
        Parameter(
            "ids", {"type": "string"}, "Only records with these ids, separated by commas.",
            example,
        ),
        Parameter(
            "updatedSince", MOMENT,
            "Only records created or changed then or later, in the order of their last change.",
            "2026-11-01T00:00:00Z",
        ),
        Parameter(
            "sort", {"type": "string", "pattern": f"^({sort_key}(,{sort_key})*)?$"},
            f"Sort keys, separated by commas; a leading minus sorts in descending order. Keys: "
            f"{', '.join(sort.name for sort in resource.sorts)}. "
            "Records without a value are last in both directions. Default: -createdAt.",
            f"-{resource.sorts[0].name}",
        ),
        Parameter(
            "cursor", {"type": "string", "format": "cursor"},
            "The nextCursor of the previous page, with the same sort; concurrent writes cause no "
            "gaps and no repeats.",
            urlsafe_b64encode(f"c{shapes.MOMENT}.{example}".encode()).decode().rstrip("="),
        ),
    )  # fmt: skip


def _selected(resource: Resource) -> tuple[Parameter, ...]:
    fields = Parameter(
        "fields", {"type": "string"},
        "Only these members of each record, separated by commas, and `id`.",
        ",".join(field.name for field in resource.fields[:2]),
    )  # fmt: skip
    names = [*includes(resource)]
    if not names:
        return (fields,)
    known = ", ".join(names)
    return (
        fields,
        Parameter(
            "include", {"type": "string"},
            f"Also send the records that the response refers to, separated by commas: {known}. "
            f"At most {INCLUDED} of each resource; `included` says when there are more. The ETag "
            "is the record's; If-None-Match is ignored. Each name costs a read of the rate limit.",
            names[0],
        ),
    )  # fmt: skip


def _example(resource: Resource, offered: Filter) -> Any:
    """Return the example of a filter: that of its field, or of an item of its list."""
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


def _filter(resource: Resource, offered: Filter) -> Parameter:
    return Parameter(
        offered.name, schema_of(resource, offered), offered.description,
        _example(resource, offered), allowed=offered.allowed,
    )  # fmt: skip


def schema_of(resource: Resource, offered: Filter) -> Mapping[str, Any]:
    """Return the schema of a filter's parameter."""
    if offered.allowed:
        field = resource.named.get(offered.name)
        if field is not None and field.format.schema.get("enum") == list(offered.allowed):
            return reference_to(resource, field)
        return {"type": "string", "enum": list(offered.allowed)}
    return {
        "money": numbers.money().schema, "boolean": formats.boolean().schema, "from": MOMENT,
        "to": MOMENT, "id": ANY_ID,
    }.get(offered.kind, {"type": "string"})  # fmt: skip


def id_of(noun: str) -> Parameter:
    """Return the path parameter with the id of a record."""
    return Parameter("id", ID, f"The id of the {noun}.", shapes.example_id(noun), "path")


def _taken(resource: Resource) -> tuple[str, ...]:
    return ("conflict",) if any(field.unique for field in resource.fields) else ()


def _thing(resource: Resource) -> str:
    return title_of(resource)


def _plural(resource: Resource) -> str:
    return "".join(word.capitalize() for word in resource.plural.split("-"))


def _tag(resource: Resource) -> str:
    return resource.plural.replace("-", " ").capitalize()


def _a(resource: Resource) -> str:
    return f"{'an' if resource.noun[0] in 'aeiou' else 'a'} {resource.noun}"
