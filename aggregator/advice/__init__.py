"""Which protocol keeps a wish, and what each may be expected to miss, by what protocols say of themselves."""
