"""Train the tiny model from nothing: python -m helpers.tiny_model.train

Read `initial_weights`, `AdamW`, `one_cycle`, then `train` and its loop, `descend`; the gradients are in
`gradients`. NumPy only, one seed for everything. The run prints how it goes and what the model has learned.

Two things are done for the sake of what comes after. One word in a hundred of what the model reads (never
of what it should predict) is "<unk>", so that this word has a sensible vector. And the model is not asked
what a person with held-out fruits loves: the answer would teach it which fruits that person never loves.

The position embeddings start as sinusoids and are learned from there. All five models we watched knew by
step 1,000 whose fruit is whose; of those whose positions started as random numbers several did not at
step 2,500.

Seeds differ in which heads take which job. The shipped weights are those of seed 7, the clearest of seeds
0 to 7: four jobs, four heads, with each of the five OpenBLAS kernels we tried (the numbers differ a
little). Of the other seven, six met the figures of `measure.shortfalls`, each with a pair of heads for a
job or two, and one just missed them (98.7 % of the reference words). So the command tries the next seed
when one falls short, and only a model that meets the figures replaces the shipped weights.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from helpers import arrays as given
from helpers.embeddings import sinusoidal_positions
from helpers.tiny_model import measure
from helpers.tiny_model.corpus import VOCAB, WORD_TO_ID, grammar
from helpers.tiny_model.gradients import loss_and_gradients
from helpers.tiny_model.model import WEIGHTS, from_arrays, save

SEED, TRIES, STEPS, BATCH = 7, 4, 2000, 64
N_MAX, D_MODEL, N_LAYERS, N_HEADS, D_K = 40, 48, 2, 4, 12
PEAK_RATE, WARM_UP, DECAY, CLIP, UNKNOWN = 6e-3, 0.1, 0.1, 1.0, 0.01


def initial_weights(rng, n_max=N_MAX, d_model=D_MODEL, n_layers=N_LAYERS, n_heads=N_HEADS, d_k=D_K):
    """Random weights, sized to keep every row near unit variance.  Returns a dict of float64 arrays."""
    rng = given.generator("rng", rng)
    sizes = {"n_max": n_max, "d_model": d_model, "n_layers": n_layers, "n_heads": n_heads, "d_k": d_k}
    n_max, d_model, n_layers, n_heads, d_k = (given.size(name, n, least=1) for name, n in sizes.items())
    given.size("n_layers · d_model · n_heads · d_k", n_layers * d_model * n_heads * d_k)
    V = len(VOCAB)
    w = {"E": rng.normal(0, 0.1, (V, d_model)), "P": 0.3 * sinusoidal_positions(n_max, d_model, 1000.0),
         "gamma": np.ones(d_model), "beta": np.zeros(d_model), "W_t": rng.normal(0, 0.02, (d_model, V))}
    for layer in range(n_layers):
        for name in ("W_q", "W_k", "W_v"):
            w[f"layer{layer}.{name}"] = rng.normal(0, d_model**-0.5, (d_model, n_heads * d_k))
        w[f"layer{layer}.W_o"] = rng.normal(0, 0.5 * (n_heads * d_k) ** -0.5, (n_heads * d_k, d_model))
        w[f"layer{layer}.gamma"], w[f"layer{layer}.beta"] = np.ones(d_model), np.zeros(d_model)
    return w


def flatten(w, dtype=np.float32):
    """The weights as one long row, and a dict of the same arrays that are windows into it."""
    row = np.concatenate([x.ravel() for x in w.values()]).astype(dtype)
    windows, start = {}, 0
    for name, x in w.items():
        windows[name] = row[start:start + x.size].reshape(x.shape)
        start += x.size
    return row, windows


class AdamW:
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019) on one long row of weights.

    Each weight moves by its mean gradient over the root of its mean squared gradient, both of them running
    means. Matrices also shrink a little at each step; gamma and beta do not.
    """

    def __init__(self, w, decay=DECAY, beta1=0.9, beta2=0.98):
        self.mean = self.square = np.float32(0)
        self.decay = np.concatenate([np.full(x.size, decay * (x.ndim == 2), x.dtype) for x in w.values()])
        self.beta1, self.beta2, self.t = beta1, beta2, 0

    def step(self, row, gradient, rate):
        """Change `row` in place."""
        self.t += 1
        self.mean = self.beta1 * self.mean + (1 - self.beta1) * gradient
        self.square = self.beta2 * self.square + (1 - self.beta2) * gradient * gradient
        mean = self.mean / (1 - self.beta1**self.t)                         # both began at 0: make up for it
        square = self.square / (1 - self.beta2**self.t)
        row -= rate * (mean / (np.sqrt(square) + 1e-8) + self.decay * row)


def one_cycle(step, steps, peak=PEAK_RATE, warm_up=WARM_UP):
    """The learning rate: up in a straight line, down along a cosine to 0.

    step : 0 … steps - 1, warm_up : the share of steps for the way up, above 0 and below 1.
    """
    steps = given.count("steps", steps, least=1)
    step, peak = given.count("step", step, most=steps - 1), given.number("peak", peak, positive=True)
    if not 0 < given.number("warm_up", warm_up) < 1:
        raise ValueError(f"warm_up must be above 0 and below 1, got {warm_up}")
    x = (step + 1) / steps
    if x < warm_up:
        return peak * x / warm_up
    return peak * (1 + np.cos(np.pi * (x - warm_up) / (1 - warm_up))) / 2


def train(seed=SEED, steps=STEPS, batch=BATCH, show=print):
    """A trained TinyModel and its losses, one a step.  show : called with each line of progress, or None."""
    steps, batch = how_long(steps, batch, show)
    rng = np.random.default_rng(given.count("seed", seed))
    row, w = flatten(initial_weights(rng))
    losses = descend(row, w, lambda *words: loss_and_gradients(w, *words, N_HEADS), rng, steps, batch,
                     show=show)
    return from_arrays(w | {"vocab": np.array(VOCAB), "n_heads": np.array(N_HEADS)}), losses


def how_long(steps, batch, show):
    """The numbers of steps and of stories in each; TypeError or ValueError, for a bad `show` too."""
    if show is not None and not callable(show):
        raise TypeError(f"show must be a function of a line, or None, got {given.came(show)}")
    return given.size("steps", steps, least=1), given.size("batch", batch, least=1)


def descend(row, w, slope, rng, steps, batch, peak=PEAK_RATE, show=print):
    """Change the weights, step by step, so that the loss falls.  Returns the losses, one a step.

    row, w : the weights as `flatten` gives them; row is changed in place.  slope : a function of read,
    targets, asked, (batch, n) each, that gives the loss and its gradient, a dict of the names of w.
    """
    stories = grammar(held_out=False).stories(steps * batch, N_MAX + 1, rng)
    optimiser, losses, start = AdamW(w), [], time.perf_counter()
    for step in range(steps):
        ids, new_fruit = (x[step * batch:(step + 1) * batch] for x in (stories.ids, stories.new_fruit))
        read, targets, asked = ids[:, :-1].copy(), ids[:, 1:], ~new_fruit[:, 1:]            # (batch, n)
        read[:, 1:][rng.random((batch, N_MAX - 1)) < UNKNOWN] = WORD_TO_ID["<unk>"]
        loss, gradients = slope(read, targets, asked)
        gradient = np.concatenate([gradients[name].ravel() for name in w])
        gradient *= min(1, CLIP / np.linalg.norm(gradient))
        optimiser.step(row, gradient, one_cycle(step, steps, peak))
        losses.append(loss)
        if show and ((step + 1) % 100 == 0 or step + 1 == steps):
            left = (time.perf_counter() - start) / (step + 1) * (steps - step - 1)
            show(f"step {step + 1:5d} of {steps}   loss {np.mean(losses[-100:]):.3f}   {left:4.0f} s left")
    return losses


def positive(text):
    """A whole number of at least 1, from the command line."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


def main(arguments=None):
    """The command line.  Returns the exit status: 0 when the model shows what it must."""
    parser = argparse.ArgumentParser(prog="python -m helpers.tiny_model.train",
                                     description="Train the tiny model from nothing.")
    parser.add_argument("--seed", type=int, default=SEED, help="first seed to try (%(default)s)")
    parser.add_argument("--tries", type=positive, default=TRIES, help="seeds to try at most (%(default)s)")
    parser.add_argument("--steps", type=positive, default=STEPS, help="steps of training (%(default)s)")
    parser.add_argument("--out", type=Path, help="where to write the weights, good or not (by default "
                                                 "beside this file, and only if the figures are met)")
    options = parser.parse_args(arguments)
    for seed in range(options.seed, options.seed + options.tries):
        print(f"seed {seed}", flush=True)
        model, _ = train(seed, options.steps, show=lambda line: print(line, flush=True))
        print(measure.report(model))
        lacks = measure.shortfalls(model)
        if not lacks:
            break
        print("not yet what the course needs:", *lacks, sep="\n  ")
    if lacks and not options.out:
        print(f"no seed did; {WEIGHTS.name} stays as it was")
        return 1
    save(model, options.out or WEIGHTS)
    print(f"written to {options.out or WEIGHTS}")
    return int(bool(lacks))


def one_thread(main):
    """Run `main` as a command, in a process with one thread for matrix products, and exit with its status.

    The matrices are small: two threads mostly wait for each other, on a busy machine for minutes. NumPy reads
    the number of threads when it is imported, which is past: hence a process of its own.
    """
    wanted = {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "VECLIB_MAXIMUM_THREADS": "1"}
    try:
        if wanted.keys() & os.environ.keys():
            sys.exit(main())
        command = [sys.executable, "-m", sys.modules["__main__"].__spec__.name, *sys.argv[1:]]
        sys.exit(subprocess.call(command, env=os.environ | wanted))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    one_thread(main)
