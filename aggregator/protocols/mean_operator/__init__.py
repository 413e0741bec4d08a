"""Protocol `mean_operator`: one noisy mean of y x, and any linear-odd loss."""
