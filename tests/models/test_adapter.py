"""Every supported family gives, through the adapter, what the library's own model gives."""

from __future__ import annotations

import pytest
import torch

from isoviz.methods import get
from isoviz.models import sources
from isoviz.models.adapter import HeadedModel, load_network, load_tokenizer
from isoviz.models.families import CLASSIFIERS, SEQ2SEQ
from tests import tiny

ENCODERS = (*tiny.FAMILIES, *tiny.LATER)
READERS = (*ENCODERS, *tiny.TWO_SIDED)
EVERY_WRITER = (*tiny.WRITERS, *tiny.LATER_WRITERS)


def headed(folder, method="baseline", kind="classification", **params):
    source = sources.resolve(str(folder))
    made = get(method)
    return HeadedModel(load_network(source, num_labels=2, seed=3, kind=kind), made(made.Params(**params)), kind)


def batch_of(folder, texts=("w1 w2 w3", "w0 w4", "w5 w6 w7 w8 w9")):
    tokens = load_tokenizer(sources.resolve(str(folder)))(list(texts), padding=True, return_tensors="pt")
    return dict(tokens)


def targets_of(folder, texts=("w3 w2 w1 w8", "w4", "w9 w8")):
    tokens = load_tokenizer(sources.resolve(str(folder)))(list(texts), padding=True, return_tensors="pt")
    return tokens["input_ids"].masked_fill(tokens["attention_mask"] == 0, -100)


@pytest.mark.parametrize("family", READERS)
def test_logits_are_the_librarys_own(tiny_models, family):
    folder = tiny_models(family)
    model = headed(folder).eval()
    batch = batch_of(folder)
    with torch.no_grad():
        outputs = model(**batch)
        expected = model.network(**batch).logits
    torch.testing.assert_close(outputs.logits, expected)
    assert outputs.reps.last_hidden.shape == (3, batch["input_ids"].shape[1], 16)
    assert len(outputs.reps.hidden_states) == model.num_layers == 2
    assert outputs.reps.pooled.shape == (3, model.head_width)


@pytest.mark.parametrize("family", READERS)
def test_numbers_and_their_loss_are_the_librarys_own(tiny_models, family):
    folder = tiny_models(family)
    model = headed(folder, kind="regression").eval()
    batch = batch_of(folder) | {"labels": torch.tensor([0.5, 3.0, 5.0])}
    with torch.no_grad():
        outputs, expected = model(**batch), model.network(**batch)
    assert outputs.logits.shape == (3, 1)
    torch.testing.assert_close(outputs.logits, expected.logits)
    torch.testing.assert_close(outputs.loss, expected.loss)
    assert outputs.count == 3


@pytest.mark.parametrize("family", READERS)
def test_span_logits_are_the_librarys_own_and_padding_cannot_win(tiny_models, family):
    folder = tiny_models(family)
    model = headed(folder, kind="span").eval()
    batch = batch_of(folder)
    keep = batch["attention_mask"].bool()
    labels = torch.tensor([[1, 2], [0, 0], [3, 4]])
    with torch.no_grad():
        outputs, expected = model(**batch, labels=labels), model.network(**batch)
    library = torch.stack([expected.start_logits, expected.end_logits], dim=-1)
    torch.testing.assert_close(outputs.logits[keep], library[keep])
    assert (outputs.logits[~keep] == torch.finfo(torch.float32).min).all()
    assert outputs.reps.pooled.shape == (int(keep.sum()), 16)
    by_hand = 0.0
    for row, (start, end) in enumerate(labels.tolist()):
        for column, place in ((0, start), (1, end)):
            by_hand -= float(library[row, keep[row], column].log_softmax(dim=0)[place]) / 6
    assert float(outputs.loss) == pytest.approx(by_hand, rel=1e-5)
    assert len(outputs.reps.hidden_states) == model.num_layers == 2


@pytest.mark.parametrize("family", tiny.TWO_SIDED)
def test_a_writers_classifier_reads_the_last_end_token_of_pairs(tiny_models, family):
    folder = tiny_models(family)
    model = headed(folder).eval()
    tokens = load_tokenizer(sources.resolve(str(folder)))(
        ["w1 w2", "w3"], ["w4", "w5 w6 w7 w8"], padding=True, return_tensors="pt"
    )
    batch = dict(tokens)
    assert (batch["input_ids"] == 3).sum(dim=1).tolist() == [2, 2] and not batch["attention_mask"].all()
    with torch.no_grad():
        outputs = model(**batch)
        torch.testing.assert_close(outputs.logits, model.network(**batch).logits)
        changed = batch | {"input_ids": batch["input_ids"].masked_fill(batch["attention_mask"] == 0, 9)}
        torch.testing.assert_close(model(**changed).logits, outputs.logits)  # padding is ignored
        torch.testing.assert_close(outputs.reps.cls, model.network.get_encoder()(**batch).last_hidden_state[:, 0])
        # what a decoder can see of a text whose tokenizer sets no end token: its last token
        bare = {name: values[:1, :3] for name, values in batch.items()}
        last = model.wiring.encode(bare).hidden_states[-1][0, 2]
        head = model.network.classification_head
        torch.testing.assert_close(model(**bare).reps.pooled[0], torch.tanh(head.dense(last)))
    assert torch.equal(outputs.reps.attention_mask, batch["attention_mask"])


@pytest.mark.parametrize("kind", ["classification", "span"])
@pytest.mark.parametrize("family", tiny.TWO_SIDED)
def test_a_writers_weights_are_in_its_other_heads(tiny_models, family, kind):
    """Checkpoints of writers name their weights without the prefix that some classes expect."""
    source = sources.resolve(str(tiny_models(family)))
    first, second = (dict(load_network(source, 2, seed, kind).named_parameters()) for seed in (1, 2))
    new = {name for name, values in first.items() if not torch.equal(values, second[name])}
    assert {name.split(".")[0] for name in new} == {"qa_outputs" if kind == "span" else "classification_head"}


@pytest.mark.parametrize("family", EVERY_WRITER)
def test_next_words_and_their_loss_are_the_librarys_own(tiny_models, family):
    folder = tiny_models(family)
    model = headed(folder, kind="seq2seq").eval()
    if family != "t5":  # which has no such bias
        model.network.final_logits_bias.normal_()
    batch = batch_of(folder) | {"labels": targets_of(folder)}
    keep = batch["labels"] != -100
    with torch.no_grad():
        outputs, expected = model(**batch), model.network(**batch)
    torch.testing.assert_close(outputs.logits, expected.logits[keep])
    torch.testing.assert_close(outputs.loss, expected.loss)
    assert outputs.count == int(keep.sum()) == len(outputs.reps.pooled) == len(outputs.head)
    assert torch.equal(outputs.reps.attention_mask.bool(), keep)
    assert len(outputs.reps.hidden_states) == model.num_layers == 2
    assert outputs.reps.output_weight.shape == (45, 16)
    assert outputs.reps.output_weight is model.network.get_input_embeddings().weight  # tied
    torch.testing.assert_close(
        outputs.reps.cls, model.network.get_encoder()(**batch_of(folder)).last_hidden_state[:, 0]
    )
    # what is named as feeding the output layer does so: T5 scales it first
    bias = 0 if family == "t5" else model.network.final_logits_bias
    torch.testing.assert_close(outputs.reps.pooled @ outputs.reps.output_weight.T + bias, outputs.logits)


@pytest.mark.parametrize(("method", "family"), [("isobn", "bart"), *(("flow", family) for family in EVERY_WRITER)])
def test_generated_text_is_the_argmax_of_the_logits(tiny_models, family, method):
    folder = tiny_models(family, dropout=0.0)
    model = headed(folder, method, kind="seq2seq").train()
    batch, labels = batch_of(folder), targets_of(folder)
    start = int(model.shifted(labels)[0, 0])
    with torch.no_grad():
        plain = model.eval().generate(**batch, decoder_start_token_id=start, max_new_tokens=8, do_sample=False)
        model.train()(**batch, labels=labels, penalise=True)  # so that there are statistics
        model.eval()
        generated = model.generate(**batch, decoder_start_token_id=start, max_new_tokens=8, do_sample=False)
        for row in range(3):
            alone = {name: values[row : row + 1] for name, values in batch.items()}
            written = [start]
            while len(written) == 1 or (len(written) < 9 and written[-1] != 3):  # some start with the end token
                logits = model(**alone, decoder_input_ids=torch.tensor([written])).logits[-1]
                written.append(int(logits.argmax()))
            assert generated[row, : len(written)].tolist() == written
            assert (generated[row, len(written) :] == 0).all()
    assert plain.tolist() != generated.tolist()
    assert not model.output._forward_pre_hooks


def test_habits_of_generation_are_left_behind(tiny_models, tmp_path):
    from transformers import BartForConditionalGeneration

    network = BartForConditionalGeneration.from_pretrained(tiny_models("bart"))
    network.generation_config.min_length = 9
    network.generation_config.no_repeat_ngram_size = 3
    network.save_pretrained(tmp_path)
    load_tokenizer(sources.resolve(str(tiny_models("bart")))).save_pretrained(tmp_path)
    settings = load_network(sources.resolve(str(tmp_path)), 0, 0, "seq2seq").generation_config
    assert not settings.min_length
    assert not settings.no_repeat_ngram_size
    assert (settings.eos_token_id, settings.pad_token_id) == (3, 0)


def test_every_family_is_tested():
    assert set(CLASSIFIERS) - set(READERS) == {"xlm-roberta", "camembert"}  # RoBERTa's classes under other names
    assert set(READERS) <= set(CLASSIFIERS)
    assert set(EVERY_WRITER) == SEQ2SEQ


def test_new_weights_follow_the_seed_and_leave_the_global_generator_alone(tiny_models):
    source = sources.resolve(str(tiny_models("bert")))
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first = load_network(source, 2, seed=1).classifier.weight
    second = load_network(source, 2, seed=1).classifier.weight
    third = load_network(source, 2, seed=2).classifier.weight
    assert torch.equal(first, second)
    assert not torch.equal(first, third)
    assert torch.equal(before, torch.get_rng_state())
