"""The protocols, each in a module or folder with all that only it uses; `bag_regression` holds two of them."""
