"""The exercises of notebook 05: low_rank_factors, per_head_updates, shared_qkv_basis."""

import numpy as np

from helpers import low_rank as right
from helpers.checks.compare import numbers
from helpers.checks.exercise import Case, Exercise, Mistake, drawer

BEST, STACK, ADD_UP = "The best thin product", "W_o is a stack of blocks", "Concatenate, or add up"
SHARED = "One basis for Q, K and V"

# ------------------------------------------------------------------------------------------- low_rank_factors


def spread_out(draw, m, k, values):
    """(m, k) with singular values near `values`, far enough apart for the best product to be the only one."""
    U, V = (np.linalg.qr(draw(size, len(values)))[0] for size in (m, k))
    return U * values @ V.T


def factor_cases():
    draw = drawer(51)
    tall, wide = spread_out(draw, 5, 3, [6, 3, 1]).round(2), spread_out(draw, 3, 6, [6, 3, 1]).round(2)
    square = spread_out(draw, 4, 4, [8, 4, 2, 1]).round(2)
    signs = np.linalg.qr(draw(4, 4))[0]
    return [
        Case("", (tall, 2)),
        Case("wider than tall", (wide, 2)),
        Case("square", (square, 3)),
        Case("r = 1", (tall, 1)),
        Case("r = 1, wider than tall", (wide, 1)),
        Case("nothing to be left out", (tall, 3)),
        Case("W of rank r already", (spread_out(draw, 5, 4, [5, 2]), 2)),
        Case("symmetric", ((signs * [6, -4, 2, -1] @ signs.T).round(2), 2)),
        Case("a diagonal, not in order", (np.diag([1.0, 5.0, 3.0]), 2)),
        Case("integers", (np.array([[5, 1], [0, 2], [3, -4]]), 1), style=True),
    ]


def all_to_the_left(U, s, Vt):
    return U * s, Vt


def first(r, s):
    return slice(0, r)


def factor_steps(W, r, svd=lambda W: np.linalg.svd(W, full_matrices=False), kept=first,
                 share=all_to_the_left, finish=lambda A, B, W, r: (A, B), factors=None):
    if factors:
        return finish(*factors(W, r), W, r)
    U, s, Vt = svd(W)
    own = kept(r, s)
    A, B = share(U[:, own], s[own], Vt[own])
    return finish(A, B, W, r)


def v_not_vt(W, r):
    U, s, Vt = np.linalg.svd(W, full_matrices=False)
    return U[:, :r] * s[:r], Vt[:, :r].T


def s_on_rows(W, r):
    """The singular values multiply the rows of U, the whole of it."""
    U, s, Vt = np.linalg.svd(W)
    scale = np.ones(len(U))
    scale[:len(s)] = s
    return (U * scale[:, None])[:, :r], Vt[:r]


def rows_of_u(full):
    """The first r rows of U in place of its columns, turned round so that A has r columns."""
    def factors(W, r):
        U, s, Vt = np.linalg.svd(W, full_matrices=full)
        return U[:r].T * s[:r], Vt[:r]
    return factors


def s_on_columns(root, cut):
    """The singular values, or their roots, multiply the columns of Vᵀ; cut to r before that, or after."""
    def factors(W, r):
        U, s, Vt = np.linalg.svd(W, full_matrices=False)
        s = np.sqrt(s) if root else s
        return U[:, :r] * (s[:r] if root else 1), s[:r] * Vt[:r] if cut else (s * Vt)[:r]
    return factors


def three_of_svd(W, r):
    U, s, Vt = np.linalg.svd(W, full_matrices=False)
    return U[:, :r], s[:r], Vt[:r]


def by_qr(W, r):
    Q, R = np.linalg.qr(W)
    return Q[:, :r], R[:r]


def by_eigenvalues(W, r):
    """As if W were symmetric: with the eigenvalues of W, largest first."""
    values, vectors = np.linalg.eigh(W)
    own = values.argsort()[::-1][:r]
    return vectors[:, own] * values[own], vectors[:, own].T


def by_eigh(side):
    """The first r eigenvectors of W Wᵀ or Wᵀ W as np.linalg.eigh gives them: those of the smallest."""
    def factors(W, r):
        W = np.asarray(W, float)
        if side == "left":
            basis = np.linalg.eigh(W @ W.T)[1][:, :r]
            return basis, basis.T @ W
        basis = np.linalg.eigh(W.T @ W)[1][:, :r]
        return W @ basis, basis.T
    return factors


def smallest(r, s):
    return slice(len(s) - r, len(s))


def second_onwards(r, s):
    return slice(1, r + 1)


def corner(W, r):
    return W[:, :r], np.eye(W.shape[1])[:r]


def left_over(W, A_B):
    return float(((W - A_B) ** 2).sum())


def is_multiple(A, B):
    return np.allclose(A, B * (A * B).sum() / (B**2).sum())


def not_the_best(expected, given, W, r, *_):
    """For a product of the right shape that is not the best one."""
    if np.shape(given) != np.shape(W) or np.shape(expected) != np.shape(W) or not np.isfinite(given).all():
        return None
    rank = np.linalg.matrix_rank(given, tol=1e-8 * max(np.abs(given).max(), 1))
    if rank > r or is_multiple(given, expected):
        return None
    had, best = numbers(left_over(W, given), left_over(W, expected))
    return (f"The product has rank {rank}, but it is not the closest one: the squares of what is left over "
            f"add up to {had}, and {best} can be had.",
            "Not any r directions do: those of the largest singular values leave least.", BEST)


LOW_RANK_FACTORS = Exercise(
    "5.1", "low_rank_factors", "05", right.low_rank_factors,
    arguments={"W": ("m", "k"), "r": ()}, returns={"A": ("m", "r"), "B": ("r", "k")},
    free=("A", "B"), derived={"A @ B": (("m", "k"), np.matmul)},
    cases=factor_cases, steps=factor_steps, explain=not_the_best,
    passed="No two matrices that thin come closer to W, and when r is small they hold far fewer numbers.",
    mistakes=(
        Mistake("v_not_vt", dict(factors=v_not_vt), "the third array of np.linalg.svd is taken for V",
                "NumPy gives Vᵀ: its first r rows are wanted, as they are.", BEST),
        Mistake("no_s", dict(share=lambda U, s, Vt: (U, Vt)), "the singular values are left out",
                "They say how much of each direction there is; without them all count the same.", BEST),
        Mistake("s_twice", dict(share=lambda U, s, Vt: (U * s, s[:, None] * Vt)),
                "the singular values are in the product twice (in both factors, or squared)",
                "They belong in the product once: into one factor, or their roots into each.", BEST),
        Mistake("sqrt_one_side", dict(share=lambda U, s, Vt: (U * np.sqrt(s), Vt)),
                "the roots of the singular values are in one factor only",
                "The other half of them is lost: put roots into both factors, or the whole into one.", BEST),
        Mistake("smallest", dict(kept=smallest), "the smallest singular values are kept",
                "np.linalg.svd gives the largest first (np.linalg.eigh gives the smallest first). What is "
                "left out should be as little as can be.", BEST),
        Mistake("smallest_of_left", dict(factors=by_eigh("left")), "the first r eigenvectors of W Wᵀ are "
                "kept", "np.linalg.eigh gives the smallest eigenvalues first; the last r are those that "
                "matter.", BEST),
        Mistake("smallest_of_right", dict(factors=by_eigh("right")), "the first r eigenvectors of Wᵀ W are "
                "kept", "np.linalg.eigh gives the smallest eigenvalues first; the last r are those that "
                "matter.", BEST),
        Mistake("second_onwards", dict(kept=second_onwards), "the largest singular value is left out",
                "Python counts from 0: the first r are s[:r].", BEST),
        Mistake("one_too_few", dict(kept=lambda r, s: slice(0, r - 1)), "one direction too few is kept",
                "A slice leaves out its end: the first r are [:r].", BEST),
        Mistake("one_too_many", dict(kept=lambda r, s: slice(0, r + 1)), "one direction too many is kept",
                "A slice leaves out its end: the first r are [:r].", BEST),
        Mistake("not_cut", dict(kept=lambda r, s: slice(None)), "nothing is cut off: all directions are kept",
                "The product is then W itself, and nothing has become thinner.", BEST),
        Mistake("no_factors", dict(finish=lambda A, B, W, r: A @ B), "the product itself is returned",
                "It is the two thin factors that save numbers; their product is as large as W.", BEST),
        Mistake("order_swapped", dict(finish=lambda A, B, W, r: (B, A)), "the two factors come as B, A",
                "The tall one stands on the left: (m, r) @ (r, k).", BEST),
        *(Mistake(name, dict(factors=three_of_svd, finish=finish),
                  "the three pieces of np.linalg.svd are returned, cut to r",
                  "Two factors are asked for: multiply the singular values into one of the other two.", BEST)
          for name, finish in (("three_factors", lambda U, s, Vt, W, r: (U, s, Vt)),
                               ("three_matrices", lambda U, s, Vt, W, r: (U, np.diag(s), Vt)))),
        Mistake("rows_reversed", dict(share=lambda U, s, Vt: (U * s, Vt[::-1])),
                "the rows of B stand in the opposite order to the columns of A",
                "Column i of A is multiplied with row i of B: both must belong to the same direction.", BEST),
        Mistake("s_on_rows", dict(factors=s_on_rows),
                "the singular values multiply the rows of U, not its columns",
                "Each belongs to one direction, and a direction is a column of U: U * s, or U @ np.diag(s).",
                BEST),
        *(Mistake(f"s_on_columns{name}", dict(factors=s_on_columns(root, cut)),
                  "the singular values multiply the columns of Vᵀ, not its rows",
                  "Each belongs to one direction, and a direction is a row of Vᵀ: s[:r, None] * Vt[:r], or "
                  "np.diag(s[:r]) @ Vt[:r].", BEST)
          for name, root, cut in (("", False, True), ("_roots", True, True), ("_uncut", False, False),
                                  ("_roots_uncut", True, False))),
        *(Mistake(f"rows_of_u{'_full' if full else ''}", dict(factors=rows_of_u(full)),
                  "rows of U are taken in place of its columns",
                  "A direction is a column of U and a row of Vᵀ: U[:, :r] and Vt[:r].", BEST)
          for full in (False, True)),
        Mistake("product_only", dict(finish=lambda A, B, W, r: (A @ B, np.eye(W.shape[1]))),
                "the product itself is returned, beside an identity matrix",
                "It is the two thin factors that save numbers; their product is as large as W.", BEST),
        Mistake("left_transposed", dict(finish=lambda A, B, W, r: (A.T, B)), "A comes with rows and columns "
                "swapped", "The product A @ B must run over the r directions: (m, r) @ (r, k).", BEST),
        Mistake("right_transposed", dict(finish=lambda A, B, W, r: (A, B.T)), "B comes with rows and columns "
                "swapped", "The product A @ B must run over the r directions: (m, r) @ (r, k).", BEST),
        Mistake("by_qr", dict(factors=by_qr),
                "the first r columns of W are taken, as in a QR decomposition, in place of singular values",
                "They come in the order they stand, not by how much they matter.", BEST),
        Mistake("by_eigenvalues", dict(factors=by_eigenvalues),
                "the eigenvalues of W are used, largest first",
                "That needs a symmetric W and gives up what belongs to large negative eigenvalues; singular "
                "values are there for every matrix.", BEST),
        Mistake("corner", dict(factors=corner),
                "the first r columns are kept as they are, the others left out",
                "Columns are not directions of importance; the best product mixes all of them.", BEST),
    ))

# ------------------------------------------------------------------------------------------- per_head_updates


def update_cases():
    draw = drawer(52)

    def case(kind, h, n, d_v, d_model, whole=False, **more):
        return Case(kind, (draw(h, n, d_v, whole=whole), draw(h * d_v, d_model, whole=whole)), **more)
    return [
        case("", 3, 4, 2, 5),
        case("square W_o", 2, 3, 2, 4),
        case("one head", 1, 3, 2, 4),
        case("as many tokens as heads", 3, 3, 2, 4),
        case("d_model = d_v", 2, 4, 3, 3),
        case("one token", 3, 1, 2, 4),
        case("as many heads as d_v", 3, 2, 3, 9),
        case("square W_o, three heads", 3, 2, 2, 6),
        case("d_model smaller than d_v", 2, 3, 4, 2),
        case("integers", 2, 3, 2, 3, whole=True, style=True),
    ]


def row_blocks(W_o, h, d_v):
    return [W_o[r * d_v:(r + 1) * d_v] for r in range(h)]


def each_alone(H, blocks):
    return np.stack([Z @ block for Z, block in zip(H, blocks, strict=True)])


def update_steps(H, W_o, blocks=row_blocks, write=each_alone, total=lambda updates, H, W_o: updates.sum(0),
                 finish=lambda updates, total: (updates, total)):
    updates = write(H, blocks(W_o, len(H), H.shape[-1]))
    return finish(updates, total(updates, H, W_o))


def blocks_of_d_model(W_o, h, d_v):
    size = W_o.shape[1] // h
    return [W_o[r * size:(r + 1) * size] for r in range(h)]


PER_HEAD_UPDATES = Exercise(
    "5.2", "per_head_updates", "05", right.per_head_updates,
    arguments={"H": ("h", "n", "d_v"), "W_o": ("h·d_v", "d_model")},
    returns={"updates": ("h", "n", "d_model"), "total": ("n", "d_model")},
    cases=update_cases, steps=update_steps,
    passed="What a layer writes is a sum, and you can say which head wrote what.",
    mistakes=(
        Mistake("transposed", dict(blocks=lambda W_o, h, d_v: row_blocks(W_o.T, h, d_v)),
                "the heads get columns of W_o in place of rows",
                "A head's numbers are multiplied with rows of W_o; its columns are what is written to.",
                STACK),
        Mistake("transpose_reshaped", dict(blocks=lambda W_o, h, d_v: list(W_o.T.reshape(h, d_v, -1))),
                "W_o is transposed before it is cut into blocks",
                "A head's numbers are multiplied with rows of W_o; its columns are what is written to.",
                STACK),
        Mistake("columns_as_they_are",
                dict(blocks=lambda W_o, h, d_v: [W_o[:, r * d_v:(r + 1) * d_v] for r in range(h)]),
                "W_o is cut into blocks of columns, W_o[:, …]",
                "A head owns d_v neighbouring rows of W_o, and all columns.", STACK),
        Mistake("whole_w_o", dict(blocks=lambda W_o, h, d_v: [W_o] * h),
                "what meets the whole of W_o is as wide as one head",
                "A head has d_v numbers for each token, and owns d_v of the h·d_v rows of W_o: it meets "
                "those.", STACK, by_text=True),
        Mistake("strided_rows", dict(blocks=lambda W_o, h, d_v: [W_o[r::h] for r in range(h)]),
                "head r gets every h-th row of W_o",
                "The heads stand side by side, one after the other, so a head owns neighbouring rows.",
                STACK),
        Mistake("first_block", dict(blocks=lambda W_o, h, d_v: row_blocks(W_o, 1, d_v) * h),
                "all heads write through the rows of head 0",
                "Each head has rows of its own in W_o; that is how it writes something of its own.", STACK),
        Mistake("reversed_blocks", dict(blocks=lambda W_o, h, d_v: row_blocks(W_o, h, d_v)[::-1]),
                "the heads meet the blocks of W_o in the opposite order",
                "Head 0 owns the first rows.", STACK),
        Mistake("block_size_from_d", dict(blocks=blocks_of_d_model),
                "the blocks have d_model / h rows",
                "A block has d_v rows, as many as a head has numbers; d_model may be anything.", STACK),
        Mistake("sum_tokens", dict(total=lambda updates, H, W_o: updates.sum(1)),
                "the total is summed over the tokens", "It is the heads that are added up, for each token by "
                "itself: axis 0.", ADD_UP),
        Mistake("sum_features", dict(total=lambda updates, H, W_o: updates.sum(-1)),
                "the total is summed over the features", "It is the heads that are added up: axis 0.",
                ADD_UP),
        Mistake("mean", dict(total=lambda updates, H, W_o: updates.mean(0)),
                "the heads are averaged in the total", "W_o adds them up; nothing is divided.", ADD_UP),
        Mistake("running", dict(write=lambda H, blocks: each_alone(H, blocks).cumsum(0),
                                total=lambda updates, H, W_o: updates[-1]),
                "an update holds those of the heads before it as well",
                "Each update is what one head writes, alone; only the total adds them up.", ADD_UP),
        Mistake("running_total", dict(write=lambda H, blocks: each_alone(H, blocks).cumsum(0)),
                "an update holds those of the heads before it as well, and the total adds up all of these",
                "Each update is what one head writes, alone.", ADD_UP),
        Mistake("no_total", dict(finish=lambda updates, total: updates), "the updates come without their sum",
                "The exercise asks for both: the updates and their sum.", ADD_UP),
        Mistake("total_alone", dict(finish=lambda updates, total: total), "the sum comes without the updates",
                "The exercise asks for both: the updates and their sum.", ADD_UP),
        Mistake("order_swapped", dict(finish=lambda updates, total: (total, updates)),
                "the total comes first", "The exercise asks for the updates first, then their sum.", ADD_UP),
        Mistake("tokens_first", dict(finish=lambda updates, total: (updates.swapaxes(0, 1), total)),
                "the updates come as (n, h, d_model)",
                "The heads stand in front here, as in H.", STACK),
    ))

# ------------------------------------------------------------------------------------------- shared_qkv_basis


def basis_cases():
    draw = drawer(53)

    def case(kind, d, widths, r, values):
        W = spread_out(draw, d, sum(widths), values).round(4)
        return Case(kind, (*np.split(W, np.cumsum(widths)[:-1], axis=1), r))
    within = spread_out(draw, 5, 8, [6, 3])
    return [
        case("", 4, (2, 2, 3), 2, [8, 4, 2, 1]),
        case("three widths", 5, (2, 3, 4), 3, [9, 6, 4, 2, 1]),
        case("square weights", 3, (3, 3, 3), 2, [6, 3, 1]),
        case("r = 1", 3, (2, 2, 3), 1, [6, 3, 1]),
        case("all widths equal", 5, (2, 2, 2), 2, [9, 6, 4, 2, 1]),
        case("nothing to be left out", 3, (2, 2, 4), 3, [6, 3, 1]),
        Case("an exact basis of two", (within[:, :2], within[:, 2:5], within[:, 5:], 2)),
        case("r = d_k", 5, (3, 3, 2), 3, [9, 6, 4, 2, 1]),
    ]


def joint_basis(W_q, W_k, W_v, r):
    return np.linalg.svd(np.concatenate([W_q, W_k, W_v], axis=1), full_matrices=False)[0][:, :r]


def basis_of(pick, thin=False):
    """The first r singular directions of one matrix; of a thin SVD only as many as it has columns."""
    def basis(*weights_and_r):
        *weights, r = weights_and_r
        return np.linalg.svd(pick(*weights), full_matrices=not thin)[0][:, :r]
    return basis


def own_bases(thin):
    """B of W_q, and the coefficients of each matrix in a basis of its own."""
    def alone(*weights_and_r):
        *weights, r = weights_and_r
        bases = [np.linalg.svd(W, full_matrices=not thin)[0][:, :r] for W in weights]
        return bases[0], *(B.T @ W for B, W in zip(bases, weights, strict=True))
    return alone


def projected(B, W_q, W_k, W_v):
    return [B.T @ W for W in (W_q, W_k, W_v)]


def basis_steps(W_q, W_k, W_v, r, basis=joint_basis, scale=lambda B, W, r: B, coefficients=projected,
                finish=lambda B, A_q, A_k, A_v: (B, A_q, A_k, A_v), alone=None):
    weights = W_q, W_k, W_v
    if alone:
        return finish(*alone(*weights, r))
    B = scale(basis(*weights, r), weights, r)
    return finish(B, *coefficients(B, *weights))


def singular_values(weights, r):
    return np.linalg.svd(np.concatenate(weights, axis=1), compute_uv=False)[:r]


def from_vt(weights, r):
    """[W_q W_k W_v] = U diag(s) Vᵀ: the first r rows of Vᵀ, without s."""
    return np.linalg.svd(np.concatenate(weights, axis=1), full_matrices=False)[2][:r]


def cut_at(C, widths):
    return np.split(C, np.cumsum(widths)[:-1], axis=1)


def with_s(B, *weights):
    s = singular_values(weights, B.shape[1])
    return [s[:, None] * A for A in projected(B, *weights)]


def without_s(B, *weights):
    return cut_at(from_vt(weights, B.shape[1]), [W.shape[1] for W in weights])


def equal_thirds(B, *weights):
    C = B.T @ np.concatenate(weights, axis=1)
    third = C.shape[1] // 3
    return C[:, :third], C[:, third:2 * third], C[:, 2 * third:]


def stacked_basis(W_q, W_k, W_v, r):
    return np.linalg.svd(np.concatenate([W_q, W_k, W_v]), full_matrices=False)[0][:len(W_q), :r]


def stacked(side, transposed=False):
    """As it comes out when the three are set one below the other: mostly an error."""
    def basis(*weights_and_r):
        *weights, r = weights_and_r
        U, _, Vt = np.linalg.svd(np.concatenate([W.T if transposed else W for W in weights]))
        return U[:, :r] if side == "left" else Vt[:r].T
    return basis


def mean_basis(W_q, W_k, W_v, r):
    B = sum(np.linalg.svd(W)[0][:, :r] for W in (W_q, W_k, W_v)) / 3
    return np.linalg.qr(B)[0]


def smallest_basis(W_q, W_k, W_v, r):
    U = np.linalg.svd(np.concatenate([W_q, W_k, W_v], axis=1), full_matrices=False)[0]
    return U[:, U.shape[1] - r:]


def sum_basis(W_q, W_k, W_v):
    return W_q + W_k + W_v


def not_the_best_shared(expected, given, W_q, W_k, W_v, r):
    if np.shape(given) == np.shape(expected) == (r, r) and np.allclose(expected, np.eye(r)):
        return ("The columns of B are not orthonormal: of length 1 and at right angles.",
                "In an orthonormal basis the coefficients are Bᵀ W, and nothing is counted twice.", SHARED)
    best = joint_basis(W_q, W_k, W_v, r)
    for W in (W_q, W_k, W_v):
        if np.shape(W) == np.shape(expected) == np.shape(given) and np.isfinite(given).all():
            if is_multiple(given, expected):
                return None
            if np.allclose(best @ (best.T @ given), given):
                return ("The directions are right, and the coefficients are not: the A's do not give the "
                        "products that come closest.",
                        "In an orthonormal basis the coefficients of W are Bᵀ W, for each of the three its "
                        "own.", SHARED)
            if np.linalg.matrix_rank(given, tol=1e-8) <= r:
                return ("The basis has r directions, but not those that fit the three together best.",
                        "Together means: side by side in one wide matrix, and the directions of its largest "
                        "singular values.", SHARED)
    return None


SHARED_QKV_BASIS = Exercise(
    "5.3", "shared_qkv_basis", "05", right.shared_qkv_basis,
    arguments={"W_q": ("d", "width of W_q"), "W_k": ("d", "width of W_k"), "W_v": ("d", "width of W_v"),
               "r": ()},
    returns={"B": ("d", "r"), "A_q": ("r", "·"), "A_k": ("r", "·"), "A_v": ("r", "·")},
    free=("B", "A_q", "A_k", "A_v"),
    derived={"B.T @ B": (("r", "r"), lambda B, *_: B.T @ B),
             "B @ A_q": (("d", "·"), lambda B, A_q, A_k, A_v: B @ A_q),
             "B @ A_k": (("d", "·"), lambda B, A_q, A_k, A_v: B @ A_k),
             "B @ A_v": (("d", "·"), lambda B, A_q, A_k, A_v: B @ A_v)},
    cases=basis_cases, steps=basis_steps, explain=not_the_best_shared,
    passed="Queries, keys and values are made from the same few directions, the best ones for all three.",
    mistakes=(
        Mistake("vstack", dict(basis=stacked_basis), "the three are set one below the other",
                "They share the d rows, not the columns: side by side, axis=1, the wide matrix has d rows "
                "and its U is a basis for all.", SHARED),
        *(Mistake(name, dict(basis=basis), "the three are set one below the other",
                  "They share the d rows, not the columns: side by side, axis=1, the wide matrix has d rows "
                  "and its U is a basis for all.", SHARED, by_text=name != "vstack_v")
          for name, basis in (("vstack_u", stacked("left")), ("vstack_v", stacked("right")),
                              ("vstack_transposed", stacked("left", transposed=True)))),
        Mistake("only_q", dict(basis=basis_of(lambda W_q, W_k, W_v: W_q)), "the basis is made for W_q alone",
                "What K and V need and Q does not is then lost.", SHARED),
        Mistake("only_k", dict(basis=basis_of(lambda W_q, W_k, W_v: W_k)), "the basis is made for W_k alone",
                "What Q and V need and K does not is then lost.", SHARED),
        Mistake("only_v", dict(basis=basis_of(lambda W_q, W_k, W_v: W_v)), "the basis is made for W_v alone",
                "What Q and K need and V does not is then lost.", SHARED),
        Mistake("only_qk", dict(basis=basis_of(lambda W_q, W_k, W_v: np.concatenate([W_q, W_k], axis=1))),
                "the basis is made for W_q and W_k, without W_v",
                "What V needs and the other two do not is then lost.", SHARED),
        *(Mistake(f"only_{name}_thin", dict(basis=basis_of(lambda *W, i=i: W[i], thin=True)),
                  f"the basis is made for W_{name} alone, with no more directions than W_{name} has columns",
                  f"What the other two need and W_{name} does not is then lost, and r may be larger than its "
                  "width.", SHARED)
          for i, name in enumerate("qkv")),
        Mistake("three_bases", dict(alone=own_bases(thin=False)),
                "each of the three gets a basis of its own, and only that of W_q is returned",
                "Coefficients mean something in the basis they were made for; one basis must serve all "
                "three.", SHARED),
        Mistake("three_bases_thin", dict(alone=own_bases(thin=True)),
                "each of the three gets a thin basis of its own, and only that of W_q is returned",
                "Coefficients mean something in the basis they were made for; one basis must serve all "
                "three.", SHARED),
        Mistake("sum", dict(basis=basis_of(sum_basis)), "the basis is made for the sum of the three matrices",
                "In a sum they can cancel, and it needs equal widths; side by side nothing is lost.", SHARED),
        Mistake("scaled_basis", dict(scale=lambda B, W, r: B * singular_values(W, r)),
                "the singular values are in B",
                "The columns of B then do not have length 1, and Bᵀ W no longer gives the coefficients.",
                SHARED),
        Mistake("scaled_both_right", dict(scale=lambda B, W, r: B * singular_values(W, r),
                                          coefficients=without_s),
                "the singular values are in B, not in the A's",
                "The products are right, but the columns of B must have length 1.", SHARED),
        Mistake("separate", dict(basis=mean_basis), "three bases are averaged",
                "Signs and order of singular directions are arbitrary, so the mean of three bases is none.",
                SHARED),
        Mistake("smallest", dict(basis=smallest_basis), "the directions with the smallest singular values "
                "are kept", "np.linalg.svd gives the largest first; those are what matters most.", SHARED),
        Mistake("coeffs_swapped", dict(finish=lambda B, A_q, A_k, A_v: (B, A_q, A_v, A_k)),
                "the answer comes in the order B, A_q, A_v, A_k",
                "Keys and values then swap roles: what is compared and what is passed on.", SHARED),
        Mistake("q_k_swapped", dict(finish=lambda B, A_q, A_k, A_v: (B, A_k, A_q, A_v)),
                "the answer comes in the order B, A_k, A_q, A_v",
                "Queries and keys then swap roles: who asks and who is found.", SHARED),
        Mistake("k_as_v", dict(finish=lambda B, A_q, A_k, A_v: (B, A_q, A_k, A_k)),
                "the coefficients of W_k are returned as those of W_v too",
                "A key is for being found, a value for being passed on: W_v has coefficients of its own.",
                SHARED),
        Mistake("basis_last", dict(finish=lambda B, A_q, A_k, A_v: (A_q, A_k, A_v, B)),
                "the basis comes last", "The exercise asks for B first.", SHARED),
        Mistake("coeffs_transposed", dict(finish=lambda B, *A: (B, *(a.T for a in A))),
                "the A's come with rows and columns swapped, Wᵀ B",
                "B @ A_q must run over the r directions: (d, r) @ (r, ·).", SHARED),
        Mistake("basis_transposed", dict(finish=lambda B, *A: (B.T, *A)), "B comes with rows and columns "
                "swapped", "B @ A_q must run over the r directions: (d, r) @ (r, ·).", SHARED),
        Mistake("split_thirds", dict(coefficients=equal_thirds), "the coefficients are cut into three equal "
                "parts", "W_v may be wider than W_q: cut at the widths of the three.", SHARED),
        *(Mistake(name, dict(coefficients=lambda B, *weights, cut=cut: cut(
                      B.T @ np.concatenate(weights, axis=1), 3, axis=1)),
                  f"the coefficients are cut into three equal parts (np.{cut.__name__} into 3)",
                  "W_v may be wider than W_q: cut at the widths of the three.", SHARED)
          for name, cut in (("array_split_thirds", np.array_split), ("np_split_thirds", np.split))),
        Mistake("s_dropped", dict(coefficients=without_s), "the singular values are left out of the A's",
                "They say how much of each direction there is; B has length 1 in each.", SHARED),
        Mistake("s_in_projection", dict(coefficients=with_s),
                "the A's are multiplied with the singular values once more",
                "Bᵀ W holds them already: in an orthonormal basis it is the coefficients.", SHARED),
        Mistake("not_projected", dict(coefficients=lambda B, *weights: weights),
                "the weights themselves are returned as A's",
                "An A holds the coefficients in the basis B: (r, ·).", SHARED),
    ))

EXERCISES = (LOW_RANK_FACTORS, PER_HEAD_UPDATES, SHARED_QKV_BASIS)
