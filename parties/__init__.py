"""The private side: the only place that sees labelled private rows."""
