"""The contract between an aggregator and its parties: questions, answers, guarantees, and how they fail."""
