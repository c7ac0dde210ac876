"""The drawings: every bar and line is at the height of its figure, on an axis that holds all."""

import re
from bisect import bisect_left

from gateway.console.layout import charts
from outbox.queue.log.chart_figures import Figures, total
from outbox.queue.state.attempt_counts import BOUNDS, TIMES

BAR = re.compile(r"M(\d+) ([\d.]+)v-([\d.]+)h8v[\d.]+z")


def figures(succeeded: int = 0, failed: int = 0, took: int = 30_000) -> Figures:
    times = [0] * len(TIMES)
    times[bisect_left(BOUNDS, took)] = succeeded + failed
    found = Figures(times=times)
    found.results.update({"success": succeeded, "http_5xx": failed})
    return found


def bars(path: str) -> dict[int, tuple[float, float]]:
    """Return the step, the lower end and the height of each bar."""
    found = [(int(x), float(y), float(height)) for x, y, height in BAR.findall(path)]
    assert "".join(BAR.sub("", path)) == ""
    return {(x - 1) // charts.STEP_WIDTH: (round(100 - y, 1), height) for x, y, height in found}


def test_bars_stand_on_each_other_at_the_height_of_their_figures() -> None:
    steps = [figures(50, 10), figures(), figures(0, 100), figures(75)]
    chart = charts.attempts(steps)
    good, bad = (bars(path) for _, path in chart.paths)
    assert (chart.ticks, chart.width, chart.grid) == (("100", "50", "0"), 40, [0, 50, 100])
    assert good == {0: (0, 50), 3: (0, 75)}
    assert bad == {0: (50, 10), 2: (0, 100)}
    # One failure among very many is seen.
    good, bad = (bars(path) for _, path in charts.attempts([figures(100_000, 1)]).paths)
    assert bad[0][1] == charts.LEAST_HEIGHT
    assert good[0][1] + bad[0][1] <= 100


def test_an_axis_ends_at_a_round_number_that_holds_all() -> None:
    for most, ticks in (
        (0, ("2", "1", "0")), (1, ("2", "1", "0")), (3, ("4", "2", "0")), (10, ("10", "5", "0")),
        (11, ("20", "10", "0")), (61, ("100", "50", "0")), (1_500, ("2k", "1k", "0")),
        (2_500, ("4k", "2k", "0")), (99_999_999, ("100M", "50M", "0")),
    ):  # fmt: skip
        assert charts.attempts([figures(most)]).ticks == ticks


def test_a_line_has_a_flat_piece_for_each_step_and_gaps_where_nothing_was() -> None:
    steps = [figures(1), figures(1, 1), figures(), figures(0, 1), figures()]
    [(_, path)] = charts.rate(steps).paths
    assert path == "M0 0h10V50h10M30 100h10"


def test_an_axis_of_durations_holds_the_fastest_and_the_slowest() -> None:
    steps = [figures(10, took=1_000), figures(10, took=29_000_000)]
    chart = charts.durations(steps)
    assert chart.ticks == ["100 s", "10 s", "1 s", "100 ms", "10 ms", "1 ms"]
    for _, path in chart.paths:
        heights = [float(y) for y in re.findall(r"[MV](?:\d+ )?([\d.]+)", path)]
        assert len(heights) == 2
        assert 0 <= heights[1] < heights[0] <= 100
    assert charts.durations([]).ticks
    assert [path for _, path in charts.durations([figures()]).paths] == ["", ""]


def test_a_range_that_nothing_is_kept_for_is_not_offered() -> None:
    assert [one.name for one in charts.offered(30)] == ["3h", "24h", "7d", "30d"]
    assert [one.name for one in charts.offered(7)] == ["3h", "24h", "7d"]
    assert [one.name for one in charts.offered(1)] == ["3h", "24h"]
    assert charts.chosen("30d", 7) is charts.USUAL
    assert charts.chosen("<script>", 30) is charts.USUAL


def test_the_parts_of_a_total_are_its_sum() -> None:
    whole = total([figures(3, 1), figures(2), figures(0, 5)])
    assert (whole.succeeded, whole.failed, sum(whole.times), whole.rate) == (5, 6, 11, 5 / 11)
    whole.results.update({"exhausted": 2, "gone": 1, "aborted": 4})
    assert (whole.failed, whole.lost, whole.rate) == (6, 3, 5 / 11)
