"""Learning from marginals of errors (Lacombe, Jetley and Sebag 2021), free of messages and noise."""
