import torch
from given import filled, integers
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    T5Config,
    T5ForConditionalGeneration,
)


def functions():
    bert = filled(
        BertForSequenceClassification(
            BertConfig(
                vocab_size=50,
                hidden_size=32,
                num_hidden_layers=2,
                num_attention_heads=2,
                intermediate_size=64,
                max_position_embeddings=32,
            )
        )
    ).eval()
    gpt2 = filled(
        GPT2LMHeadModel(GPT2Config(vocab_size=50, n_embd=32, n_layer=2, n_head=2, n_positions=32))
    ).eval()
    t5 = filled(
        T5ForConditionalGeneration(
            T5Config(
                vocab_size=50,
                d_model=32,
                d_kv=16,
                d_ff=64,
                num_layers=2,
                num_heads=2,
                decoder_start_token_id=0,
            )
        )
    ).eval()
    tokens, mask = integers(2, 8, high=50), torch.ones(2, 8, dtype=torch.int64)
    mask[1, 5:] = 0

    def classified(tokens, mask):
        return bert(input_ids=tokens, attention_mask=mask, labels=tokens[:, 0] % 2)[:2]

    def modelled(tokens, mask):
        gpt2.zero_grad()
        loss = gpt2(input_ids=tokens, attention_mask=mask, labels=tokens, use_cache=False).loss
        loss.backward()
        return loss.detach(), gpt2.transformer.wte.weight.grad

    def translated(tokens, mask):
        return t5(input_ids=tokens, attention_mask=mask, labels=tokens, use_cache=False)[:2]

    return [
        ("bert", classified, [tokens, mask]),
        ("gpt2", modelled, [tokens, mask]),
        ("t5", translated, [tokens, mask]),
    ]
