"""Where folds run. An engine has one method, ``fold(aggregate)``, and nothing else leaves it."""
