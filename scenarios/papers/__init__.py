"""Papers: the scenarios behind each table and figure, and which of our values stand for which of the paper's."""
