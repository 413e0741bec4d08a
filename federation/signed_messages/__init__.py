"""Letters between an aggregator and a site that trust nobody who carries them: signed questions, sealed answers."""
