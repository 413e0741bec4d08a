"""One module per command of `federation`, each light to import: the work is imported when it is done."""
