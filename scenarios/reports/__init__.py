"""What a run comes to, in tables, figures, sentences and one page."""
