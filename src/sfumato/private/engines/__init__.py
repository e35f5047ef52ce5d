"""Where folds run. An engine has one method, ``fold(aggregate)``, and only its result leaves."""
