"""Pure array functions: minimisers and their certificates, bases, kernels."""
