"""Places for turns are given in turn: to people, and to the conversations of each."""

import random
from collections import Counter, deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.conversation.slots import MAX_SHARE, Slot, Slots
from tests.sampling import examples

GREEDY = 1000


class Asked:
    """Requests of people, and what became of them."""

    def __init__(self, most: int) -> None:
        self.slots, self.most = Slots(most), most
        self.held: list[Slot] = []
        self.waiting: list[Slot] = []

    def ask(self, who: str) -> Slot:
        slot = self.slots.ask(lambda: None, who)
        self.waiting.append(slot)
        self.sort_out()
        return slot

    def leave(self, slot: Slot) -> None:
        self.slots.leave(slot)
        for known in (self.held, self.waiting):
            if slot in known:
                known.remove(slot)
        self.sort_out()

    def sort_out(self) -> None:
        self.held += [slot for slot in self.waiting if slot.given]
        self.waiting = [slot for slot in self.waiting if not slot.given]

    def count(self, who: str) -> int:
        return sum(slot.who == who for slot in self.held)


@settings(max_examples=examples(400), deadline=None)
@given(
    st.integers(1, 12),
    st.lists(
        st.tuples(st.sampled_from(["ask", "leave", "give_up"]), st.integers(0, 9)), max_size=80
    ),
)
def test_who_holds_fewest_is_next_whatever_came_before(
    most: int, steps: list[tuple[str, int]]
) -> None:
    asked = Asked(most)
    for what, n in steps:
        before = {slot.who: asked.count(slot.who) for slot in asked.waiting}
        held = set(asked.held)
        if what == "ask":
            asked.ask("abc"[n % 3] if n % 2 else "a")
        elif what == "leave" and asked.held:
            asked.leave(left := asked.held[n % len(asked.held)])
            before.pop(left.who, None)
            fresh = [slot for slot in asked.held if slot not in held]
            assert len(fresh) <= 1 + MAX_SHARE
            for slot in fresh[:1]:
                assert asked.count(slot.who) <= 1 + min(before.values(), default=most)
        elif what == "give_up" and asked.waiting:
            asked.leave(asked.waiting[n % len(asked.waiting)])
        free = most - len(asked.held)
        assert asked.slots.running == len(asked.held) <= most
        assert asked.slots.waiting == len(asked.waiting)
        for slot in asked.waiting:
            assert asked.count(slot.who) >= MAX_SHARE * free, "it waits although it could run"
    while asked.held:
        asked.leave(asked.held[0])
    assert not asked.waiting, "nobody waits for ever"
    assert asked.slots.running == asked.slots.waiting == 0
    assert not asked.slots._held, "nobody is remembered"


@pytest.mark.parametrize("most", [1, 2, 3, 9, 10, 100])
def test_a_newcomer_waits_for_one_place_at_most(most: int) -> None:
    asked = Asked(most)
    for _ in range(GREEDY):
        asked.ask("greedy")
    newcomer = asked.ask("newcomer")
    if most >= MAX_SHARE + 1:
        assert newcomer.given, "long turns of one person leave places for others"
    else:
        asked.leave(asked.held[0])
        if most == 1:  # whose turn it was before the newcomer came
            asked.leave(asked.held[0])
        assert newcomer.given


@pytest.mark.parametrize("seed", range(5))
def test_places_go_round_among_people_and_keep_the_order_of_each(seed: int) -> None:
    chance = random.Random(seed)
    people = [f"p{n}" for n in range(7)]
    asked, order = Asked(3), deque[Slot]()
    wanted = {who: [asked.ask(who) for _ in range(chance.randint(5, 60))] for who in people}
    while asked.held:
        order.append(done := asked.held.pop(0))
        asked.leave(done)
    for who in people:
        assert [slot for slot in order if slot.who == who] == wanted[who]
    least = min(map(len, wanted.values()))
    first = Counter(slot.who for slot in list(order)[: least * len(people)])
    assert max(first.values()) - min(first.values()) <= 4, "one more, and three at the start"


def test_one_person_alone_has_nearly_all_places() -> None:
    asked = Asked(100)
    for _ in range(GREEDY):
        asked.ask("only")
    assert len(asked.held) == 90
