"""The trusted side: sees submissions and public rows only, and releases what a guarantee covers."""
