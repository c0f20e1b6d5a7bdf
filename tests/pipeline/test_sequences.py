"""Learners audited on sequences of rounds that are searched or given: by event, by user, with contexts."""

import numpy as np
import pytest
from hypothesis import strategies as st

from overclaim import Claim, Pair, Verdict, check_learner, check_regret, falsify
from overclaim.audit.play.learner_mechanism import LearnerMechanism, RoundsPair
from overclaim.audit.play.mechanism_runs import run_block
from overclaim.audit.play.transcripts import play
from overclaim.audit.spaces.sequences import examples_of
from overclaim.audit.traces.replay import traces
from overclaim.learners import BatchedLaplace, Exp3, Threshold
from overclaim.learners.bandits.exp4 import Exp4, SteadyExp4
from overclaim.learners.problems.advice import Advice
from overclaim.learners.protocol import LearnerError
from overclaim.learners.scalar import as_learner
from overclaim.mechanisms.draws import Draws
from overclaim.mechanisms.view import VIEWS
from overclaim.testing import neighbours

UNIT = st.floats(0, 1)
LOSSES = st.lists(UNIT, min_size=2, max_size=2)
SEQUENCES = st.lists(LOSSES, min_size=1, max_size=5)
#: It attains its claim of 1 on [1, 1] and [0, 0].
PRIVATE = BatchedLaplace(Threshold(arms=2, threshold=0.5), epsilon=1.0, batch=1)
FIRST, SECOND = [[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]


@pytest.fixture
def few(monkeypatch):
    """As many sequences as a refusal needs; searches look for odd numbers among more."""
    monkeypatch.setattr("overclaim.audit.spaces.sequences.SEQUENCES", 60)


def audit(learner, inputs=None, epsilon=1.0, neighbours="replace", **options):
    claim = Claim(epsilon=epsilon, neighbours=neighbours, losses=options.pop("losses", "unit"))
    return falsify(learner, claim, inputs=inputs, **{"runs": 6000} | options)


class Shows:
    """It plays a coin, and arm 1 ever after a round of which `leaks` says so, (2, runs or 1) to (runs or 1,)."""

    feedback, arms = "full", 2

    def __init__(self, leaks):
        self.leaks = leaks

    def start(self, runs, draws):
        return np.zeros(runs, dtype=bool)

    def act(self, state, draws):
        return np.where(state, 1, draws.uniform(state.size) < 0.5).astype(np.intp)

    def update(self, state, actions, feedback, draws):
        state |= self.leaks(feedback)


def half(losses):
    return (losses == 0.5).any(axis=0)


def tiny(losses):
    return ((losses > 0) & (losses < 1e-200)).any(axis=0)


def negative_zero(losses):
    return (np.signbit(losses) & (losses == 0)).any(axis=0)


@pytest.mark.slow(reason="of inputs it is quick")
@pytest.mark.parametrize(
    ("leaks", "numbers"),
    [
        (half, UNIT),
        pytest.param(tiny, UNIT, marks=pytest.mark.slow),
        pytest.param(negative_zero, st.sampled_from([-1.0, -0.0, 0.0, 1.0]), marks=pytest.mark.slow),
    ],
)
def test_a_value_that_few_rounds_have_is_found_and_shrunk(leaks, numbers):
    strategy = st.lists(st.lists(numbers, min_size=2, max_size=2), min_size=1, max_size=5)
    result = audit(Shows(leaks), neighbours(strategy), losses="symmetric", runs=20_000)
    assert result.verdict is Verdict.FALSIFIED
    (place,) = result.pair.places
    one, other = (leaks(np.array(side[place])) for side in (result.pair.left, result.pair.right))
    assert one != other
    assert len(result.shrunk.pair.left) == 2  # the round that is shown, and one that shows it
    assert result.shrunk.seed >= 1_000_000  # on runs that nothing before has seen
    assert result.pair.to_json()["rounds"] == [result.pair.to_json()["round"]] == [place + 1]


@pytest.mark.slow(reason="one relation more")
@pytest.mark.usefixtures("few")
def test_what_is_private_by_event_is_not_by_user():
    by_event = audit(PRIVATE, neighbours(SEQUENCES), runs=2000)
    assert by_event.verdict is Verdict.SURVIVED
    assert by_event.claim.neighbours == "replace"
    by_user = audit(PRIVATE, neighbours(SEQUENCES, "user", rounds_per_user=3), runs=20_000)
    assert by_user.verdict is Verdict.FALSIFIED
    assert by_user.claim.neighbours == "user:3"
    assert "claimed epsilon 1 (user: up to 3 rounds of one user replaced), at least" in str(by_user)
    assert "pair differing in rounds" in str(by_user)
    assert 2 <= len(by_user.pair.places) <= 3
    assert len(by_user.shrunk.pair.places) == 2  # fewer do not falsify


@pytest.mark.slow(reason="one relation more")
def test_labelled_users_differ_in_their_own_rounds():
    visits = st.lists(st.fixed_dictionaries({"user": st.sampled_from("ab"), "losses": LOSSES}), min_size=3, max_size=5)
    result = audit(PRIVATE, neighbours(visits, "user"), runs=20_000, shrink=False)
    assert result.verdict is Verdict.FALSIFIED
    assert result.claim.neighbours == "user"
    assert len({result.pair.left[t]["user"] for t in result.pair.places}) == 1
    assert [r["user"] for r in result.pair.left] == [r["user"] for r in result.pair.right]


class Follows:
    """A coin, but with probability 3/4 the arm that the context names."""

    feedback = "full"

    def __init__(self, arms, rounds, rng):
        self.rng, self.context = rng, None

    def observe(self, context):
        self.context = context["arm"]

    def act(self):
        return self.context if self.rng.random() < 0.75 else int(self.rng.integers(2))

    def update(self, losses):
        pass


CONTEXTS = st.fixed_dictionaries({"context": st.fixed_dictionaries({"arm": st.integers(0, 1)}), "losses": LOSSES})


@pytest.mark.few(1)
@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(("relation", "false"), [("replace", True), ("replace-losses", False)])
def test_contexts_are_replaced_with_their_rounds_unless_they_are_public(relation, false):
    result = audit(Follows, neighbours(st.lists(CONTEXTS, min_size=1, max_size=3), relation), runs=3000, shrink=False)
    assert (result.verdict is Verdict.FALSIFIED) is false  # ln 7 by the context
    assert result.claim.neighbours == relation


ADVICE = st.sampled_from([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.5, 0.5]]])
ADVISED = BatchedLaplace(SteadyExp4(advice=Advice([[1.0, 0.0], [0.0, 1.0]]), eta=2.0, gamma=0.1), epsilon=1.0, batch=1)


@pytest.mark.slow(reason="one learner more")
@pytest.mark.parametrize(("relation", "false"), [("replace", True), ("replace-losses", False)])
def test_exp4_takes_its_advice_as_contexts(relation, false):
    rounds = st.fixed_dictionaries({"context": ADVICE, "losses": LOSSES})
    inputs = neighbours(st.lists(rounds, min_size=2, max_size=3), relation)
    result = audit(ADVISED, inputs, epsilon=1.0, runs=8000, seed=4, shrink=False)
    # After a loss the experts' weights differ, and which arm each of them advises shows.
    assert (result.verdict is Verdict.FALSIFIED) is false


def test_observed_advice_is_as_good_as_the_recipes_own():
    tables = np.array([[[1.0, 0.0], [0.25, 0.75]], [[0.5, 0.5], [0.0, 1.0]], [[0.1, 0.9], [1.0, 0.0]]])
    known = Exp4(advice=Advice(tables), eta=0.7, gamma=0.05)
    told = Exp4(advice=Advice(tables[0][::-1].copy()), eta=0.7, gamma=0.05)
    plain = [[0.2, 1.0], [0.9, 0.1], [0.5, 0.5]]
    shown = [{"context": table.tolist(), "losses": losses} for table, losses in zip(tables, plain, strict=True)]
    actions = [LearnerMechanism(known)(plain, Draws(3), 200), LearnerMechanism(told)(shown, Draws(3), 200)]
    assert (actions[0] == actions[1]).all()
    assert len(np.unique(actions[0])) == 2


@pytest.mark.parametrize("surface", ["actions", "release"])
def test_both_worlds_are_played_in_step_as_pairs_are(surface):
    learner = BatchedLaplace(Exp3(arms=2, eta=2.0, gamma=0.02), epsilon=1.0, batch=2)
    left = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.5], [0.0, 0.0]]
    right = [[1.0, 0.0], [0.3, 0.4], [1.0, 1.0], [0.0, 0.5], [0.0, 0.0]]
    known = play(learner, Pair(left, right), Draws(5), 300, view=VIEWS[surface], share=0.3)
    sample = run_block(LearnerMechanism(learner, VIEWS[surface]), RoundsPair(left, right), Draws(5), 300, 0.3)
    assert (sample.left == known.left).all()
    assert (sample.outputs[:5] == known.actions).all()
    assert len(sample.outputs) == 5 + (0 if known.releases is None else len(known.releases))
    assert known.releases is None or (sample.outputs[5:] == known.releases).all()


def by_swap(rounds):
    """Return the sequences in which two neighbouring rounds are exchanged."""
    exchanged = [[*rounds[:t], rounds[t + 1], rounds[t], *rounds[t + 2 :]] for t in range(len(rounds) - 1)]
    return [one for one in exchanged if one != rounds]


@pytest.mark.slow(reason="one relation more")
def test_a_function_may_say_who_is_a_neighbour():
    inputs = neighbours(st.lists(LOSSES, min_size=3, max_size=3), by_swap)
    result = audit(Shows(lambda losses: losses[0] > 0.5), inputs, runs=3000, shrink=False)
    assert result.verdict is Verdict.FALSIFIED
    assert result.claim.neighbours == "function by_swap"
    assert sorted(result.pair.left) == sorted(result.pair.right)


PAIRS_OF_TWO = st.just((FIRST, SECOND))


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    ("inputs", "options", "message"),
    [
        (st.just((FIRST, FIRST)), {}, "the strategy of inputs draws equal worlds"),
        (PAIRS_OF_TWO, {}, "the two worlds are no neighbours by replace: they differ in rounds 1, 2"),
        (st.just((FIRST, FIRST[:1])), {}, "both inputs must have as many rounds, the inputs have 2 and 1"),
        (neighbours(st.just(FIRST)), {}, "replace makes no two inputs that differ before the last loss of what"),
        (neighbours(SEQUENCES, lambda rounds: [rounds[:1]]), {}, "as many rounds"),
        (
            neighbours(SEQUENCES, "add-remove"),
            {},
            "add-remove cannot apply to a learner: a learner's actions tell how",
        ),
        (neighbours(SEQUENCES, "user"), {}, "user needs rounds that say whose they are"),
        (neighbours(SEQUENCES), {"rounds": 2}, "rounds, but the horizon is 2"),
        (neighbours(SEQUENCES), {"arms": 3, "learner": Follows}, "has length 2, but the learner has 3 arms"),
        (neighbours(SEQUENCES), {"neighbours": "user:2"}, "about 'user:2' neighbours, the inputs are 'replace' ones"),
        (neighbours(SEQUENCES), {"left": FIRST, "right": SECOND}, "`inputs` cannot go with"),
        (neighbours(SEQUENCES), {"pair": Pair([[1.0]], [[0.0]])}, "cannot go with `left` and `right`"),
        (
            neighbours(st.lists(st.lists(st.just(2.0), min_size=2, max_size=2), min_size=1, max_size=2)),
            {},
            "must lie in",
        ),
        (st.lists(UNIT), {}, r"inputs must be pairs \(left, right\)"),
        (7, {}, "inputs must be a Hypothesis strategy"),
        (None, {"left": FIRST}, "one of two neighbouring sequences is missing"),
        (None, {"neighbours": "user"}, "a claim about user: all rounds of one user replaced needs inputs"),
    ],
)
def test_what_cannot_be_searched_is_said_in_one_line(inputs, options, message):
    with pytest.raises(ValueError, match=message) as error:
        audit(**{"learner": Shows(half), "inputs": inputs} | options)
    assert "\n" not in str(error.value)


def test_given_pairs_of_a_strategy_are_held_to_the_claim():
    result = audit(PRIVATE, PAIRS_OF_TWO, neighbours="user:2", runs=2000)
    assert result.claim.neighbours == "user:2"
    assert result.pair.places == [0, 1]


def test_two_sequences_may_be_given():
    result = audit(PRIVATE, left=[*FIRST, [0, 0]], right=[*SECOND, [0, 0]], neighbours="user:2", runs=10_000)
    assert result.verdict is Verdict.FALSIFIED
    assert result.pair.difference == "pair differing in rounds 1, 2"


@pytest.mark.usefixtures("few")
def test_a_learner_that_raises_on_every_pair_has_crashed():
    def fails(losses):
        raise RuntimeError("no losses today")

    with pytest.raises(LearnerError, match="no losses today"):
        audit(Shows(fails), neighbours(st.lists(LOSSES, min_size=2, max_size=3)), runs=1000)


@pytest.mark.slow(reason="of mechanisms it is quick")
def test_a_learner_that_raises_on_some_is_audited_on_the_others():
    def fails(losses):
        if (losses[0] > 0.9).any():
            raise RuntimeError("too much")
        return losses[0] == 0.0

    result = audit(Shows(fails), neighbours(st.lists(LOSSES, min_size=9, max_size=9)), shrink=False)
    assert result.verdict is Verdict.FALSIFIED
    assert result.searched.refused > 0
    assert "too much" in result.searched.reason  # behind the losses, which were all that was kept


def test_what_is_told_last_leaves_a_pair_out_too():
    """It was played in no run of the audit, only by the check at its end, which then called the learner crashed."""

    def fails(losses):
        if (losses == 0.5).any():
            raise RuntimeError("too much")
        return losses[0] == 0.0

    worse, other = (
        ([[0.0, 0.0], [0.5, 0.5]], [[1.0, 0.0], [0.5, 0.5]]),
        ([[0.0, 0.0], [0.0, 0.0]], [[0.0, 1.0], [0.0, 0.0]]),
    )
    result = audit(Shows(fails), st.sampled_from([worse, other]), shrink=False)
    assert result.verdict is Verdict.UNDERPOWERED  # the other pair shows no difference
    assert (result.pair.left, result.searched.refused) == (other[0], 1)


def test_a_learner_is_told_no_losses_that_the_inputs_exclude():
    """The check of its runs exchanged the arms of the losses, and called a learner of sorted ones crashed."""

    def fails(losses):
        if (losses[0] > losses[1]).any():
            raise RuntimeError("not sorted")
        return losses[1] == 1.0

    rounds = st.sampled_from([[0.0, 0.0], [0.0, 1.0], [0.5, 1.0]])
    result = audit(Shows(fails), neighbours(st.lists(rounds, min_size=2, max_size=2)), shrink=False)
    assert result.verdict is Verdict.FALSIFIED
    assert result.searched.refused == 0


@pytest.mark.usefixtures("few")
def test_runs_that_share_randomness_are_refused():
    class Shared:
        feedback, arms = "full", 2

        def start(self, runs, draws):
            return np.full(runs, draws.uniform(1)[0] < 0.5)

        def act(self, state, draws):
            return state.astype(np.intp)

        def update(self, state, actions, feedback, draws):
            state[:] = draws.uniform(1)[0] < 0.5

    with pytest.raises(LearnerError, match="share randomness"):
        audit(Shared(), neighbours(SEQUENCES))


@pytest.mark.slow(reason="of mechanisms both are quick")
def test_stop_early_and_the_blind_spot_are_those_of_mechanisms():
    early = audit(PRIVATE, neighbours(SEQUENCES, "user", rounds_per_user=3), runs=20_000, stop="early", shrink=False)
    assert early.verdict is Verdict.FALSIFIED
    assert early.certificate.method == "anytime"
    weak = audit(PRIVATE, left=[[1, 1], [0, 0]], right=[[0, 0], [0, 0]], runs=4000, weaken="epsilon")
    assert weak.blind_spot.factor <= 5


@pytest.mark.nightly(reason="60 audits")
def test_false_alarms_are_as_rare_as_claimed(monkeypatch):
    """At confidence .9 a false alarm has a probability of at most .1; 20 of 60 are less likely than 1e-6."""
    inputs = neighbours(SEQUENCES)
    drawn = examples_of(inputs, 0)  # once: of an audit of so few runs, their draws take four fifths of the time
    monkeypatch.setattr("overclaim.audit.pipeline.given_rounds.examples_of", lambda inputs, seed: drawn)
    alarms = [audit(PRIVATE, inputs, runs=1000, seed=seed, confidence=0.9, shrink=False).verdict for seed in range(60)]
    assert alarms.count(Verdict.FALSIFIED) < 20


class Needs:
    """It plays what its context says."""

    feedback = "full"

    def __init__(self, arms, rounds, rng):
        pass

    def observe(self, context):
        self.context = context

    def act(self):
        return self.context

    def update(self, losses):
        pass


class NeedsBatched(Shows):
    """As `Needs`, all runs at once."""

    def start(self, runs, draws):
        return {}

    def observe(self, state, context, runs):
        state.setdefault("arms", np.zeros(runs.size, dtype=np.intp))[runs] = context

    def act(self, state, draws):
        return state["arms"]

    def update(self, state, actions, losses, draws):
        pass


@pytest.mark.few(3)
@pytest.mark.parametrize("learner", [Needs, NeedsBatched(half)], ids=["plain", "batched"])
@pytest.mark.parametrize(
    "play",
    [
        lambda learner: falsify(learner, Claim(epsilon=1.0), rounds=2, runs=200),
        lambda learner: audit(learner, left=FIRST, right=[FIRST[0], SECOND[1]], runs=200),
        check_learner,
        lambda learner: check_regret(learner, lambda rounds: 1.0, rounds=16, arms=2),
        lambda learner: traces(as_learner(learner, arms=2, rounds=2), Pair(FIRST, SECOND[:1] + FIRST[1:])),
    ],
    ids=["falsify", "sides", "check", "regret", "traces"],
)
def test_a_learner_that_needs_contexts_is_told_where_they_come_from(learner, play):
    """It ended in its own AttributeError, or KeyError, alone."""
    with pytest.raises(LearnerError) as error:
        play(learner)
    name = getattr(learner, "__name__", "NeedsBatched")
    assert "Error: " in str(error.value)
    assert f"{name}.act raised" in str(error.value) or f"{name} raised" in str(error.value)
    assert "raised LearnerError" not in str(error.value)
    assert str(error.value).count("a method observe, which plain losses never call: give inputs, or left") == 1
    given = [{"losses": [1.0, 0.0], "context": 0}], [{"losses": [1.0, 0.0], "context": 1}]
    assert audit(learner, left=given[0], right=given[1], runs=2000).verdict is Verdict.FALSIFIED


@pytest.mark.parametrize(
    ("learner", "claim", "rounds"),
    [
        (Exp3(arms=2, eta=0.5, gamma=0.02), Claim(epsilon=6.0, losses="symmetric"), 4),
        (BatchedLaplace(Threshold(arms=2, threshold=0.5), epsilon=1.0, batch=1), Claim(epsilon=1.0), 2),
        (
            BatchedLaplace(Threshold(arms=2, threshold=0.5), epsilon=1.0, batch=1),
            Claim(epsilon=1.0, surface="release", neighbours="zero-out"),
            2,
        ),
    ],
)
def test_a_pair_of_losses_has_one_answer_however_it_is_given(learner, claim, rounds):
    """One answer came from the law that the learner states, the other from a black box: 6.47 and 4.92 of one pair."""
    rest = [[0.5, 0.5]] * (rounds - 1)
    left, right = [[1.0, 1.0], *rest], [[0.0, 0.0], *rest]
    both = [
        falsify(learner, claim, runs=4000, **given)
        for given in ({"pair": Pair(left, right)}, {"left": left, "right": right})
    ]
    assert both[0].certificate == both[1].certificate
    assert both[0].attack == both[1].attack
    assert isinstance(both[1].pair, Pair)


def test_what_is_more_than_a_pair_of_losses_is_played_as_it_is():
    learner = BatchedLaplace(Threshold(arms=2, threshold=0.5), epsilon=1.0, batch=1)
    left, right = [[1.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]
    for given in (
        {"left": left, "right": right, "rounds": 3},
        {"left": [{"user": "a", "losses": r} for r in left], "right": [{"user": "a", "losses": r} for r in right]},
        {"left": [[-0.0, 0.0], [1.0, 1.0]], "right": [[0.0, 0.0], [1.0, 1.0]]},
    ):
        assert not isinstance(falsify(learner, Claim(epsilon=1.0), runs=200, **given).pair, Pair)
