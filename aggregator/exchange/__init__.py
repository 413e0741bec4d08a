"""Learning from marginals of errors (Lacombe, Jetley and Sebag 2021): a learner free of messages and noise; its job."""
