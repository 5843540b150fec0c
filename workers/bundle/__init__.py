"""A trained model as a folder that needs nothing of this program: writing it, and checking it again."""
