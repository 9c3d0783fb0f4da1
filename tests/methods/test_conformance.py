"""Rules for every method. A new file in `isoviz/methods/` is tested automatically."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_model, save_model

from isoviz import methods, parameters
from isoviz.config import RunConfig
from isoviz.events import Event
from isoviz.methods.composition import changes_input
from isoviz.methods.protocol import Method, Params, TrainingSample
from isoviz.models import sources
from isoviz.models.adapter import HeadedModel, load_network
from isoviz.models.objectives import Objective
from isoviz.tasks.protocol import HeadKind
from isoviz.training.optimisation import make_optimizer
from tests import nightly
from tests.tiny import TinyModels
from tests.training import running
from tests.training.running import run

SLUGS = list(methods.catalogue())
every_method = pytest.mark.parametrize("slug", SLUGS)
PARAMS: dict[str, dict[str, object]] = {"isolayer": {"layer_epochs": 4, "layer_batch": 16}}
"""What keeps a method's tests short; all else is its default."""
OF_THE_NIGHT = {"cosreg", "flow", "gor", "isolayer", "sigreg", "simcse", "spectrum_exp", "spectrum_pol", "uniformity",
                "vicreg", "visreg"}  # fmt: skip
"""Methods whose short training is nightly; `make test` has it of a loss, of a transform and of each new method."""


KINDS = [(slug, kind) for slug in SLUGS for kind in methods.get(slug).kinds]
every_kind = pytest.mark.parametrize(("slug", "kind"), KINDS)


def built(
    tiny_models: TinyModels,
    method: Method,
    dropout: float = 0.0,
    kind: HeadKind = "classification",
    family: str = "",
) -> HeadedModel:
    family = family or ("bart" if kind == "seq2seq" else "bert")
    network = load_network(sources.resolve(str(tiny_models(family, dropout=dropout))), 2, 0, kind)
    model = HeadedModel(network, method, kind)
    if kind == "embedding":
        model.objective = Objective("cosent", 2, 0.05)
    batch = sentences(kind=kind)
    method.refresh(TrainingSample(0, lambda tokens: [model.eval().represent(**batch)]))
    return model


def made(slug: str, **params: object) -> Method:
    kind = methods.get(slug)
    return kind(kind.Params(**methods.check_params(slug, PARAMS.get(slug, {}) | params)))


def sentences(
    rows: int = 12, length: int = 9, extra: int = 0, seed: int = 0, kind: HeadKind = "classification"
) -> dict[str, torch.Tensor]:
    """Token numbers of sentences of different lengths, padded to the longest and `extra` further; labels of that kind."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, 45, (rows, length), generator=generator)
    ids[:, 0] = 2
    lengths = torch.randint(4, length + 1, (rows,), generator=generator)
    lengths[0] = length
    ids = torch.cat([ids, torch.zeros(rows, extra, dtype=torch.long)], dim=1)
    mask = (torch.arange(length + extra)[None] < lengths[:, None]).long()
    ids = ids * mask
    labels = {
        "classification": torch.arange(rows) % 2,
        "regression": torch.arange(rows) / 3,
        "embedding": (torch.arange(rows) // 2).float() % 4,
        "span": torch.stack([lengths - 3, lengths - 2], dim=1),
        "seq2seq": ids.flip(0).masked_fill(ids.flip(0) == 0, -100),
    }[kind]
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


@every_kind
def test_finite_loss_and_gradients_from_defaults(tiny_models, slug, kind):
    """In bf16 and float32. A parameter without gradient would stop a distributed run."""
    for precision in (torch.bfloat16, torch.float32):
        model = built(tiny_models, made(slug), kind=kind).train()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == torch.bfloat16):
            outputs = model(**sentences(kind=kind), penalise=True)
        outputs.loss.backward()
        assert math.isfinite(outputs.loss.item()), precision
        trained = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
        assert trained
        assert all(run.grad is None or run.grad.isfinite().all() for run in trained.values()), precision
        assert any(parameter.grad is not None and parameter.grad.any() for parameter in model.network.parameters()), (
            precision
        )
    unused = {name for name, parameter in trained.items() if parameter.grad is None}
    assert not {name for name in unused if "position_embeddings" not in name and "token_type" not in name}


@every_kind
def test_saved_and_loaded_it_gives_the_same_logits(tiny_models, slug, kind, tmp_path):
    model = built(tiny_models, made(slug), kind=kind).train()
    optimizer = make_optimizer(model, RunConfig(learning_rate=1e-2))
    for seed in range(3):  # so that there is something to keep
        model(**sentences(seed=seed, kind=kind), penalise=True).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    save_model(model, str(tmp_path / "model.safetensors"))
    again = built(tiny_models, made(slug), kind=kind)
    load_model(again, str(tmp_path / "model.safetensors"))
    batch = sentences(seed=9, kind=kind)
    assert model.eval()(**batch).logits.isfinite().all()
    with torch.no_grad():
        torch.testing.assert_close(again.eval()(**batch).logits, model.eval()(**batch).logits, rtol=0, atol=0)


@every_kind
def test_padding_changes_nothing(tiny_models, slug, kind):
    batch, wide = sentences(kind=kind), sentences(extra=7, kind=kind)
    model, other_model = (built(tiny_models, made(slug), kind=kind).train() for _ in range(2))
    plain, padded = model(**batch, penalise=True), other_model(**wide, penalise=True)
    assert set(plain.terms) == set(padded.terms)
    for name, term in plain.terms.items():
        torch.testing.assert_close(padded.terms[name], term, rtol=1e-4, atol=1e-6)
    model.eval()
    with torch.no_grad():
        one, other = model(**batch), model(**wide)
    seen = other.logits[:, : batch["input_ids"].shape[1]] if kind == "span" else other.logits
    torch.testing.assert_close(one.logits, seen, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(one.loss, other.loss, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(one.head, other.head, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("family", ["gpt2", "llama"])
@every_method
def test_a_decoder_is_regularised_like_an_encoder(tiny_models, slug, family):
    """One vector per row and layers of tokens: finite terms and gradients everywhere, whatever stands behind a row."""
    terms = []
    for extra in (0, 7):
        model = built(tiny_models, made(slug), family=family).train()
        outputs = model(**sentences(extra=extra), penalise=True)
        terms.append(outputs.terms)
        outputs.loss.backward()
        trained = [parameter for parameter in model.network.parameters() if parameter.requires_grad]
        assert all(parameter.grad is not None and parameter.grad.isfinite().all() for parameter in trained)
    assert terms[0].keys() == terms[1].keys()
    for name, term in terms[0].items():
        torch.testing.assert_close(terms[1][name], term, rtol=1e-4, atol=1e-6)


def test_default_hooks_are_the_baseline_exactly(tiny_models):
    class Nothing(Method):
        slug = "nothing"
        title = "Nothing"
        summary = "Does nothing."

    plain = built(tiny_models, made("baseline"), dropout=0.1).train()
    nothing = built(tiny_models, Nothing(Params()), dropout=0.1).train()
    losses = []
    for model in (plain, nothing):
        torch.manual_seed(3)
        outputs = model(**sentences(), penalise=True)
        outputs.loss.backward()
        losses.append((outputs.loss.item(), [p.grad for p in model.parameters() if p.grad is not None]))
    assert losses[0][0] == losses[1][0]
    assert all(torch.equal(a, b) for a, b in zip(losses[0][1], losses[1][1], strict=True))


# ---- whole runs ----------------------------------------------------------------------------------------------------


def config(model: Path, data: Path, slug: str, params: dict[str, object] | None = None) -> RunConfig:
    params = PARAMS.get(slug, {}) | (params or {})
    return running.config(model, data, slug, params, epochs=2, learning_rate=3e-3, batch_size=16)


Trained = Callable[[str, dict[str, object]], list[Any]]
"""The events of a short training by method and parameters."""


def check_effects(kind: type[Method], trained: Trained) -> None:
    """What `Method.effects` names is seen, and where it names nothing nothing is."""
    if not kind.effects:
        one, plain = trained(kind.slug, {})[-1], trained("baseline", {})[-1]
        assert (one.metrics, one.isotropy) == (plain.metrics, plain.isotropy)
    for measure, effect in kind.effects.items():
        if effect in ("with λ", "against λ"):
            apart = final(kind, trained(kind.slug, {"lam": 1.0}), measure) - final(
                kind, trained(kind.slug, {"lam": -1.0}), measure
            )
            assert apart > 0.05 if effect == "with λ" else apart < -0.05
            continue
        if measure == "penalty":  # at the largest strength that the method suggests: two epochs are short
            field = kind.Params.model_fields.get("lam")
            strong = {"lam": max(sweep)} if field is not None and (sweep := parameters.extra(field)["sweep"]) else {}
            events = trained(kind.slug, strong)
            with without_gradient(kind):  # the effect of the term alone while the task is learned
                by_itself = own_terms(trained(kind.slug, strong))
            change, least = own_terms(events) - by_itself, 0.1 * abs(by_itself)
        elif measure != "isoscore_star" and changes_input(kind):
            events = trained(kind.slug, {})
            change, least = final(kind, events, measure) - final(kind, events, measure, "pooled"), 0.02
        else:
            events = trained(kind.slug, {})
            change, least = final(kind, events, measure) - final(kind, trained("baseline", {}), measure), 0.02
        assert change > least if effect == "up" else change < -least, (measure, change)


@contextmanager
def without_gradient(kind: type[Method]) -> Iterator[None]:
    """The method's terms are reported, and train nothing."""
    penalties = kind.penalties
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            kind, "penalties", lambda *given: {name: term.detach() for name, term in penalties(*given).items()}
        )
        yield


def own_terms(events: list[Any]) -> float:
    """The sum of a method's terms at the last step."""
    losses = [event.losses for event in events if event.kind == "stepped"][-1]
    return float(sum(value for name, value in losses.items() if name not in ("task", "total")))


def final(kind: type[Method], events: list[Any], measure: str, cloud: str = "") -> float:
    """A measure at the end; of what the output layer reads, or of all layers' tokens where the method leaves that alone."""
    measured = [event for event in events if event.kind == "measured"][-1]
    if measure == "isoscore_star":
        return measured.isotropy.number(measure)
    return measured.isotropy.cloud(cloud or ("head" if changes_input(kind) else "layers")).number(measure)


@pytest.mark.parametrize("slug", nightly.cases(SLUGS, always={*SLUGS} - OF_THE_NIGHT))
def test_its_declared_effects_are_seen(tmp_path, slug):
    """On the bundled encoder."""

    def trained(slug: str, params: dict[str, object]) -> list[Event]:
        cfg = running.config(
            "demo/tiny-bert", None, slug, params, task="demo/acceptability", epochs=2, learning_rate=6e-4,
            batch_size=32, max_train=400, max_eval=300, max_length=48,
        )  # fmt: skip
        return run(cfg, new_folder(tmp_path))

    if slug != "baseline":  # what the others are held against
        check_effects(methods.get(slug), trained)


def new_folder(root: Path) -> Path:
    return Path(tempfile.mkdtemp(dir=root))


class Silent(Method):
    """Claims to change nothing, but halves the output layer's input."""

    slug, title, summary = "silent", "Silent", "Halves."

    def transform(self, reps, training):
        return reps.pooled / 2


class Stuck(Method):
    """Says that its term falls, and gives it no gradient."""

    slug, title, summary = "stuck", "Stuck", "Pulls at nothing."
    effects = {"penalty": "down"}

    def penalties(self, reps):
        return {"stuck": reps.pooled.detach().square().mean()}


class Backwards(Stuck):
    """Says that it lowers the mean cosine, and turns all vectors to the first dimension."""

    slug, title = "backwards", "Backwards"
    effects = {"mean_cosine": "down"}

    def transform(self, reps, training):
        return reps.pooled + 100 * torch.eye(reps.pooled.shape[1])[0]


@pytest.mark.parametrize("wrong", [Silent, Stuck, Backwards])
def test_a_method_that_declares_what_it_does_not_do_is_caught(tiny_models, cola, tmp_path, monkeypatch, wrong):
    known = {**methods.catalogue(), wrong.slug: wrong}
    monkeypatch.setattr(methods, "catalogue", lambda: known)

    def trained(slug, params):
        return run(config(tiny_models("bert"), cola, slug, params), new_folder(tmp_path))

    with pytest.raises(AssertionError):
        check_effects(wrong, trained)


def test_a_stop_in_the_second_stage_is_taken_up_again(tiny_models, cola, tmp_path):
    cfg = config(tiny_models("bert"), cola, "isolayer")
    uninterrupted = run(cfg, tmp_path / "whole")
    fine_tuning = 8  # 64 rows, batches of 16, two epochs
    assert max(event.step for event in uninterrupted if event.kind == "stepped") > fine_tuning
    assert [event.epoch for event in uninterrupted if event.kind == "measured"] == [0, 1, 2, 3]
    first = run(cfg, tmp_path / "parts", running.at_step(fine_tuning + 1))
    assert (first[-1].kind, first[-1].step) == ("stopped", fine_tuning)
    second = run(cfg, tmp_path / "parts", resume=True)
    assert second[-1].metrics == uninterrupted[-1].metrics
    assert second[-1].isotropy == uninterrupted[-1].isotropy
