"""What the length of a text costs: `ContextCost`."""

from helpers.arrays import count, flag
from helpers.cost import activation_bytes, crossover, layer_flops
from helpers.explorers.base import Explorer, choice, pick, slider, written_out
from helpers.figures.words import counted, large, number, thousands
from helpers.figures.work_curves import percent, work_curves
from helpers.published_models import PUBLISHED
from helpers.tiles import N_QUERIES, N_SCORES

OWN = "own sizes"
MODELS = {name: sizes for name, sizes in PUBLISHED.items() if sizes.d_ff}
LENGTHS = [2**e for e in range(6, 21)]
WIDTHS = (256, 512, 768, 1024, 2048, 4096, 8192, 16384)
HEAD = 64                    # the width of a head to begin with, where sizes are the reader's own
VALUE = 2                    # bytes a number
MOST = {"n": 10**8, "d_model": 10**6, "layers": 10**4, "n_heads": 10**6}        # far above any model's
PARTS = ("projections", "MLP", "scores", "weighted sum")


class ContextCost(Explorer):
    """The work of a layer and what it holds, by the length of the text and the sizes of the model."""

    def __init__(self, model, n, d_model, layers, n_heads, mlp, causal):
        super().__init__()
        own = {"d_model": d_model, "layers": layers, "n_heads": n_heads}
        own = {name: count(name, value, least=1, most=MOST[name])
               for name, value in own.items() if value is not None}
        self.model = choice("model", [*MODELS, OWN], model)
        m = MODELS.get(model) or MODELS["GPT-3"]
        its = {"d_model": m.n_heads * m.d_head, "layers": m.n_layers, "n_heads": m.n_heads}
        if own.items() - its.items():
            self.model.value = OWN
        d_model = own.get("d_model", m.n_heads * m.d_head)
        n_heads = own.get("n_heads", self.usual_heads(d_model) if "d_model" in own else m.n_heads)
        widths = {*WIDTHS, *(m.n_heads * m.d_head for m in MODELS.values())}
        self.n = pick("n", LENGTHS, count("n", n, least=1, most=MOST["n"]), "tokens in the text")
        self.d_model = pick("d_model", widths, d_model, "numbers for a token")
        self.n_heads = pick("heads", self.heads_of(d_model, n_heads), n_heads, "heads in a layer")
        self.layers = slider("layers", max(128, own.get("layers", 1)), own.get("layers", m.n_layers),
                             "layers of the model", first=1)
        mlp, causal = flag("mlp", mlp), flag("causal", causal)
        self.mlp = choice("counted", (True, False), mlp, ["attention and MLP", "attention alone"])
        self.causal = choice("pairs", (False, True), causal, ["all", "those that may be read"])
        self.assemble([self.model], [self.n], [self.d_model, self.n_heads, self.layers],
                      [self.mlp, self.causal])

    @staticmethod
    def heads_of(d_model, n_heads=None):
        """Numbers of heads that share d_model evenly, heads of 8 to 256 numbers; and the one given."""
        if n_heads and d_model % n_heads:
            raise ValueError(f"n_heads must divide d_model, got {n_heads} and {d_model}")
        usual = {d_model // wide for wide in range(8, 257) if d_model % wide == 0}
        return sorted(usual | {n_heads or 1} if n_heads or not usual else usual)

    def usual_heads(self, d_model):
        """How many heads make each of them about HEAD wide."""
        return min(self.heads_of(d_model), key=lambda h: abs(d_model / h - HEAD))

    def changed(self, change):
        owner = change["owner"]
        if self.still or owner not in (self.model, self.d_model, self.n_heads, self.layers):
            super().changed(change)
            return
        with self.together():
            m = MODELS.get(self.model.value)
            if owner is not self.model:
                self.model.value = OWN
            elif m:
                self.d_model.value, self.layers.value = m.n_heads * m.d_head, m.n_layers
            if owner is self.d_model or owner is self.model and m:
                h = m.n_heads if owner is self.model else self.usual_heads(self.d_model.value)
                self.n_heads.options = written_out(self.heads_of(self.d_model.value, h))
                self.n_heads.value = h

    def picture(self):
        n, d_model, h, layers = (c.value for c in (self.n, self.d_model, self.n_heads, self.layers))
        m, mlp, causal = MODELS.get(self.model.value), self.mlp.value, self.causal.value
        kept = m.n_kv_heads if m else h
        d_ff = (m.d_ff if m else 4 * d_model) if mlp else 0
        sizes = dict(n_kv_heads=kept, d_ff=d_ff, gated=bool(m and m.gated), causal=causal)
        lengths = [length for _, length in self.n.options]
        flops = [layer_flops(at, d_model, h, **sizes) for at in lengths]
        curves = {name: [float(sum(part[of] for of in parts)) for part in flops] for name, parts in
                  ((f"projections{' and MLP' if mlp else ''}: grow with n", PARTS[:2]),
                   ("scores and weighted sum: grow with n²", PARTS[2:]))}
        overtakes = crossover(d_model, h, **sizes)
        parts = {name: flops[lengths.index(n)][name] for name in PARTS if mlp or name != "MLP"}
        share = percent((parts["scores"] + parts["weighted sum"]) / sum(parts.values()))
        whole = activation_bytes(n, d_model, h, kept, bytes_per_value=VALUE)
        tiles = VALUE * tile_numbers(n)
        held = {"K and V": whole["K and V"], "S, formed whole": whole["S"], "S, in tiles": tiles}
        facts = [("n² overtakes at", f"{thousands(overtakes)} tokens"), ("share of the n² work now", share),
                 (f"FLOPs of {'the layer' if layers == 1 else f'all {thousands(layers)} layers'}",
                  large(layers * sum(parts.values()))),
                 ("S in tiles takes", times_less(whole["S"] / tiles))]
        name = self.model.value if m else f"d_model {thousands(d_model)}"
        title = (f"{name}: at {counted(n, 'token')} n² is {share} of the work, "
                 f"at {thousands(overtakes)} half of it")
        gated = ", gated" if m and m.gated else ""
        inner = f"MLP {thousands(d_ff)} wide{gated}" if mlp else "MLP not counted"
        own = "" if kept == h else f", {thousands(kept)} of keys and values"
        note = (f"{counted(h, 'head')} of {thousands(d_model // h)}{own}; {inner}. "
                "Dashed: n now; dotted: where the lines meet. n²: scores and weighted sum. In tiles, as the "
                "course's attention() works on each thread: "
                f"{N_QUERIES} × {thousands(N_SCORES // N_QUERIES)} scores of one head at a time, at most, "
                f"and a maximum and a sum for each of these queries. {VALUE} bytes a number. ")
        if m:
            note += f"Sizes: {m.source}."
        else:
            wide = ", and the MLP is 4 · d_model wide" if mlp else ""
            note += f"Own sizes: every head has keys and values of its own{wide}."
        return work_curves(n, lengths, curves, overtakes, parts, held, facts, title, note)


def tile_numbers(n):
    """How many numbers stand for S while a text of n tokens is read in tiles: scores, maxima and sums."""
    queries = min(n, N_QUERIES)
    return queries * min(n, N_SCORES // queries) + 2 * queries


def times_less(times):
    """How many times less, where it is less."""
    if times <= 1:
        return "no less"
    return f"{number(times, 1) if times < 10 else large(times)} times less"
