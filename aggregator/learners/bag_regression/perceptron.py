"""A network of fully connected ReLU layers with one linear output, and its gradient, on plain arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True)
class Perceptron:
    """f(x) = A_L relu(... relu(A_1 x + b_1) ...) + b_L, a number; `widths` are d, those of the hidden layers, and 1.

    Its parameters are one vector (P,), float32 or float64, in which everything is then computed.

    Examples:
        >>> network = Perceptron((2, 3, 1))
        >>> network.size
        13
        >>> network.outputs(network.initial(np.random.default_rng(0)), np.ones((1, 2), dtype=np.float32)).round(2)
        array([0.1], dtype=float32)
    """

    widths: tuple[int, ...]

    @cached_property
    def size(self) -> int:
        """P, the number of parameters: all weights and biases."""
        return sum((inputs + 1) * outputs for inputs, outputs in zip(self.widths, self.widths[1:], strict=False))

    def layers(self, parameters: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Views of matrices (inputs, outputs) and biases (outputs,), first layer first."""
        found, start = [], 0
        for inputs, outputs in zip(self.widths, self.widths[1:], strict=False):
            middle, end = start + inputs * outputs, start + (inputs + 1) * outputs
            found.append((parameters[start:middle].reshape(inputs, outputs), parameters[middle:end]))
            start = end
        return found

    def initial(self, random: np.random.Generator) -> np.ndarray:
        """Random parameters (P,), float32: zero biases, matrices uniform in +-sqrt(6 / (inputs + outputs)).

        Glorot and Bengio 2010, Eq. 16.
        """
        parameters = np.zeros(self.size, dtype=np.float32)
        for matrix, _ in self.layers(parameters):
            matrix[:] = random.uniform(-1, 1, matrix.shape) * np.sqrt(6 / sum(matrix.shape))
        return parameters

    def activations(self, parameters: np.ndarray, rows: np.ndarray) -> list[np.ndarray]:
        """The rows (n, d), what every hidden layer makes of them (n, width), and the outputs (n, 1)."""
        found = [rows]
        layers = self.layers(parameters)
        for number, (matrix, bias) in enumerate(layers, start=1):
            values = found[-1] @ matrix
            values += bias
            if number < len(layers):
                np.maximum(values, 0, out=values)
            found.append(values)
        return found

    def outputs(self, parameters: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """f(x) of rows (n, d), shape (n,)."""
        return self.activations(parameters, rows)[-1][:, 0]

    def add_gradient(
        self, gradient: np.ndarray, parameters: np.ndarray, activations: list[np.ndarray], slopes: np.ndarray
    ) -> None:
        """Adds sum_i slopes_i grad f(x_i) to `gradient` (P,), given `activations` of n rows and `slopes` (n,)."""
        back = slopes[:, None]
        pairs = list(zip(self.layers(parameters), self.layers(gradient), strict=True))
        for number in reversed(range(len(pairs))):
            (matrix, _), (matrix_gradient, bias_gradient) = pairs[number]
            inputs = activations[number]
            matrix_gradient += inputs.T @ back
            bias_gradient += back.sum(axis=0)
            if number:
                back = back @ matrix.T
                back *= inputs > 0
