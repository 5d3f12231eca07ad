"""Train the reader on pairs, with checkpoints that a next call goes on from."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional

from evaluation.training.network import Reader
from evaluation.training.pairs import UNSUPPORTED, Pair

MAX_TOKENS = 160
_BUCKET = 64
"""Batches of one draw, sorted by length together."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How a fit goes."""

    batch: int = 32
    rate: float = 1e-4
    """Of AdamW, at its highest; linear from zero over the first 4 %, and to zero at the end."""
    decay: float = 0.01
    save_every_s: float = 600.0
    seed: int = 5


@dataclass(frozen=True, slots=True)
class Batch:
    """Padded token ids and what is asked of each pair; a weight of 0 asks nothing."""

    ids: Tensor
    types: Tensor
    mask: Tensor
    claim: Tensor
    answers: Tensor
    span: Tensor


def batches(pairs: Sequence[Pair], plan: Plan) -> list[list[int]]:
    """Return indices of pairs by batch, of similar length, in an order that the seed draws."""
    lengths = [len(pair.first) + len(pair.second) for pair in pairs]
    made: list[list[int]] = []
    size = plan.batch * _BUCKET
    for begin in range(0, len(pairs), size):
        drawn = sorted(range(begin, min(begin + size, len(pairs))), key=lambda at: lengths[at])
        made += [drawn[at : at + plan.batch] for at in range(0, len(drawn), plan.batch)]
    order = torch.randperm(len(made), generator=torch.Generator().manual_seed(plan.seed))
    return [made[at] for at in order.tolist()]


def batch_of(tokenizer: Tokenizer, pairs: Sequence[Pair]) -> Batch:
    """Return pairs as tensors, cut at the end of the passage."""
    encoded = tokenizer.encode_batch([(pair.first, pair.second) for pair in pairs])
    longest = min(MAX_TOKENS, max(len(one.ids) for one in encoded))
    ids, types, mask = (torch.zeros(len(pairs), longest, dtype=torch.long) for _ in range(3))
    claim = torch.full((len(pairs),), -1)
    answers = torch.full((len(pairs),), -1.0)
    span = torch.full((len(pairs), 2), -1)
    for row, (pair, one) in enumerate(zip(pairs, encoded, strict=True)):
        size = min(longest, len(one.ids))
        kept = one.ids[: size - 1] + one.ids[-1:]
        ids[row, :size] = torch.tensor(kept)
        types[row, :size] = torch.tensor(one.type_ids[:size])
        mask[row, :size] = 1
        claim[row] = -1 if pair.claim is None else pair.claim
        answers[row] = -1.0 if pair.answers is None else pair.answers
        if pair.span is not None:
            start = one.char_to_token(pair.span[0], 1)
            end = one.char_to_token(pair.span[1] - 1, 1)
            if start is not None and end is not None and end < size - 1:
                span[row] = torch.tensor([start, end])
    return Batch(ids, types, mask, claim, answers, span)


def loss_of(reader: Reader, batch: Batch) -> tuple[Tensor, dict[str, float]]:
    """Return the sum of the heads' mean losses, and each by its name."""
    answers, claim, span = reader(batch.ids, batch.types, batch.mask)
    parts: dict[str, Tensor] = {}
    asked = batch.claim >= 0
    if asked.any():
        known = functional.log_softmax(claim[asked], -1)
        label = batch.claim[asked]
        exact = known.gather(1, label.clamp(max=2)[:, None])[:, 0]
        either = torch.logsumexp(known[:, 1:], -1)
        parts["claim"] = -torch.where(label == UNSUPPORTED, either, exact).mean()
    asked = batch.answers >= 0
    if asked.any():
        parts["answers"] = functional.binary_cross_entropy_with_logits(
            answers[asked], batch.answers[asked]
        )
    asked = batch.span[:, 0] >= 0
    if asked.any():
        logits = span[asked].masked_fill(batch.mask[asked][:, :, None] == 0, -1e4)
        parts["span"] = 0.5 * sum(
            functional.cross_entropy(logits[:, :, side], batch.span[asked][:, side])
            for side in (0, 1)
        )
    weights = {"claim": 1.0, "answers": 1.0, "span": 0.5}
    total = torch.stack([weights[name] * part for name, part in parts.items()]).sum()
    return total, {name: float(part.detach()) for name, part in parts.items()}


def fit(
    reader: Reader,
    tokenizer: Tokenizer,
    pairs: Sequence[Pair],
    plan: Plan,
    checkpoint: Path,
    say: Callable[[str], None],
    until: float = math.inf,
) -> bool:
    """Train over the pairs once; True when done, False when `until` (time.monotonic) came first.

    A checkpoint goes on where it ended, if pairs and plan are the same.
    """
    order = batches(pairs, plan)
    optimiser = torch.optim.AdamW(reader.trained(), plan.rate, weight_decay=plan.decay)
    warm = max(1, int(0.04 * len(order)))

    def scale(step: int) -> float:
        return min((step + 1) / warm, (len(order) - step) / max(1, len(order) - warm))

    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, scale)
    step, means = 0, dict[str, float]()
    if checkpoint.is_file():
        kept = torch.load(checkpoint, weights_only=True)
        if kept["batches"] != len(order):
            raise SystemExit(f"{checkpoint} is of another fit; move it away")
        reader.load_state_dict(kept["reader"])
        optimiser.load_state_dict(kept["optimiser"])
        schedule.load_state_dict(kept["schedule"])
        step, means = kept["step"], kept["means"]
    begun, saved, first = time.monotonic(), time.monotonic(), step
    reader.train()
    while step < len(order) and time.monotonic() < until:
        batch = batch_of(tokenizer, [pairs[at] for at in order[step]])
        total, parts = loss_of(reader, batch)
        optimiser.zero_grad()
        total.backward()
        torch.nn.utils.clip_grad_norm_(reader.trained(), 1.0)
        optimiser.step()
        schedule.step()
        step += 1
        for name, value in parts.items():
            means[name] = 0.98 * means.get(name, value) + 0.02 * value
        now = time.monotonic()
        if step % 50 == 0:
            rate = (step - first) / (now - begun)
            left = (len(order) - step) / rate / 60
            losses = " ".join(f"{name} {value:.3f}" for name, value in sorted(means.items()))
            say(
                f"{step} of {len(order)} batches, {rate * plan.batch:.1f} pairs a second,"
                f" {left:.0f} min left; {losses}"
            )
        if now - saved > plan.save_every_s or step == len(order) or now >= until:
            _save(checkpoint, reader, optimiser, schedule, step, len(order), means)
            saved = now
    return step == len(order)


def _save(
    path: Path,
    reader: Reader,
    optimiser: torch.optim.Optimizer,
    schedule: torch.optim.lr_scheduler.LRScheduler,
    step: int,
    of: int,
    means: dict[str, float],
) -> None:
    part = path.with_suffix(".part")
    held = {"reader": reader.state_dict(), "optimiser": optimiser.state_dict()}
    torch.save(
        {**held, "schedule": schedule.state_dict(), "step": step, "batches": of, "means": means},
        part,
    )
    part.replace(path)


def write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
