"""Learning from the votes of classifiers that parties have trained."""
