"""Mistakes that people make in models: what is written, the operation that fails, and the first demand that is not met.

``ones`` is ``torch.ones``. What Python code of torch refuses before any operator runs is no part of this table.
"""

from typing import NamedTuple


class Mistake(NamedTuple):
    code: str
    target: str
    violated: str


MISTAKES: tuple[Mistake, ...] = (
    Mistake(
        "nn.Linear(128, 10)(ones(4, 64))",
        "aten.addmm.default",
        "inner sizes must be equal: mat1.shape[1] is 64, mat2.shape[0] is 128",
    ),
    Mistake(
        "nn.Linear(8, 4)(ones(2, 3, 7))",
        "aten.addmm.default",
        "inner sizes must be equal: mat1.shape[1] is 7, mat2.shape[0] is 8",
    ),
    Mistake(
        "ones(3, 4) @ ones(3, 4)",
        "aten.mm.default",
        "inner sizes must be equal: self.shape[1] is 4, mat2.shape[0] is 3",
    ),
    Mistake(
        "torch.bmm(ones(2, 3, 4), ones(3, 4, 5))",
        "aten.bmm.default",
        "batch sizes must be equal: self.shape[0] is 2, mat2.shape[0] is 3",
    ),
    Mistake("torch.bmm(ones(3, 4), ones(4, 5))", "aten.bmm.default", "self.ndim is 2, where 3 is wanted"),
    Mistake("torch.mm(ones(2, 3, 4), ones(4, 5))", "aten.mm.default", "self.ndim is 3, where 2 is wanted"),
    Mistake(
        "ones(2, 5, 8) @ ones(2, 5, 8)",
        "aten.bmm.default",
        "inner sizes must be equal: self.shape[2] is 8, mat2.shape[1] is 5",
    ),
    Mistake(
        "ones(3, 4) @ ones(5)", "aten.mv.default", "inner sizes must be equal: self.shape[1] is 4, vec.shape[0] is 5"
    ),
    Mistake(
        "torch.dot(ones(3), ones(4))",
        "aten.dot.default",
        "inner sizes must be equal: self.shape[0] is 3, tensor.shape[0] is 4",
    ),
    Mistake(
        "nn.Linear(4, 4)(torch.zeros(2, 4, dtype=torch.int64))",
        "aten.addmm.default",
        "dtypes must be the same: mat1 is int64, mat2 is float32",
    ),
    Mistake(
        "nn.Linear(4, 4)(ones(2, 4, dtype=torch.float64))",
        "aten.addmm.default",
        "dtypes must be the same: mat1 is float64, mat2 is float32",
    ),
    Mistake(
        "nn.Linear(4, 4).half()(ones(2, 4))",
        "aten.addmm.default",
        "dtypes must be the same: mat1 is float32, mat2 is float16",
    ),
    Mistake(
        "ones(2, 3) + ones(2, 4)", "aten.add.Tensor", "sizes do not broadcast: self.shape[1] is 3, other.shape[1] is 4"
    ),
    Mistake(
        "ones(8, 16, 32) * ones(16)",
        "aten.mul.Tensor",
        "sizes do not broadcast: self.shape[2] is 32, other.shape[0] is 16",
    ),
    Mistake("ones(3).add_(ones(2, 3))", "aten.add_.Tensor", "other.ndim is 2, which exceeds self.ndim: 1"),
    Mistake(
        "torch.arange(3).div_(2.0 * ones(3))",
        "aten.div_.Tensor",
        "self is int64, where a floating or complex dtype is wanted",
    ),
    Mistake(
        "ones(4, 10).masked_fill(ones(4, 9).bool(), 0.0)",
        "aten.masked_fill.Scalar",
        "sizes do not broadcast: self.shape[1] is 10, mask.shape[1] is 9",
    ),
    Mistake(
        "torch.where(ones(3).bool(), ones(3), ones(2))",
        "aten.where.self",
        "sizes do not broadcast: condition.shape[0] is 3, other.shape[0] is 2",
    ),
    Mistake(
        "ones(4, 4)[:, 0].copy_(ones(3))",
        "aten.copy_.default",
        "src.shape[0] is 3, which does not stretch to self.shape[0]: 4",
    ),
    Mistake(
        "ones(3, 1).expand(4, 5)", "aten.expand.default", "self.shape[0] is 3, which does not stretch to size[0]: 4"
    ),
    Mistake("ones(3).expand(3, 2)", "aten.expand.default", "self.shape[0] is 3, which does not stretch to size[1]: 2"),
    Mistake(
        "torch.cat([ones(2, 3), ones(2, 4)], dim=0)",
        "aten.cat.default",
        "sizes must be equal: tensors[1].shape[1] is 4, tensors[0].shape[1] is 3",
    ),
    Mistake(
        "torch.cat([ones(2, 3), ones(2, 3, 1)], dim=1)",
        "aten.cat.default",
        "numbers of dimensions must be equal: tensors[1].ndim is 3, tensors[0].ndim is 2",
    ),
    Mistake(
        "torch.stack([ones(2, 3), ones(3, 2)])",
        "aten.stack.default",
        "sizes must be equal: tensors[1].shape[0] is 3, tensors[0].shape[0] is 2",
    ),
    Mistake(
        "ones(4, 6).view(5, 5)",
        "aten.view.default",
        "numbers of elements must be equal: self.numel() is 24, prod(size) is 25",
    ),
    Mistake(
        "ones(4, 6).reshape(-1, 5)",
        "aten.view.default",
        "self.numel() is 24, which is no multiple of prod(size) without its -1: 5",
    ),
    Mistake(
        "ones(4, 6).split([2, 3], dim=1)",
        "aten.split_with_sizes.default",
        "the parts and the whole must be equal: sum(split_sizes) is 5, self.shape[1] is 6",
    ),
    Mistake("ones(4, 6).select(1, 6)", "aten.select.int", "index is 6, where -6 to 5 is wanted"),
    Mistake("ones(4, 6).sum(dim=2)", "aten.sum.dim_IntList", "dim[0] is 2, where -2 to 1 is wanted"),
    Mistake("ones(4, 6).transpose(1, 2)", "aten.transpose.int", "dim1 is 2, where -2 to 1 is wanted"),
    Mistake(
        "ones(4, 6).permute(0, 2, 1)",
        "aten.permute.default",
        "numbers of dimensions must be equal: len(dims) is 3, self.ndim is 2",
    ),
    Mistake("ones(4, 6).unsqueeze(4)", "aten.unsqueeze.default", "dim is 4, where -3 to 2 is wanted"),
    Mistake("ones(4, 6).softmax(dim=2)", "aten._softmax.default", "dim is 2, where -2 to 1 is wanted"),
    Mistake(
        "torch.gather(ones(4, 6), 1, torch.zeros(5, 1, dtype=torch.int64))",
        "aten.gather.default",
        "index.shape[0] is 5, which exceeds self.shape[0]: 4",
    ),
    Mistake(
        "torch.gather(ones(4, 6), 1, torch.zeros(4, dtype=torch.int64))",
        "aten.gather.default",
        "numbers of dimensions must be equal: index.ndim is 1, self.ndim is 2",
    ),
    Mistake(
        "ones(4, 6).index_select(0, ones(2))",
        "aten.index_select.default",
        "index is float32, where int32 or int64 is wanted",
    ),
    Mistake(
        "ones(4, 6)[ones(5).bool()]",
        "aten.index.Tensor",
        "sizes must be equal: indices[0].shape[0] is 5, self.shape[0] is 4",
    ),
    Mistake("ones(4, 6).topk(7)", "aten.topk.default", "k is 7, which exceeds self.shape[1]: 6"),
    Mistake("ones(4, 6).repeat(2)", "aten.repeat.default", "self.ndim is 2, which exceeds len(repeats): 1"),
    Mistake(
        "nn.Embedding(10, 4)(ones(2, 3))",
        "aten.embedding.default",
        "indices is float32, where int32 or int64 is wanted",
    ),
    Mistake(
        "nn.Conv2d(3, 8, 3)(ones(2, 1, 28, 28))",
        "aten.convolution.default",
        "channels must be equal: input.shape[1] is 1, weight.shape[1] is 3",
    ),
    Mistake(
        "nn.Conv2d(3, 8, 3)(ones(2, 28, 28, 3))",
        "aten.convolution.default",
        "channels must be equal: input.shape[1] is 28, weight.shape[1] is 3",
    ),
    Mistake(
        "nn.Conv2d(3, 8, 7)(ones(2, 3, 5, 5))",
        "aten.convolution.default",
        "the kernel's extent along weight[2] is 7, which exceeds input.shape[2] with padding: 5",
    ),
    Mistake(
        "nn.Conv1d(4, 8, 3)(ones(2, 10, 4))",
        "aten.convolution.default",
        "channels must be equal: input.shape[1] is 10, weight.shape[1] is 4",
    ),
    Mistake(
        "nn.ConvTranspose2d(8, 3, 3)(ones(2, 3, 9, 9))",
        "aten.convolution.default",
        "channels must be equal: input.shape[1] is 3, weight.shape[0] is 8",
    ),
    Mistake(
        "nn.MaxPool2d(3)(ones(2, 3, 2, 2))",
        "aten.max_pool2d_with_indices.default",
        "the kernel's extent along kernel_size[0] is 3, which exceeds self.shape[2] with padding: 2",
    ),
    Mistake(
        "nn.AvgPool2d(3)(ones(2, 3, 2, 2))",
        "aten.avg_pool2d.default",
        "the kernel's extent along kernel_size[0] is 3, which exceeds self.shape[2] with padding: 2",
    ),
    Mistake(
        "nn.MaxPool2d(2)(ones(4, 4))", "aten.max_pool2d_with_indices.default", "self.ndim is 2, where 3 or 4 is wanted"
    ),
    Mistake(
        "nn.LayerNorm(16)(ones(2, 8))",
        "aten.native_layer_norm.default",
        "features must be equal: input.shape[1] is 8, normalized_shape[0] is 16",
    ),
    Mistake(
        "nn.PixelShuffle(2)(ones(1, 6, 4, 4))",
        "aten.pixel_shuffle.default",
        "self.shape[1] is 6, which is no multiple of upscale_factor squared: 4",
    ),
    Mistake(
        "nn.ReflectionPad2d(4)(ones(1, 3, 4, 4))",
        "aten.reflection_pad2d.default",
        "padding[0] is 4, where at most 3 is wanted",
    ),
    Mistake(
        "F.cross_entropy(ones(4, 3), torch.zeros(4, dtype=torch.int64), weight=ones(2))",
        "aten.nll_loss_forward.default",
        "classes must be equal: weight.numel() is 2, self.shape[1] is 3",
    ),
    Mistake(
        "F.cross_entropy(ones(4, 3), ones(4))",
        "aten.nll_loss_forward.default",
        "target is float32, where an integral dtype is wanted",
    ),
    Mistake(
        "torch.linalg.inv(ones(3, 4))",
        "aten.linalg_inv_ex.default",
        "the sizes of a square matrix must be equal: A.shape[0] is 3, A.shape[1] is 4",
    ),
    Mistake(
        "torch.arange(6).mean()", "aten.mean.default", "self is int64, where a floating or complex dtype is wanted"
    ),
    Mistake(
        "torch.arange(6).softmax(0)",
        "aten._softmax.default",
        "self is int64, where a floating or complex dtype is wanted",
    ),
    Mistake("ones(3) & ones(3)", "aten.bitwise_and.Tensor", "self is float32, where an integral dtype is wanted"),
    Mistake(
        "F.scaled_dot_product_attention(ones(1, 2, 4, 8), ones(1, 2, 4, 6), ones(1, 2, 4, 8))",
        "aten.bmm.default",
        "inner sizes must be equal: self.shape[2] is 8, mat2.shape[1] is 6",
    ),
    Mistake(
        "ones(2, 3).scatter(1, torch.zeros(2, 4, dtype=torch.int64), ones(2, 3))",
        "aten.scatter.src",
        "index.shape[1] is 4, which exceeds src.shape[1]: 3",
    ),
    Mistake(
        "ones(2, 3).triu_() @ ones(2, 3)",
        "aten.mm.default",
        "inner sizes must be equal: self.shape[1] is 3, mat2.shape[0] is 2",
    ),
    Mistake("ones(4).triu()", "aten.triu.default", "self.ndim is 1, where at least 2 is wanted"),
    Mistake("ones(2, 6).unbind(2)", "aten.unbind.int", "dim is 2, where -2 to 1 is wanted"),
    Mistake(
        "torch.lerp(ones(3), ones(4), 0.5)",
        "aten.lerp.Scalar",
        "sizes do not broadcast: self.shape[0] is 3, end.shape[0] is 4",
    ),
    Mistake(
        "torch.addmm(ones(4), ones(2, 3), ones(3, 5))",
        "aten.addmm.default",
        "self.shape[0] is 4, which does not stretch to mat2.shape[1]: 5",
    ),
)
