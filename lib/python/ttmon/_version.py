# Packages have the release here: see tools/package.
__version__ = "0.1.0.dev0"
