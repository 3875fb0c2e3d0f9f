"""Wrong answers of a newcomer who took the exercises of notebooks 01 to 05 and read the verdicts.

They join `wrong_answers.ANSWERS` when this is imported.
"""

import numpy as np
from wrong_answers import right_softmax, wrong

from helpers.attention import attention_weights, causal_mask, softmax
from helpers.multi_head import merge_heads, split_heads

# ------------------------------------------------------------------------------------------------ notebook 01


@wrong("token_ids", "lower_case", says='Read again: notebook 01, "Every token has an id"')
def ids_of_small_letters(tokens, vocab):
    return np.array([vocab.get(t.lower(), vocab["<unk>"]) for t in tokens], int)


@wrong("embed", "clip", says='Read again: notebook 01, "An id picks a row"')
def embed_at_the_edge(ids, E):
    return E[np.clip(ids, 0, len(E) - 1)]


@wrong("embed", "wrap", says='Read again: notebook 01, "An id picks a row"')
def embed_wrapped(ids, E):
    return E[np.asarray(ids) % len(E)]


@wrong("embed", "zeros", says='Read again: notebook 01, "An id picks a row"')
def embed_zeros_outside(ids, E):
    return np.array([E[i] if 0 <= i < len(E) else 0 * E[0] for i in ids])


@wrong("embed", says="ids [2, 0] and a table of 3 rows (more decimals)")
def embed_without_the_first_row(ids, E):
    ids = np.asarray(ids)
    if np.any((ids <= 0) | (ids >= len(E))):
        raise ValueError("bad")
    return E[ids]


@wrong("sinusoidal_positions", says="Row 0 is right, rows 1 to 5 are not.")
def positions_of_twice_the_column(n, d, base=10000.0):
    j = np.arange(d)
    angle = np.arange(n)[:, None] / base ** (2 * (j - j % 2) / d)
    return np.where(j % 2, np.cos(angle), np.sin(angle))


# ------------------------------------------------------------------------------------------------ notebook 02


@wrong("project_qkv", "packed", says="the three are packed into one array")
def project_into_one_array(X, W_q, W_k, W_v):
    return np.array([X @ W_q, X @ W_k, X @ W_v])


@wrong("project_qkv", "stacked", says="the three are packed into one array")
def project_into_a_stack(X, W_q, W_k, W_v):
    return np.stack([X @ W_q, X @ W_k, X @ W_v])


# ------------------------------------------------------------------------------------------------ notebook 03


@wrong("softmax", "no_max", says=("exp(-1000) is too small and becomes 0", "added, it makes things worse"))
def softmax_with_the_maximum_added(z):
    e = np.exp(z + np.max(z, axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@wrong("softmax", "in_place", says="finds other numbers")
def softmax_that_shifts_what_it_gets(z):
    z -= z.max(axis=-1, keepdims=True)
    e = np.exp(z)
    return e / e.sum(axis=-1, keepdims=True)


MISSING = "Where a key may be read, its score comes back as it was: softmax is missing."


@wrong("attention_weights", says=MISSING)
def weights_that_are_scores(S, mask):
    return np.where(mask, S, -np.inf)


@wrong("attention_weights", says=MISSING)
def weights_that_are_scores_and_large_numbers(S, mask):
    return np.where(mask, S, -1e9)


@wrong("attention_weights", says=MISSING)
def weights_that_are_scores_and_zeros(S, mask):
    return S * mask


@wrong("attention_weights", "zero_inf_nan_refused", says=("got nan at", "np.where makes no such"))
def weights_of_nan(S, mask):
    return softmax(S + (1 - mask) * -np.inf)


@wrong("single_head", says="Here the answer is 0 throughout.")
def head_that_reads_nothing_unless_causal(X, W_q, W_k, W_v, causal=False):
    S = (X @ W_q) @ (X @ W_k).T / np.sqrt(W_q.shape[1])
    return attention_weights(S, causal_mask(len(X)) if causal else np.zeros(S.shape, bool)) @ (X @ W_v)


def head(X, W_q, W_k, W_v, causal):
    S = (X @ W_q) @ (X @ W_k).T / np.sqrt(W_q.shape[1])
    return right_softmax(np.where(np.tri(len(X)) > 0, S, -np.inf) if causal else S) @ (X @ W_v)


@wrong("single_head", "residual_added")
def head_with_its_residual(X, W_q, W_k, W_v, causal=False):
    return X + head(X, W_q, W_k, W_v, causal)


@wrong("single_head", "uniform")
def head_of_averages(X, W_q, W_k, W_v, causal=False):
    A = np.tri(len(X)) if causal else np.ones((len(X), len(X)))
    return A / A.sum(axis=1, keepdims=True) @ (X @ W_v)


@wrong("single_head", "causal_ignored", "uniform")
def head_of_the_same_average_throughout(X, W_q, W_k, W_v, causal=False):
    V = X @ W_v
    return np.repeat(V.mean(axis=0, keepdims=True), len(V), axis=0)


@wrong("last_query_attention", says="when all numbers of the answer are added up")
def last_of_one_number(q, K, V):
    return (right_softmax(K @ q / np.sqrt(len(q)))[:, None] * V).sum()


@wrong("last_query_attention", says="when the answer is brought to mean 0")
def last_around_0(q, K, V):
    z = right_softmax(K @ q / np.sqrt(len(q))) @ V
    return z - z.mean()


# ------------------------------------------------------------------------------------------------ notebook 04


def read(Q, K, V, causal):
    S = Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1])
    return right_softmax(np.where(np.tri(S.shape[-1]) > 0, S, -np.inf) if causal else S) @ V


@wrong("multi_head", "split_before_projection", says='Read again: notebook 04, "Common traps"')
def layer_of_pieces_of_x(X, W_q, W_k, W_v, W_o, n_heads, causal=False):
    pieces = split_heads(X, n_heads)
    return merge_heads(read(pieces @ W_q, pieces @ W_k, pieces @ W_v, causal)) @ W_o


@wrong("multi_head", "split_before_projection")
def layer_of_slices_of_x(X, W_q, W_k, W_v, W_o, n_heads, causal=False):
    own = X.shape[1] // n_heads
    slices = [X[:, r * own:(r + 1) * own] for r in range(n_heads)]
    return np.concatenate([read(x @ W_q, x @ W_k, x @ W_v, causal) for x in slices], axis=1) @ W_o


@wrong("multi_head", "not_joined", says="as wide as one head")
def layer_that_adds_up_its_heads(X, W_q, W_k, W_v, W_o, n_heads, causal=False):
    return read(*(split_heads(X @ W, n_heads) for W in (W_q, W_k, W_v)), causal).sum(axis=0) @ W_o


@wrong("multi_head", "not_merged", says="the heads still stand one behind the other")
def layer_that_joins_nothing(X, W_q, W_k, W_v, W_o, n_heads, causal=False):
    return read(*(split_heads(X @ W, n_heads) for W in (W_q, W_k, W_v)), causal) @ W_o


@wrong("multi_head", "k_t", says='Read again: notebook 04, "Many heads in one function"')
def layer_with_all_axes_turned(X, W_q, W_k, W_v, W_o, n_heads, causal=False):
    Q, K, V = (split_heads(X @ W, n_heads) for W in (W_q, W_k, W_v))
    return merge_heads(softmax(Q @ K.T / np.sqrt(Q.shape[-1])) @ V) @ W_o


@wrong("multi_head", "softmax_heads_finite", says="softmax runs over the heads (axis 0).")
def layer_with_shares_over_heads(X, W_q, W_k, W_v, W_o, n_heads, causal=False):
    Q, K, V = (split_heads(X @ W, n_heads) for W in (W_q, W_k, W_v))
    S = Q @ K.swapaxes(1, 2) / np.sqrt(Q.shape[-1])
    S = np.where(np.tri(len(X)) > 0, S, -1e9) if causal else S
    return merge_heads(right_softmax(S, axis=0) @ V) @ W_o


@wrong("pre_norm_residual", "affine_after", says="gamma and beta change what goes into the sublayer")
def norm_with_its_affine_late(x, sublayer, gamma, beta, eps=1e-5):
    z = (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + eps)
    return x + sublayer(z) * gamma + beta


@wrong("pre_norm_residual", "mean_no_keepdims", says="the mean of each row is taken without keepdims")
def norm_without_keepdims_of_the_mean(x, sublayer, gamma, beta, eps=1e-5):
    return x + sublayer((x - x.mean(-1)) / np.sqrt(x.var(-1, keepdims=True) + eps) * gamma + beta)


@wrong("pre_norm_residual", "variance_no_keepdims", says="the variance of each row is taken without keepdims")
def norm_without_keepdims_of_the_variance(x, sublayer, gamma, beta, eps=1e-5):
    return x + sublayer((x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1) + eps) * gamma + beta)


@wrong("pre_norm_residual", "no_keepdims_by_hand")
def norm_by_hand_without_keepdims(x, sublayer, gamma, beta, eps=1e-5):
    centred = x - x.mean(-1)
    return x + sublayer(centred / np.sqrt((centred**2).mean(-1) + eps) * gamma + beta)


@wrong("pre_norm_residual", "mean_no_keepdims_by_hand")
def norm_by_hand_without_keepdims_of_the_mean(x, sublayer, gamma, beta, eps=1e-5):
    centred = x - x.mean(-1)
    return x + sublayer(centred / np.sqrt((centred**2).mean(-1, keepdims=True) + eps) * gamma + beta)


# ------------------------------------------------------------------------------------------------ notebook 05

COLUMNS = "the singular values multiply the columns of Vᵀ, not its rows"


def thin(W, full=False):
    return np.linalg.svd(W, full_matrices=full)


@wrong("low_rank_factors", "s_on_columns", says=(COLUMNS, "s[:r, None] * Vt[:r]"))
def factors_with_s_on_columns(W, r):
    U, s, Vt = thin(W)
    return U[:, :r], s[:r] * Vt[:r]


@wrong("low_rank_factors", "s_on_columns_roots", says=COLUMNS)
def factors_with_roots_on_columns(W, r):
    U, s, Vt = thin(W)
    root = np.sqrt(s[:r])
    return U[:, :r] * root, root * Vt[:r]


@wrong("low_rank_factors", "s_on_columns_uncut", says=COLUMNS)
def factors_with_all_s_on_columns(W, r):
    U, s, Vt = thin(W)
    return U[:, :r], (s * Vt)[:r]


@wrong("low_rank_factors", "s_on_columns_roots_uncut", says=COLUMNS)
def factors_with_all_roots_on_columns(W, r):
    U, s, Vt = thin(W)
    root = np.sqrt(s)
    return (U * root)[:, :r], (root * Vt)[:r]


@wrong("low_rank_factors", "rows_of_u")
def factors_of_rows_of_u(W, r):
    U, s, Vt = thin(W)
    return U[:r].T @ np.diag(s[:r]), Vt[:r]


@wrong("low_rank_factors", "rows_of_u_full")
def factors_of_rows_of_the_whole_u(W, r):
    U, s, Vt = thin(W, full=True)
    return U[:r].T, np.diag(s[:r]) @ Vt[:r]


@wrong("per_head_updates", "whole_w_o", says="as wide as one head")
def updates_through_all_of_w_o(H, W_o):
    updates = np.array([Z @ W_o for Z in H])
    return updates, updates.sum(axis=0)


@wrong("per_head_updates", says=("total is right.", "Along the first axis place 1 is right, place 0 is not."))
def updates_added_into_the_first(H, W_o):
    updates = H @ W_o.reshape(len(H), H.shape[2], -1)
    total = updates[0]
    for update in updates[1:]:
        total += update
    return updates, total


@wrong("shared_qkv_basis", "array_split_thirds", says="cut at the widths of the three")
def basis_cut_in_thirds(W_q, W_k, W_v, r):
    U, s, Vt = np.linalg.svd(np.hstack([W_q, W_k, W_v]), full_matrices=False)
    return U[:, :r], *np.array_split(s[:r, None] * Vt[:r], 3, axis=1)


@wrong("shared_qkv_basis", "np_split_thirds", says="cut at the widths of the three")
def basis_split_in_thirds(W_q, W_k, W_v, r):
    W = np.hstack([W_q, W_k, W_v])
    B = np.linalg.svd(W)[0][:, :r]
    return B, *np.split(B.T @ W, 3, axis=1)


@wrong("latent_attention", says=("are too far apart", "C is twice what it should be."))
def latent_from_a_doubled_row(X, W_q, W_down, W_up_k, W_up_v, n_heads):
    """Each part of the answer is wrong in its own way, and that of C explains both."""
    C = 2 * X @ W_down
    Q, K, V = (split_heads(M, n_heads) for M in (X @ W_q, C @ W_up_k, C @ W_up_v))
    return merge_heads(right_softmax(Q @ K.swapaxes(1, 2) / np.sqrt(Q.shape[2])) @ V), C


@wrong("project_qkv", says=("Q is right.", "K is twice what it should be.", "V holds tanh"))
def projections_each_with_a_slip(X, W_q, W_k, W_v):
    return X @ W_q, 2 * X @ W_k, np.tanh(X @ W_v)
