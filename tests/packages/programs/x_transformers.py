from given import filled, integers, trained
from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper


def functions():
    model = filled(
        AutoregressiveWrapper(
            TransformerWrapper(
                num_tokens=40,
                max_seq_len=16,
                attn_layers=Decoder(dim=32, depth=2, heads=2, rotary_pos_emb=True),
            )
        )
    )
    step = trained(model, lambda m, tokens: m(tokens))
    return [("language model step", step, [integers(2, 12, high=40)])]
