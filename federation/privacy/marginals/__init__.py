"""Private counts of errors in bins of features, for a number of queries agreed beforehand. Unit: a row or a label."""
