"""Tables and figures of papers beside our own measurements: what is declared of them, run, compared and shown."""
