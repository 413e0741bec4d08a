"""Learning from marginals of errors (Lacombe, Jetley and Sebag 2021): the learner, free of messages and of noise."""
