"""Learning from marginals of errors (Lacombe, Jetley and Sebag 2021): the learner's side, free of messages and noise."""
