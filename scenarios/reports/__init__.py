"""Reports on the results of a run, for its readers: tables, figures, sentences and one page."""
