"""Kernels between sets of rows: exact Gram matrices, random features and Nystrom, one interface for all."""
