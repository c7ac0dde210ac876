"""Prints each event of the feed once, and remembers its place in the file last-event."""

import json
import os
import pathlib
import urllib.request

URL, KEY = os.environ["CARTEIRO_URL"], os.environ["CARTEIRO_KEY"]
PLACE = pathlib.Path("last-event")

more = True
while more:
    after = PLACE.read_text() if PLACE.exists() else ""
    request = urllib.request.Request(
        f"{URL}/api/events?limit=100" + (f"&after={after}" if after else ""),
        headers={"X-API-Key": KEY},
    )
    with urllib.request.urlopen(request) as response:
        page = json.load(response)
    for event in page["data"]:
        print(event["id"], event["body"])  # handle it like a delivery: the id identifies duplicates
    if page["data"]:
        PLACE.write_text(page["nextCursor"])
    more = page["hasMore"]
