"""The explorer of the cache: every step, what is kept, and work and bytes as a real generation has them."""

import re
import xml.etree.ElementTree as ET

import pytest
from test_explorers import LONGEST, drawing

from helpers import explorers, tiny_model
from helpers.tiny_model.work import multiply_adds

MODEL = tiny_model.load()
RUNS = (("", 1), ("i love you", 3), (explorers.SENTENCE, 8), ("i love you .", 35),
        (LONGEST.removesuffix(" you"), 1))


def counted(trace, n_keys):
    """Multiply-adds behind a Trace: each number of a product adds up as many products as the inner size."""
    d, total = MODEL.d_model, trace.logits.size * MODEL.d_model
    for layer in trace.layers:
        new = layer.Q.shape[1]
        assert layer.S.shape[-1] == layer.K.shape[1] == n_keys
        total += layer.Q.size * d + layer.K[:, :new].size * d + layer.V[:, :new].size * d
        total += layer.S.size * MODEL.d_k + layer.Z.size * n_keys + layer.update.size * layer.Z[:, 0].size
    return total


def generation(text, n_new):
    """Each step of a real generation: (words so far, its work with the cache, without, bytes kept)."""
    words, caches, out = ["<bos>", *text.split()], MODEL.new_caches(), []
    unread = list(words)
    for _ in range(n_new):
        whole = MODEL.run(words)
        trace = MODEL.run(unread, caches=caches)
        nbytes = sum(cache.nbytes for cache in caches)
        work = counted(trace, len(words)), counted(whole, len(words))
        unread = [trace.top(1)[0][0]]
        words = words + unread
        out.append((words, *work, nbytes))
    return out


def whole_numbers(line):
    """The last two whole numbers of a line of the text form."""
    return [int(cell.replace(",", "")) for cell in re.split(" +", line)[-2:]]


@pytest.mark.parametrize("text, n_new", RUNS)
def test_every_step_has_the_words_the_work_and_the_bytes_of_a_real_generation(text, n_new):
    explorer, n = explorers.cache(text, n_new, 0), len(text.split()) + 1
    so_far = [0, 0]
    for k, (words, *work, nbytes) in enumerate(generation(text, n_new), start=1):
        so_far = [a + b for a, b in zip(so_far, work, strict=True)]
        explorer.step.value = k
        svg, lines = drawing(explorer), explorer.picture().text.splitlines()
        ET.fromstring(svg)
        assert svg == explorer.picture().drawing
        start = [i for i, line in enumerate(lines) if line.startswith("written: ")][0]
        assert lines[start].removeprefix("written: ").rstrip("₀₁₂₃₄₅₆₇₈₉") == words[-1]
        assert whole_numbers(lines[start + 2]) == work
        assert whole_numbers(lines[start + 3]) == so_far
        assert whole_numbers(lines[start + 4]) == [nbytes, 0]
        rows = [line.split() for line in lines[2:start]]
        states = [row[-2:] for row in rows]
        if k == 1:
            assert all(state == ["new", "new"] for state in states)
        else:
            assert states[:-1] == [["kept", "again"]] * (len(rows) - 1) and states[-1] == ["new", "new"]
        read = n + k - 1
        shown = rows[1:] if read > 12 else rows
        assert [row[0].rstrip("₀₁₂₃₄₅₆₇₈₉") for row in shown] == words[read - len(shown):read]
        assert len(rows) == min(read, 12) and (read <= 12 or rows[0][:2] == [str(read - 11), "earlier"])
    assert k == n_new == explorer.step.max


def test_the_formula_counts_chunks_too():
    caches = MODEL.new_caches()
    words = ["<bos>", *explorers.SENTENCE.split()]
    for start, end in ((0, 4), (4, 9), (9, 11)):
        trace = MODEL.run(words[start:end], caches=caches)
        assert multiply_adds(MODEL, end - start, end) == counted(trace, end)


def test_bars_are_as_long_as_the_work_and_pale_for_the_steps_to_come():
    explorer = explorers.cache(n_new=4, step=3)
    nodes = ET.fromstring(drawing(explorer)).iter("{http://www.w3.org/2000/svg}rect")
    sizes = ("fill-opacity", "width", "height")
    rects = [(node.get("fill"), *(float(node.get(k, 1)) for k in sizes)) for node in nodes]
    level = [rect for rect in rects if rect[3] == 12]
    steps = [rect for rect in rects if rect[2] == 16]
    work = explorer.counts()
    pairs = [work[2], [sum(both[c] for both in work[:3]) for c in (0, 1)], (1, 0)]
    for i, pair in enumerate(pairs):
        long = [rect[2] for rect in level[2 * i:2 * i + 2]]
        assert [round(x / max(long), 2) for x in long] == [round(v / max(pair), 2) for v in pair]
        assert [rect[0] for rect in level[2 * i:2 * i + 2]] == ["var(--sa-positive)", "var(--sa-negative)"]
    assert [rect[1] for rect in steps] == [1] * 6 + [0.25] * 2
    most = max(max(both) for both in work)
    shares = [value / most for both in work for value in both]
    assert all(abs(rect[3] / 76 - share) < 0.01 for rect, share in zip(steps, shares, strict=True))


def test_before_the_first_step_nothing_is_computed():
    picture = explorers.cache(step=0).picture()
    assert "nothing computed yet" in picture.title and "written" not in picture.text
    lines = [line for line in picture.text.splitlines() if line.startswith(("multiply-adds", "bytes"))]
    assert [whole_numbers(line) for line in lines] == [[0, 0]] * 3


def test_steps_go_forth_and_back_and_play_moves_them():
    explorer = explorers.cache("i love you", 3, 1)
    count, seen = [], []
    explorer.canvas.observe(count.append, "value")
    for button in [explorer.on] * 4 + [explorer.back] * 5:
        button.click()
        seen.append(explorer.step.value)
        assert explorer.play.value == explorer.step.value
        assert not explorer.on.disabled and not explorer.back.disabled
    assert seen == [2, 3, 3, 3, 2, 1, 0, 0, 0] and len(count) == 5
    explorer.play.value = 2
    assert explorer.step.value == 2 and len(count) == 6 and explorer.play.max == 3


def test_a_new_text_is_generated_anew_from_step_0():
    explorer = explorers.cache("i love you", 3, 2)
    explorer.text.value = "anna loves apples . ben loves pears . he"
    assert explorer.step.value == 0 and explorer.written[:10] == ["<bos>", *explorer.text.value.split()]
    assert explorer.written == MODEL.generate(explorer.text.value, 3)


def test_more_or_fewer_words_can_be_written():
    explorer = explorers.cache("i love you", 8, 6)
    count = []
    explorer.canvas.observe(count.append, "value")
    assert [value for _, value in explorer.n_new.options] == [4, 8, 16]
    for n_new, step in ((4, 4), (16, 4), (8, 4)):
        explorer.n_new.value = n_new
        assert (explorer.step.max, explorer.play.max, explorer.step.value, explorer.play.value) == (
            n_new, n_new, step, step)
        assert explorer.written == MODEL.generate("i love you", n_new) and len(explorer.counts()) == n_new
    assert len(count) == 3


def test_more_words_than_the_model_can_read_are_refused_and_nothing_changes():
    explorer = explorers.cache("i love you . " * 6, 8, 3)
    before, written = drawing(explorer), explorer.written
    explorer.n_new.value = 16
    assert "25 + 16" in re.search(r'<p role="alert"[^>]*>(.*?)</p>', explorer.canvas.value).group(1)
    assert drawing(explorer) == before and (explorer.n_new.value, explorer.step.max) == (8, 8)
    assert explorer.written == written and explorer.step.value == 3
    explorer.n_new.value = 4
    assert "alert" not in explorer.canvas.value


@pytest.mark.parametrize("typed, says", [("appels", "appels"), (LONGEST, "40 + 3"), ("<b>", "&lt;b&gt;")])
def test_a_text_that_cannot_be_read_changes_nothing_but_the_complaint(typed, says):
    explorer = explorers.cache("i love you", 3, 2)
    before, written = drawing(explorer), explorer.written
    explorer.text.value = typed
    assert says in re.search(r'<p role="alert"[^>]*>(.*?)</p>', explorer.canvas.value).group(1)
    assert drawing(explorer) == before and explorer.step.value == 2 and explorer.written == written
    explorer.on.click()
    assert "alert" not in explorer.canvas.value


@pytest.mark.parametrize("arguments, says", [
    (dict(n_new=0), "n_new"), (dict(n_new=-1), "n_new"), (dict(step=9), "step must be one of 0 … 8, got 9"),
    (dict(n_new=30), "11 + 30"), (dict(text="appels"), "appels")])
def test_a_state_that_does_not_exist_is_refused(arguments, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        explorers.cache(**arguments)


def test_the_state_is_said_and_the_bundle_has_its_picture():
    explorer = explorers.cache()
    said = re.search(r'role="status"[^>]*>(.*?)</p>', explorer.canvas.value).group(1)
    assert said == "words to write 8, step 2"
    bundle, picture = explorer._repr_mimebundle_(), explorer.picture()
    assert bundle[explorers.VIEW]["model_id"] == explorer.box.model_id
    assert bundle["image/svg+xml"] == picture.svg and bundle["text/plain"] == picture.text == repr(explorer)
