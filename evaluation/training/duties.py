"""Make short texts about who must, may, need not and may not do what, with claims and questions.

Published sets say little about who does a thing and whether it is a duty: the texts that people
keep (leases, rules, orders) say little else. The word lists here make data; the product does not
read them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from evaluation.training.pairs import CONTRADICTED, NOT_STATED, SUPPORTED, UNSUPPORTED, Pair

SOURCE = "duties_made"

_ROLES = tuple(
    tuple(pair.split("/"))
    for pair in (
        "renter/owner of the flat|buyer/seller|borrower/lender|employee/employer|pupil/teacher|"
        "parent/school|member/club|customer/shop|patient/clinic|passenger/airline|author/publisher|"
        "driver/garage|guest/hotel|volunteer/coordinator|policyholder/insurer|contractor/client|"
        "supplier/retailer|applicant/office|visitor/museum|trainee/supervisor|donor/charity|"
        "farmer/dairy|skipper/harbour master|speaker/organiser|resident/caretaker|player/referee|"
        "translator/agency|lodger/host|shareholder/board|heir/executor|reader/library|rider/stable"
    ).split("|")
)
_ACTS = tuple(
    tuple(act.split("/"))
    for act in (
        "repair/repaired/the heating/fix|clean/cleaned/the stairs/wash|paint/painted/the fence/coat|"
        "pay/paid/the invoice/settle|return/returned/the keys/give back|insure/insured/the goods/"
        "take out insurance for|collect/collected/the parcel/pick up|sign/signed/the form/put a "
        "signature under|send/sent/the report/submit|keep/kept/the receipts/hold on to|water/watered/"
        "the plants/give water to|feed/fed/the animals/give food to|lock/locked/the gate/shut|replace/"
        "replaced/the battery/change|inspect/inspected/the boiler/examine|translate/translated/the "
        "letter/put into another language|cancel/cancelled/the booking/call off|order/ordered/the "
        "parts/procure|deliver/delivered/the furniture/bring|store/stored/the tools/put away|heat/"
        "heated/the hall/warm|choose/chosen/the date/pick|test/tested/the brakes/try out|mow/mown/the "
        "lawn/cut|record/recorded/the hours/write down|report/reported/the damage/tell about|"
        "publish/published/the results/make public|delete/deleted/the photographs/erase|copy/copied/"
        "the plans/make a copy of|lend/lent/the bicycle/let others use|sell/sold/the car/find a new "
        "owner for|rent/rented/the garage/hire|open/opened/the windows/air the room through|empty/"
        "emptied/the bins/clear out|wear/worn/the badge/have on|bring/brought/the tent/come with|"
        "book/booked/the tickets/reserve|renew/renewed/the licence/extend|refund/refunded/the fee/pay "
        "back|check/checked/the figures/verify|count/counted/the votes/tally|train/trained/the "
        "helpers/teach|carry/carried/the luggage/haul|sharpen/sharpened/the knives/hone|film/filmed/"
        "the match/record on video|shorten/shortened/the text/cut down|move/moved/the piano/shift|"
        "light/lit/the stove/kindle|fell/felled/the tree/cut down|park/parked/the van/leave"
    ).split("|")
)
_MUST, _MAY, _NEED_NOT, _MAY_NOT = range(4)
_SAID = {
    _MUST: (
        "The {who} must {do}{when}.", "The {who} has to {do}{when}.",
        "The {who} is required to {do}{when}.", "It is up to the {who} to {do}{when}.",
        "It is the duty of the {who} to {do}{when}.", "{What} must be {done} by the {who}{when}.",
        "The {who} shall {do}{when}.",
    ),
    _MAY: (
        "The {who} may {do}{when}.", "The {who} is allowed to {do}{when}.",
        "The {who} is free to {do}{when}.", "{What} may be {done} by the {who}{when}.",
        "The {who} has the right to {do}{when}.",
    ),
    _NEED_NOT: (
        "The {who} need not {do}{when}.", "The {who} does not have to {do}{when}.",
        "The {who} is not required to {do}{when}.", "Nobody expects the {who} to {do}{when}.",
    ),
    _MAY_NOT: (
        "The {who} may not {do}{when}.", "The {who} is not allowed to {do}{when}.",
        "The {who} must not {do}{when}.", "{What} may not be {done} by the {who}{when}.",
        "The {who} is forbidden to {do}{when}.",
    ),
}  # fmt: skip
_ASKED = {
    _MUST: ("Who has to {do}?", "Whose job is it to {do}?", "Does the {who} have to {do}?",
            "Who is responsible if nobody {does}?", "Must the {who} {do}?"),
    _MAY: ("Can the {who} {do}?", "Who may {do}?", "Is the {who} allowed to {do}?"),
    _NEED_NOT: ("Does the {who} have to {do}?", "Must the {who} {do}?"),
    _MAY_NOT: ("Can the {who} {do}?", "May the {who} {do}?", "Is the {who} allowed to {do}?"),
}  # fmt: skip
_DENIES = {
    (_MUST, _NEED_NOT), (_MUST, _MAY_NOT), (_MAY, _MAY_NOT), (_NEED_NOT, _MUST), (_MAY_NOT, _MUST),
    (_MAY_NOT, _MAY),
}  # fmt: skip
"""What is said, and what it denies of the same person and act; a duty grants the permission."""
_WHEN = (
    "within {} days", "at least {} weeks before the start", "by the {}th of each month",
    "in the first {} months", "every {} weeks",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Duty:
    who: str
    act: tuple[str, ...]
    kind: int
    when: str

    def said(self, draw: random.Random, *, reworded: bool = False) -> str:
        base, done, what, other = self.act
        fitting = [form for form in _SAID[self.kind] if not (reworded and "{done}" in form)]
        verb = other if reworded else base
        return draw.choice(fitting).format(
            who=self.who,
            do=f"{verb} {what}",
            done=done,
            What=what[0].upper() + what[1:],
            when=f" {self.when}" if self.when else "",
        )


def duties(count: int, seed: int) -> Iterator[Pair]:
    """Yield pairs of `count` texts: claims with all labels, questions with and without answer."""
    draw = random.Random(f"{seed} {SOURCE}")
    for _ in range(count):
        roles = list(draw.choice(_ROLES))
        draw.shuffle(roles)
        acts = draw.sample(_ACTS, 4)
        stated = [_drawn(draw, roles[at % 2], act) for at, act in enumerate(acts[:3])]
        asked = draw.choice(stated)
        passage = stated[: draw.randrange(2, 4)]
        if asked not in passage:
            passage[-1] = asked
        draw.shuffle(passage)
        said = [duty.said(draw) for duty in passage]
        text = " ".join(said)
        other = next(role for role in roles if role != asked.who)
        yield from _claims(draw, asked, other, acts[3], text)
        yield from _questions(draw, asked, other, said, said[passage.index(asked)])


def _drawn(draw: random.Random, who: str, act: tuple[str, ...]) -> _Duty:
    when = draw.choice(_WHEN).format(draw.randrange(2, 29)) if draw.random() < _DATED else ""
    return _Duty(who, act, draw.choice((_MUST, _MUST, _MAY, _NEED_NOT, _MAY_NOT)), when)


def _claims(
    draw: random.Random, asked: _Duty, other: str, unsaid: tuple[str, ...], text: str
) -> Iterator[Pair]:
    reworded = draw.random() < _REWORDED
    when = asked.when if draw.random() < _DATED else ""

    def claim(duty: _Duty, label: int) -> Pair:
        return Pair(duty.said(draw, reworded=reworded), text, SOURCE, claim=label)

    yield claim(_Duty(asked.who, asked.act, asked.kind, when), SUPPORTED)
    falsified = draw.randrange(4)
    if falsified == 0:
        yield claim(_Duty(other, asked.act, asked.kind, when), UNSUPPORTED)
    elif falsified == 1:
        kind = draw.choice([one for one in range(4) if one != asked.kind])
        granted = (asked.kind, kind) == (_MUST, _MAY)
        denied = (asked.kind, kind) in _DENIES
        if not granted:
            label = CONTRADICTED if denied else UNSUPPORTED
            yield claim(_Duty(asked.who, asked.act, kind, ""), label)
    elif falsified == 2 and asked.when:
        number = next(word for word in asked.when.replace("th ", " ").split() if word.isdigit())
        changed = asked.when.replace(number, str(int(number) + draw.randrange(1, 9)))
        yield claim(_Duty(asked.who, asked.act, asked.kind, changed), CONTRADICTED)
    else:
        yield claim(_Duty(asked.who, unsaid, asked.kind, ""), NOT_STATED)


def _questions(
    draw: random.Random, asked: _Duty, other: str, said: list[str], answer: str
) -> Iterator[Pair]:
    base, _, what, reworded = asked.act
    verb = reworded if draw.random() < _REWORDED else base
    form = draw.choice(_ASKED[asked.kind])
    mixed_up = asked.kind == _MUST and draw.random() < _MIXED_UP
    who = other if mixed_up else asked.who
    does = f"{_third(verb)} {what}"
    question = form.format(who=who, do=f"{verb} {what}", does=does)
    yield Pair(question, answer, SOURCE, answers=1.0)
    beside = [one for one in said if one != answer]
    if beside:
        yield Pair(question, draw.choice(beside), SOURCE, answers=0.0)


def _third(verb: str) -> str:
    """Return the third person of a verb, or of the first word of a phrase."""
    first, _, rest = verb.partition(" ")
    ending = "es" if first.endswith(("sh", "ch", "s", "x", "z", "o")) else "s"
    if first.endswith("y") and first[-2:-1] not in "aeiou":
        first, ending = first[:-1], "ies"
    return f"{first}{ending} {rest}".rstrip()


_DATED = 0.4
"""Share of duties with a date or a term, and of claims that repeat it."""
_REWORDED = 0.5
"""Share of claims and questions that call the act by another word."""
_MIXED_UP = 0.2
"""Share of questions about a duty that ask of the other person; who has it answers them too."""
