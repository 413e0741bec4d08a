"""Commands of `federation`, light to import: a command imports the code for its work when it does the work."""
