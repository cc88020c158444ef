"""Schedules computed by hand: the smallest workloads on which two rules differ."""

import pytest

from engines import ENGINES, workload_of

pytestmark = pytest.mark.parametrize("engine", ENGINES.values(), ids=list(ENGINES))


def starts(engine, processors, *jobs, **settings):
    """Return the start times of jobs given as (submit, run, request, processors, user = 0)."""
    return [s.start_time for s in engine(workload_of(jobs, processors), **settings)]


def at_once(*shapes):
    """Return jobs all submitted at 0 that ask for exactly what they need, from (processors, s)."""
    return [(0, run_time, run_time, processors) for processors, run_time in shapes]


def test_backfilled_job_pushes_back_the_third_job(engine):
    """One processor is extra beside the head H, so the long B may take it, and J pays.

    ::

        RRRRRRRRRRHHHHHHHHHH          R 2p x 10, H 3p x 10, J 4p x 5, B 1p x 1000
        RRRRRRRRRRHHHHHHHHHH     JJJJJ
        ..........HHHHHHHHHH ... JJJJJ
        BBBBBBBBBBBBBBBBBBBB ... JJJJJ
        0         10        20   1000
    """
    jobs = at_once((2, 10), (3, 10), (4, 5), (1, 1000))
    schedule = engine(workload_of(jobs, 4))
    assert [s.start_time for s in schedule] == [0, 10, 1000, 0]
    assert [s.backfilled for s in schedule] == [False, False, False, True]


def test_without_backfilling_nothing_overtakes_the_head(engine):
    """The workload above; B waits for its turn."""
    jobs = at_once((2, 10), (3, 10), (4, 5), (1, 1000))
    assert starts(engine, 4, *jobs, backfill="none") == [0, 10, 20, 25]


def test_job_of_exactly_the_extra_processors_starts(engine):
    """Extra is 4 - 3 = 1 and B needs 1.

    ::

        RRRRRRRRRRHHHHHHHHHH          R 2p x 10, H 3p x 10, B 1p x 50
        RRRRRRRRRRHHHHHHHHHH
        ..........HHHHHHHHHH
        BBBBBBBBBBBBBBBBBBBB...
    """
    assert starts(engine, 4, *at_once((2, 10), (3, 10), (1, 50))) == [0, 10, 0]


def test_all_releases_tied_at_the_shadow_time_count_as_extra(engine):
    """R2 alone would free enough for H, yet R1 ends at that instant too: extra is 2, not 1.

    ::

        1111111111HHHHHHHHHH          R1 1p x 10, R2 2p x 10, H 2p x 10, B 1p x 50
        2222222222HHHHHHHHHH
        2222222222..........
        BBBBBBBBBBBBBBBBBBBB...
    """
    assert starts(engine, 4, *at_once((1, 10), (2, 10), (2, 10), (1, 50))) == [0, 0, 10, 0]


def test_extra_processors_are_used_up(engine):
    """B1 takes the one extra processor; B2 would delay H.

    ::

        RRRRRRRRRRHHHHHHHHHH2...      R 2p x 10, H 3p x 10, B1 and B2 1p x 50
        RRRRRRRRRRHHHHHHHHHH
        ..........HHHHHHHHHH
        11111111111111111111...
    """
    assert starts(engine, 4, *at_once((2, 10), (3, 10), (1, 50), (1, 50))) == [0, 10, 0, 20]


def test_job_that_ends_at_the_shadow_time_starts(engine):
    """B is back at 10, exactly when H needs its processors.

    ::

        RRRRRRRRRRHHHHH               R 2p x 10, H 4p x 5, B 2p x 10
        RRRRRRRRRRHHHHH
        BBBBBBBBBBHHHHH
        BBBBBBBBBBHHHHH
    """
    assert starts(engine, 4, *at_once((2, 10), (4, 5), (2, 10))) == [0, 10, 0]


@pytest.mark.parametrize("policy", ["FCFS", "WFP3"])
def test_job_back_before_the_shadow_time_leaves_the_extra_processors_alone(engine, policy):
    """B1 would fit the extra processor but is back in time, so B2 may have it.

    So it is where B1 comes at 5 and B2 at 6, and where the order is made at each pass.

    ::

        RRRRRRRRRRHHHHHHHHHH          R 2p x 10, H 3p x 10, B1 1p x 10, B2 1p x 50
        RRRRRRRRRRHHHHHHHHHH
        1111111111HHHHHHHHHH
        22222222222222222222...
    """
    jobs = at_once((2, 10), (3, 10), (1, 10), (1, 50))
    assert starts(engine, 4, *jobs, policy=policy) == [0, 10, 0, 0]
    late = [(5, 5, 5, 1), (6, 50, 50, 1)]
    assert starts(engine, 4, *jobs[:2], *late, policy=policy) == [0, 10, 5, 6]


def test_candidates_are_taken_greedily_in_order(engine):
    """Seven processors are free until 100: EASY takes A (4) and C (2), though B and C would fill 7.

    ::

        R 3p x 100, H 10p x 10, A 4p x 50, B 5p x 50, C 2p x 50
        A and C at 0, B at 50, H at 100
    """
    jobs = at_once((3, 100), (10, 10), (4, 50), (5, 50), (2, 50))
    assert starts(engine, 10, *jobs) == [0, 100, 0, 50, 0]


def test_backfill_order_may_differ_from_the_queue_order(engine):
    """The workload above, shortest candidates first: C, one second shorter, precedes A and B.

    C (2) and A (4) fill six of seven; with C shortest and B shorter than A, C and B fill all.
    """
    jobs = at_once((3, 100), (10, 10), (4, 50), (5, 49), (2, 48))
    assert starts(engine, 10, *jobs) == [0, 100, 0, 50, 0]
    assert starts(engine, 10, *jobs, backfill_order="SPF") == [0, 100, 49, 0, 0]


CONSERVATIVE = ("conservative", "conservative:compress=shift", "depth:k=inf")


@pytest.mark.parametrize("backfill", CONSERVATIVE)
@pytest.mark.parametrize(
    ("processors", "shapes", "expected"),
    [
        (4, [(2, 10), (3, 10), (4, 5), (1, 1000)], [0, 10, 20, 25]),
        (4, [(2, 10), (3, 10), (1, 50)], [0, 10, 0]),
        (4, [(1, 10), (2, 10), (2, 10), (1, 50)], [0, 0, 10, 0]),
        (4, [(2, 10), (3, 10), (1, 50), (1, 50)], [0, 10, 0, 20]),
        (4, [(2, 10), (4, 5), (2, 10)], [0, 10, 0]),
        (10, [(3, 100), (10, 10), (4, 50), (5, 50), (2, 50)], [0, 100, 0, 50, 0]),
    ],
)
def test_conservative_backfilling_delays_nobody_who_came_before(
    engine, backfill, processors, shapes, expected
):
    """The cases above, but for the first: J has a reservation, too, and the long B must wait.

    ::

        RRRRRRRRRRHHHHHHHHHHJJJJJ          R 2p x 10, H 3p x 10, J 4p x 5, B 1p x 1000
        RRRRRRRRRRHHHHHHHHHHJJJJJ
        ..........HHHHHHHHHHJJJJJ
        ....................JJJJJBBBBB...
        0         10        20   25
    """
    assert starts(engine, processors, *at_once(*shapes), backfill=backfill) == expected


def test_second_reservation_protects_the_second_misfit(engine):
    """The first case again: with one reservation B delays J to 1000, with two it waits for J."""
    jobs = at_once((2, 10), (3, 10), (4, 5), (1, 1000))
    assert starts(engine, 4, *jobs, backfill="depth:k=1") == [0, 10, 1000, 0]
    assert starts(engine, 4, *jobs, backfill="depth:k=2") == [0, 10, 20, 25]


def test_job_that_fits_ahead_of_the_second_misfit_starts_before_it_is_reserved_for(engine):
    """The first case with B ahead of J: whatever the depth, B starts at once and J follows it.

    If J were reserved for before B is tried, B would wait until 10.
    """
    jobs = at_once((2, 10), (3, 10), (1, 1000), (4, 5))
    for backfill in ("easy", "depth:k=1", "depth:k=2", "depth:k=3", *CONSERVATIVE):
        assert starts(engine, 4, *jobs, backfill=backfill) == [0, 10, 0, 1000]


def test_job_that_starts_beside_reservations_counts_as_backfilled(engine):
    """A (2p x 5) starts at once behind the misfits H and J, and is back when H starts."""
    jobs = at_once((2, 10), (3, 10), (4, 5), (2, 5))
    for backfill in (*CONSERVATIVE, "depth:k=2"):
        schedule = engine(workload_of(jobs, 4), backfill=backfill)
        assert [s.start_time for s in schedule] == [0, 10, 20, 0]
        assert [s.backfilled for s in schedule] == [False, False, False, True]


def test_reservations_that_are_kept_move_in_queue_order_and_never_later(engine):
    """L was promised 10 before H came, which has the larger area and so goes first in the queue.

    When R ends at 5, a rebuilt plan gives H its place and lets L wait until 25, beyond its promise.

    ::

        RRRRRLLLLLLLLLHHHHHHHHHHHHHHHHHHHH    R 2p runs 5 asks 10, L 1p x 9 at 0
        RRRRR.........HHHHHHHHHHHHHHHHHHHH    H 2p x 20 at 1; kept
        0    5        14
    """
    jobs = [(0, 5, 10, 2), (0, 9, 9, 1), (1, 20, 20, 2)]
    assert starts(engine, 2, *jobs, policy="LAF", backfill="conservative") == [0, 25, 5]
    kept = starts(engine, 2, *jobs, policy="LAF", backfill="conservative:compress=shift")
    assert kept == [0, 5, 14]


def test_job_that_moves_makes_room_for_one_before_it(engine):
    """What a single sweep in queue order would leave behind is found by the next.

    Four processors; R1 2p runs 3 asks 20, R2 2p x 10. Largest area first: W 4p x 6 is promised 20,
    S 2p x 9 comes later and is promised 10. At 3 R1 ends: W, tried first, finds room behind S only,
    at 19; then S moves to 3 and is back at 12, so that W may have 12.
    """
    jobs = [(0, 3, 20, 2), (0, 10, 10, 2), (1, 6, 6, 4), (2, 9, 9, 2)]
    settings = {"policy": "LAF", "backfill": "conservative:compress=shift"}
    assert starts(engine, 4, *jobs, **settings) == [0, 0, 12, 3]


def test_reservation_that_a_late_job_stands_in_is_made_anew(engine):
    """R asks for 10 and runs 20, so H cannot start at 10, nor at 12, where B comes and must wait.

    ::

        RRRRRRRRRRRRRRRRRRRRHHHHHB    R 1p, H 2p x 5 at 0, B 1p x 9 at 12
        ....................HHHHHB
    """
    jobs = [(0, 20, 10, 1), (0, 5, 5, 2), (12, 9, 9, 1)]
    for backfill in CONSERVATIVE:
        assert starts(engine, 2, *jobs, kill_at_limit=False, backfill=backfill) == [0, 20, 25]


def test_job_is_killed_at_its_limit_unless_told_otherwise(engine):
    """R asks for 10 s and would run 20 s; N follows on one processor."""
    jobs = [(0, 20, 10, 1), (0, 5, 5, 1)]
    assert starts(engine, 1, *jobs) == [0, 10]
    assert starts(engine, 1, *jobs, kill_at_limit=False) == [0, 20]


def test_overdue_job_is_assumed_to_end_now(engine):
    """At 12 R is past its request, so H's shadow time is 12 and not even a second may be filled.

    ::

        RRRRRRRRRRRRRRRRRRRRHHHHHB    R 1p runs 20 asks 10; H 2p x 5 at 12; B 1p x 1 at 12
        ....................HHHHH
        0           12      20   25
    """
    jobs = [(0, 20, 10, 1), (12, 5, 5, 2), (12, 1, 1, 1)]
    assert starts(engine, 2, *jobs, kill_at_limit=False) == [0, 20, 25]


def test_overdue_jobs_tie_whatever_they_asked_for(engine):
    """R1 asked for 10 s and R2 for 11 s, both still run at 12: both are assumed to end at 12.

    One of them would be enough for H, so one processor is extra and the long B may have it.

    ::

        1111111111 11111111 HHHHH     R1 runs 20 asks 10; R2 runs 20 asks 11
        2222222222 22222222 HHHHH     H 3p x 5 at 12; B 1p x 50 at 12
        ................... HHHHH
        .......... . BBBBBBBBBBBB...
    """
    jobs = [(0, 20, 10, 1), (0, 20, 11, 1), (12, 5, 5, 3), (12, 50, 50, 1)]
    assert starts(engine, 4, *jobs, kill_at_limit=False) == [0, 0, 20, 12]


def test_exact_estimate_of_a_killed_job_is_its_request(engine):
    """R would run 60 s but is killed at 10, when H starts; B (20 s) would be late."""
    jobs = [(0, 60, 10, 1), (0, 5, 5, 2), (0, 20, 20, 1)]
    assert starts(engine, 2, *jobs, estimates="exact") == [0, 10, 15]


def test_exact_estimates_open_holes_that_requests_hide(engine):
    """R ends at 10 but asks for 100, so H seems to start at 100 and B seems to be back in time.

    By requests B (1p x 50) starts at 0 and delays H to 50; by exact estimates it may not.
    """
    jobs = [(0, 10, 100, 1), (0, 5, 5, 2), (0, 50, 50, 1)]
    assert starts(engine, 2, *jobs) == [0, 50, 0]
    assert starts(engine, 2, *jobs, estimates="exact") == [0, 10, 15]
    assert starts(engine, 2, *jobs, estimates=[10, 5, 50]) == [0, 10, 15]


def test_threshold_is_strict_and_puts_old_jobs_first(engine):
    """At 100 L has waited 99 s and S 98 s: with a threshold of 98 s only L is old enough.

    ::

        A 1p x 100 at 0, L 1p x 50 at 1, S 1p x 5 at 2; shortest first on one processor
    """
    jobs = [(0, 100, 100, 1), (1, 50, 50, 1), (2, 5, 5, 1)]
    assert starts(engine, 1, *jobs, policy="SPF") == [0, 105, 100]
    schedule = engine(workload_of(jobs, 1), policy="SPF", threshold=98)
    assert [s.start_time for s in schedule] == [0, 100, 150]
    assert [s.thresholded for s in schedule] == [False, True, True]
    assert starts(engine, 1, *jobs, policy="SPF", threshold=99) == [0, 105, 100]


def test_old_jobs_go_first_come_first_served_among_themselves(engine):
    """The workload above; both are old, so L goes first though it is longer."""
    jobs = [(0, 100, 100, 1), (1, 50, 50, 1), (2, 5, 5, 1)]
    assert starts(engine, 1, *jobs, policy="SPF", threshold=10) == [0, 100, 150]


def test_threshold_applies_to_the_backfill_order_too(engine):
    """At 20 there is one hole until 30; the old L goes before the short S even among candidates.

    ::

        R 1p x 20, K 1p x 30 at 0; H 2p x 9 at 1; L 1p x 10 at 2; S 1p x 5 at 15
        threshold 17: at 20 H has waited 19 and L 18, S only 5
    """
    jobs = [(0, 20, 20, 1), (0, 30, 30, 1), (1, 9, 9, 2), (2, 10, 10, 1), (15, 5, 5, 1)]
    assert starts(engine, 2, *jobs, backfill_order="SPF") == [0, 0, 30, 39, 20]
    schedule = engine(workload_of(jobs, 2), backfill_order="SPF", threshold=17)
    assert [s.start_time for s in schedule] == [0, 0, 30, 20, 39]
    assert [s.backfilled for s in schedule] == [False, False, False, True, False]


def test_zero_second_job_holds_its_processors_for_one_round(engine):
    """Z takes both processors and ends at once; A and B start in the next round of the instant."""
    jobs = [(0, 0, 5, 2), (0, 5, 5, 1), (0, 5, 5, 1)]
    schedule = engine(workload_of(jobs, 2))
    assert [s.start_time for s in schedule] == [0, 0, 0]
    assert not any(s.backfilled for s in schedule)


def test_instant_lasts_until_no_zero_second_job_starts(engine):
    """Three zero-second jobs and a real one follow each other on one processor at 7."""
    jobs = [(7, 0, 5, 1), (7, 0, 5, 1), (7, 0, 5, 1), (7, 3, 5, 1), (8, 0, 5, 1)]
    assert starts(engine, 1, *jobs) == [7, 7, 7, 7, 10]


def test_batch_sees_all_submissions_of_an_instant_and_pyss_one_by_one(engine):
    """L and S arrive when A ends; shortest first, pyss has no S to prefer when it looks at L."""
    jobs = [(0, 10, 10, 2), (10, 9, 9, 2), (10, 5, 5, 2)]
    assert starts(engine, 2, *jobs, policy="SPF") == [0, 15, 10]
    assert starts(engine, 2, *jobs, policy="SPF", event_semantics="pyss") == [0, 10, 19]


def test_pyss_frees_early_ends_one_by_one(engine):
    """A and B both end early at 10; between the two pyss lets C fill the hole before H.

    ::

        A, B 1p run 10 ask 20 at 0; H 2p x 7 at 1; C 1p x 10 at 1
        batch: H at 10, C at 17          pyss: C at 10, H at 20
    """
    jobs = [(0, 10, 20, 1), (0, 10, 20, 1), (1, 7, 7, 2), (1, 10, 10, 1)]
    assert starts(engine, 2, *jobs) == [0, 0, 10, 17]
    assert starts(engine, 2, *jobs, event_semantics="pyss") == [0, 0, 20, 10]


def test_pyss_handles_submissions_before_terminations(engine):
    """A ends early at 10, just when S arrives: S is there to go before the longer C."""
    jobs = [(0, 10, 20, 2), (5, 9, 9, 2), (10, 5, 5, 2)]
    assert starts(engine, 2, *jobs, policy="SPF", event_semantics="pyss") == [0, 15, 10]


def test_pyss_ends_jobs_in_the_order_of_their_starts(engine):
    """X and Y both end early at 12; Y, started first, leaves room for neither H nor C.

    ::

        BBXXXXXXXXXXHHHHHHHHHCCCCC    B 3p x 2; X 3p runs 10 asks 30; Y 1p runs 12 asks 30
        BBXXXXXXXXXXHHHHHHHHHCCCCC    H 4p x 9 and C 2p x 5 at 3
        BBXXXXXXXXXXHHHHHHHHH
        YYYYYYYYYYYYHHHHHHHHH         had X ended first, C would have filled its place
    """
    jobs = [(0, 2, 2, 3), (0, 10, 30, 3), (0, 12, 30, 1), (3, 9, 9, 4), (3, 5, 5, 2)]
    assert starts(engine, 4, *jobs, event_semantics="pyss") == [0, 2, 0, 12, 21]


def test_pyss_ends_jobs_in_an_order_that_changes_with_time(engine):
    """Y and X start together at 2, the wide X first, so it ends first at 12 and C fills its place.

    ::

        AAXXXXXXXXXXCCCCCHHHHHHHHH    A 4p x 2; Y 1p and X 3p run 10 ask 30
        AAXXXXXXXXXXCCCCCHHHHHHHHH    H 4p x 9 and C 2p x 5 at 3
        AAXXXXXXXXXX     HHHHHHHHH
        AAYYYYYYYYYY     HHHHHHHHH    had Y ended first, H would start at 12
    """
    jobs = [(0, 2, 2, 4), (0, 10, 30, 1), (0, 10, 30, 3), (3, 9, 9, 4), (3, 5, 5, 2)]
    wide_first = (-0.9, 0.0, 0.1, 0.0, 0.0, 0.0)
    assert starts(engine, 4, *jobs, policy=wide_first, event_semantics="pyss") == [0, 2, 2, 17, 12]


def test_job_of_a_user_known_for_short_runs_goes_first_under_smith(engine):
    """User 1 asked for 100 s and ran 2 s; when A ends at 103, J of user 1 may overtake K.

    K, of a user not known, scores 100 / (1/100) = 10,000. For J, E[1/D] = (1/10 + 1/100)/2 = 0.055,
    so it scores 100 / 0.055 = 1,818. By area the two tie.
    """
    jobs = [(0, 2, 100, 1, 1), (3, 100, 100, 1, 3), (4, 100, 100, 1, 2), (5, 100, 100, 1, 1)]
    assert starts(engine, 1, *jobs, policy="SAF") == [0, 3, 103, 203]
    assert starts(engine, 1, *jobs, policy="SMITH") == [0, 3, 203, 103]


def test_smith_remembers_run_times_as_executed(engine):
    """User 1 was killed at 10 s; J scores 100 / 0.055 = 1,818, K scores 50 · 50 = 2,500."""
    jobs = [(0, 60, 10, 1, 1), (3, 100, 100, 1, 3), (11, 50, 50, 1, 2), (12, 100, 100, 1, 1)]
    assert starts(engine, 1, *jobs, policy="SMITH") == [0, 10, 210, 110]


def test_smith_takes_no_past_run_for_longer_than_the_new_request(engine):
    """User 1 ran 60 s, and now asks for 20 s: J scores 20 / (1/20) = 400, K 22 · 22 = 484."""
    jobs = [(0, 60, 60, 1, 1), (3, 100, 100, 1, 3), (61, 22, 22, 1, 2), (62, 20, 20, 1, 1)]
    assert starts(engine, 1, *jobs, policy="SMITH") == [0, 60, 180, 160]


def test_smith_remembers_the_last_twenty_jobs_of_a_user(engine):
    """User 1 ran 100 s once and then 1 s twenty times; only these count, with the new request.

    E[1/D] = (20/10 + 1/100)/21 = 0.0957, so J scores 100 / 0.0957 = 1,045 and precedes K, which
    scores 23 · 23 · 2 = 1,058. With the first run J would score 1,089.
    """
    jobs = [(0, 100, 100, 2, 1), *[(0, 1, 100, 2, 1)] * 20, (0, 1000, 1000, 2, 3)]
    jobs += [(199, 23, 23, 2, 2), (200, 100, 100, 1, 1)]
    assert starts(engine, 2, *jobs, policy="SMITH")[-3:] == [120, 1220, 1120]


def test_job_that_was_chosen_is_waited_for(engine):
    """Shortest first on 2 processors: L is chosen while R runs; S, which is shorter, comes at 1.

    ::

        RRRRRRRRRRLLLLLLLLLLSSSSS     R 1p x 10, L 2p x 10, S 1p x 5
        ..........LLLLLLLLLL.....
        0         10        20
    """
    jobs = [*at_once((1, 10), (2, 10)), (1, 5, 5, 1)]
    settings = {"policy": "SPF", "backfill": "committed"}
    assert starts(engine, 2, *jobs, **settings) == [0, 10, 20]
    assert starts(engine, 2, *jobs, **settings | {"backfill": "none"}) == [0, 10, 1]


def test_behind_a_chosen_job_starts_only_what_ends_before_its_shadow_time(engine):
    """B ends at 9, C would end at 10, the shadow time, and X does not count as extra.

    ::

        RRRRRRRRRRHHHHHHHHHH          R 2p x 10, H 3p x 10, B 1p x 9, C 1p x 10, X 1p x 50
        RRRRRRRRRRHHHHHHHHHH
        BBBBBBBBB.HHHHHHHHHH
        ..........CCCCCCCCCCXXX...
    """
    jobs = at_once((2, 10), (3, 10), (1, 9), (1, 10), (1, 50))
    assert starts(engine, 4, *jobs, backfill="committed:fill=before") == [0, 10, 0, 10, 20]
    assert starts(engine, 4, *jobs, backfill="easy") == [0, 10, 0, 0, 9]


def test_shadow_time_of_a_chosen_job_stays_as_it_was_found(engine):
    """R asks for 20 and ends at 5. H could start at 12, but its shadow time stays 20, so B starts.

    ::

        RRRRRBBBBBBBBBBHHHHH          R 1p x 5, Q 1p x 12, H 3p x 5, B 1p x 10, which comes at 5
        QQQQQQQQQQQQ...HHHHH
        ...............HHHHH
    """
    jobs = [(0, 5, 20, 1), *at_once((1, 12), (3, 5)), (5, 10, 10, 1)]
    assert starts(engine, 3, *jobs, backfill="committed:fill=before") == [0, 0, 15, 5]
    assert starts(engine, 3, *jobs, backfill="easy") == [0, 0, 12, 17]


def test_one_by_one_a_job_is_chosen_before_the_next_one_of_its_instant_comes(engine):
    """Shortest first on 2 processors. B and C come when A ends; B is the first, and is chosen.

    ::

        AAAAAAAAAABBBBBC              A 2p x 10, B 2p x 5, C 1p x 1
        AAAAAAAAAABBBBB.
    """
    jobs = [(0, 10, 10, 2), (10, 5, 5, 2), (10, 1, 1, 1)]
    settings = {"policy": "SPF", "backfill": "committed"}
    assert starts(engine, 2, *jobs, **settings, event_semantics="one-by-one") == [0, 10, 15]
    assert starts(engine, 2, *jobs, **settings) == [0, 11, 10]


def test_one_by_one_a_job_holds_its_processors_until_it_ends(engine):
    """R outlives its request of 5, and is not killed; with `pyss` S would start at 6."""
    jobs = [(0, 10, 5, 2), (6, 1, 1, 1)]
    settings = {"kill_at_limit": False, "event_semantics": "one-by-one"}
    assert starts(engine, 2, *jobs, **settings) == [0, 10]


_ORDERS = """
FCFS ABCD, LCFS DCBA, SPF BDAC, LPF CADB, SQF CABD, LQF DBAC, SAF BCAD, LAF DACB, SRF BDAC,
LRF CADB, SEXP CADB, LEXP BDAC, WFP3 BDAC, UNICEF BCAD, F1 CBAD, F2 BCAD, F3 BACD, F4 BACD,
MULTIFACTOR CABD, SMITH BACD, submit-as-wait:rule=WFP3 CADB,
submit-as-wait:rule=UNICEF DACB
"""
ORDERS = dict(pair.split() for pair in _ORDERS.split(","))


@pytest.mark.parametrize(("policy", "expected"), ORDERS.items(), ids=list(ORDERS))
def test_each_policy_orders_the_queue_as_its_formula_says(engine, policy, expected):
    """Four jobs wait on 8 processors for R, which ends at 5000; no two of them fit together.

    F is without 870, 25,600 ... times 3, which all four share; M the multifactor priority.

    ===  ======  =====  ==  ======  =====  ======  ======  ======  ====  =====  ======  =====  ===
    job  submit  e      q   e·q     e/q    wait/e  WFP3    UNICEF  F1    F2     F3      F4     M
    ===  ======  =====  ==  ======  =====  ======  ======  ======  ====  =====  ======  =====  ===
    A    1000    2,000  6   12,000  333    2.00    48      0.774   19.8  268.3  12,000  4,899  343
    B    1001    400    7   2,800   57     10.00   6,995   3.561   18.6  151.1  5,778   1,288  218
    C    1002    2,200  5   11,000  440    1.82    30      0.783   17.5  256.7  16,953  5,379  468
    D    1003    1,800  8   14,400  225    2.22    88      0.740   27.2  372.7  23,324  5,781  93
    ===  ======  =====  ==  ======  =====  ======  ======  ======  ====  =====  ======  =====  ===

    SMITH scores e·e·q, since nobody's run times were known when the four were submitted. With the
    submit time as the wait, WFP3 scores 0.75, 110, 0.47 and 1.4, UNICEF 0.1936, 0.89, 0.1963 and
    0.186.
    """
    shapes = {"A": (2000, 6), "B": (400, 7), "C": (2200, 5), "D": (1800, 8)}
    jobs = [(0, 5000, 5000, 8)]
    jobs += [(1000 + k, e, e, q) for k, (e, q) in enumerate(shapes.values())]
    waiting = starts(engine, 8, *jobs, policy=policy)[1:]
    assert "".join(sorted(shapes, key=lambda name: waiting["ABCD".index(name)])) == expected
