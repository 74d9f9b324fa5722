"""Language models by ``transformers``."""

from typing import Any

from benchmarks.networks.modules import HIDDEN, constant_causal_mask, tokens, with_result


def bert(**sizes: int) -> Any:
    """Return BERT's embeddings and encoder, without a mask.

    Args:
        sizes: What differs from BERT-base, as ``BertConfig`` names it.
    """
    import torch
    from transformers import BertConfig, BertModel

    class Encoder(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = BertModel(BertConfig(attn_implementation="eager", **sizes))

        def forward(self, tokens: Any) -> Any:
            hidden = self.model.embeddings(tokens)
            for layer in self.model.encoder.layer:
                result = layer(hidden)
                hidden = result[0] if isinstance(result, tuple) else result
            return hidden

    return Encoder()


def gpt2(**sizes: int) -> Any:
    """Return GPT-2 without its output embedding and without a cache, its causal mask a constant.

    Args:
        sizes: What differs from the smallest GPT-2, as ``GPT2Config`` names it.
    """
    from transformers import GPT2Config, GPT2Model

    model = GPT2Model(GPT2Config(attn_implementation="eager", use_cache=False, **sizes))
    return with_result(model, HIDDEN, attention_mask=constant_causal_mask())


def bert_mini() -> tuple[Any, ...]:
    """Return four layers of 256 features of BERT and a sequence."""
    return bert(hidden_size=256, intermediate_size=1024, num_attention_heads=4, num_hidden_layers=4), tokens()


def gpt2_mini() -> tuple[Any, ...]:
    """Return two layers of 256 features of GPT-2 and a sequence."""
    return gpt2(n_embd=256, n_head=4, n_layer=2), tokens()


def t5_encoder() -> tuple[Any, ...]:
    """Return four layers of T5-small's encoder and a sequence."""
    from transformers import T5Config, T5EncoderModel

    return with_result(T5EncoderModel(T5Config(num_layers=4)), HIDDEN), tokens()


def llama() -> tuple[Any, ...]:
    """Return four layers of 512 features of LLaMA, its causal mask a constant, and a sequence."""
    from transformers import LlamaConfig, LlamaModel

    sizes = {"hidden_size": 512, "intermediate_size": 1376, "num_attention_heads": 8, "num_key_value_heads": 8}
    network = LlamaModel(LlamaConfig(num_hidden_layers=4, use_cache=False, **sizes))
    return with_result(network, HIDDEN, attention_mask=constant_causal_mask()), tokens()


def distilbert_bf16() -> tuple[Any, ...]:
    """Return three layers of DistilBERT in bf16 and a sequence."""
    import torch
    from transformers import DistilBertConfig, DistilBertModel

    return with_result(DistilBertModel(DistilBertConfig(n_layers=3)).to(torch.bfloat16), HIDDEN), tokens()
