"""Make the files of data sets from the downloads of their owners: `python -m benchmarks.originals`."""
