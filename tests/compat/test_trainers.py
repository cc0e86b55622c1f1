"""Programs on torch give the same with a facade as with the real tokenizer: collators, TRL, lm-eval, embeddings.

Models are tiny and random. Nothing is fetched.
"""

import pytest
from pairs import TEXTS, pair_of

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

pytestmark = pytest.mark.filterwarnings("ignore")  # of other packages
CHAT = (
    "{% for m in messages %}{{ '<|' + m.role + '|>' }}{% if m.role == 'assistant' %}"
    "{% generation %}{{ m.content }}{% endgeneration %}{% else %}{{ m.content }}{% endif %}{% endfor %}"
)
MESSAGES = [
    [{"role": "user", "content": text}, {"role": "assistant", "content": text[::-1] + "."}] for text in TEXTS if text
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("real")


@pytest.fixture(scope="module")
def causal(folder):
    """(the facade, the real tokenizer, a model)."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    config = GPT2Config(n_layer=1, n_head=2, n_embd=8, n_positions=128, vocab_size=50257)
    return *pair_of("gpt-2", folder, chat_template=CHAT, model_max_length=128), GPT2LMHeadModel(config)


def as_lists(batch):
    return {name: values.tolist() for name, values in batch.items()}


@pytest.mark.parametrize("name", ["bert", "gpt-2"])
def test_collators_give_the_same_tensors(folder, name):
    from transformers import DataCollatorForLanguageModeling, DataCollatorWithPadding

    padded, modeled = [], []
    for tok in pair_of(name, folder):
        rows = [tok(text, return_special_tokens_mask=True) for text in TEXTS if text]
        padded.append(as_lists(DataCollatorWithPadding(tok, pad_to_multiple_of=8)(list(rows))))
        torch.manual_seed(3)
        modeled.append(as_lists(DataCollatorForLanguageModeling(tok, mlm=name == "bert")(list(rows))))
    assert padded[0] == padded[1]
    assert modeled[0] == modeled[1]
    assert isinstance(padded[0]["input_ids"], list)


ROWS = {
    "text": [{"text": text} for text in TEXTS if text],
    "prompts": [{"prompt": text, "completion": f" {text}!"} for text in TEXTS if text],
    "messages": [{"messages": chat} for chat in MESSAGES],
}


@pytest.mark.parametrize("kind", ROWS)
def test_trl_prepares_the_same_data_set(causal, tmp_path, kind):
    trl = pytest.importorskip("trl", reason="trl is not installed")
    from datasets import Dataset

    mine, theirs, model = causal
    found = []
    for tok in (mine, theirs):
        options = {"assistant_only_loss": True} if kind == "messages" else {}
        how = trl.SFTConfig(
            str(tmp_path), max_length=32, report_to=[], use_cpu=True, bf16=False, max_steps=2, **options
        )
        rows = Dataset.from_list(ROWS[kind])
        trainer = trl.SFTTrainer(model, args=how, train_dataset=rows, processing_class=tok)
        made = trainer.train_dataset.to_list()
        found.append((made, as_lists(trainer.data_collator(made[:3]))))
    assert found[0] == found[1]
    assert any(row["input_ids"] for row in found[0][0])
    if kind == "messages":
        learned = {label != -100 for row in found[0][0] for label in row["labels"]}
        assert learned == {True, False}


def test_trl_trains_to_the_same_loss(causal, tmp_path):
    trl = pytest.importorskip("trl", reason="trl is not installed")
    import copy

    from datasets import Dataset

    mine, theirs, model = causal
    losses = []
    for tok in (mine, theirs):
        how = trl.SFTConfig(
            str(tmp_path), max_steps=2, per_device_train_batch_size=2, max_length=32, report_to=[], use_cpu=True,
            bf16=False, save_strategy="no", seed=1,
        )  # fmt: skip
        rows = Dataset.from_list(ROWS["text"])
        trainer = trl.SFTTrainer(copy.deepcopy(model), args=how, train_dataset=rows, processing_class=tok)
        losses.append(trainer.train().training_loss)
    assert losses[0] == losses[1]


def test_lm_eval_scores_the_same(causal):
    lm_eval = pytest.importorskip("lm_eval", reason="lm-eval is not installed")
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    assert lm_eval
    mine, theirs, model = causal
    first, second = (HFLM(pretrained=model, tokenizer=tok, batch_size=2, device="cpu") for tok in (mine, theirs))
    pairs = [(TEXTS[0] + " ", " and then"), ("Tokens are", " counted"), ("", "x"), (TEXTS[3], TEXTS[4])]
    for text in TEXTS:
        assert first.tok_encode(text) == second.tok_encode(text)
        assert first.tok_decode(first.tok_encode(text)) == second.tok_decode(second.tok_encode(text))
    for pair in pairs[:2] + pairs[3:]:
        assert first._encode_pair(*pair) == second._encode_pair(*pair)
    batches = [[part.tolist() for part in each.tok_batch_encode(TEXTS[2:])] for each in (first, second)]
    assert batches[0] == batches[1]
    asked = [Instance("loglikelihood", {}, pair, k) for k, pair in enumerate(pairs)]
    assert first.loglikelihood(asked) == second.loglikelihood(asked)
    rolling = [Instance("loglikelihood_rolling", {}, (text,), k) for k, text in enumerate(TEXTS) if text]
    assert first.loglikelihood_rolling(rolling) == second.loglikelihood_rolling(rolling)
    until = [Instance("generate_until", {}, (text, {"until": ["."], "max_gen_toks": 4}), 0) for text in TEXTS if text]
    assert first.generate_until(until) == second.generate_until(until)
    chat = MESSAGES[0]
    assert first.apply_chat_template(chat) == second.apply_chat_template(chat)


def test_sentence_transformers_embed_the_same(folder, tmp_path):
    pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    from sentence_transformers import SentenceTransformer, models
    from transformers import BertConfig, BertModel

    mine, theirs = pair_of("bert", folder, model_max_length=32)
    config = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
    BertModel(config).save_pretrained(tmp_path)
    theirs.save_pretrained(tmp_path)
    word = models.Transformer(str(tmp_path), max_seq_length=32)
    model = SentenceTransformer(modules=[word, models.Pooling(16)], device="cpu")
    texts = [*TEXTS, " ".join(TEXTS)]
    want, ids = model.encode(texts), model.tokenize(texts)["input_ids"].tolist()
    if hasattr(word, "processor"):
        word.processor = mine
    else:
        model.tokenizer = mine
    assert model.tokenizer is mine
    assert model.tokenize(texts)["input_ids"].tolist() == ids
    assert model.encode(texts).tolist() == want.tolist()


def test_a_pipeline_finds_the_same_words(folder):
    from transformers import BertConfig, BertForTokenClassification, pipeline

    torch.manual_seed(0)
    config = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, num_labels=3)
    model, texts = BertForTokenClassification(config).eval(), [text for text in TEXTS if text]
    found = [
        pipeline("token-classification", model=model, tokenizer=tok, aggregation_strategy="simple")(texts)
        for tok in pair_of("bert", folder)
    ]
    assert found[0] == found[1]
    assert sum(map(len, found[0])) > 10


def test_text_generation_with_a_chat_is_the_same(causal):
    from transformers import pipeline

    mine, theirs, model = causal
    said = [
        pipeline("text-generation", model=model, tokenizer=tok)(MESSAGES[:2], max_new_tokens=4, do_sample=False)
        for tok in (mine, theirs)
    ]
    assert said[0] == said[1]
