"""Pictures of what attention computes: arrays in, a `Picture` out.

Read `style` (colours and sizes), then `arrays` (matrices, token strips, pipelines), `charts`, and `flow` (the
way through a layer). Behind the explorers stand `heads` (one head at work), `head_grid` (all heads),
`model_heads` (those of a large model), `head_sum`, `value_rank`, `cache_step`, `cache_sizes`, `next_word`,
`work_curves`, `saturation`, `mask_ways` and `both_ways`; behind notebook 07 `shared_heads` and
`loss_and_cache`, behind notebook 10 `head_maps`. `svg` and `words` are what they draw and write with.
"""

from helpers.figures.arrays import matrices, matrix, pipeline, tokens
from helpers.figures.charts import bars, lines, scatter
from helpers.figures.picture import Picture
from helpers.figures.words import number

__all__ = ["Picture", "bars", "lines", "matrices", "matrix", "number", "pipeline", "scatter", "tokens"]
