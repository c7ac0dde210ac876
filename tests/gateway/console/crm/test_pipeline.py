"""The settings of the pipeline in the console: the rules of the REST API, and a lost race."""

from tests.support.console import Guest
from tests.support.rest import Person

PATH = "/console/settings/pipeline"


async def test_stages_are_saved_in_their_order(maria: Guest, api: Person) -> None:
    page = await maria.get(PATH)
    assert "lead\nqualified\nproposal" in page.html
    page = await maria.submit(PATH, version="0", stages="first\r\n second \r\n\r\n", strict="true")
    assert page.path == f"{PATH}?done=saved"
    saved = (await api.get("/api/settings/pipeline")).body
    assert (saved["stages"], saved["strict"]) == (["first", "second"], True)
    # A second tab does not undo it.
    page = await maria.submit(PATH, version="0", stages="other")
    assert page.status == 409
    assert (await api.get("/api/settings/pipeline")).body == saved


async def test_what_is_wrong_is_told_and_kept(maria: Guest, api: Person) -> None:
    await api.put("/api/settings/pipeline", {"stages": ["first"], "strict": True})
    page = await maria.submit(PATH, version="1", stages="x" * 65, strict="true")
    assert page.status == 400
    assert 'id="stages-fault"' in page.html
    assert "x" * 65 in page.html
    await api.put("/api/settings/pipeline", {"stages": [], "strict": False})
    page = await maria.submit(PATH, version="2", stages="", strict="true")
    saved = (await api.get("/api/settings/pipeline")).body
    # An empty form asks for the usual stages.
    assert (page.status, len(saved["stages"])) == (200, 5)
