"""Ways to break the promise, each with the cheapest tests that see it."""

from tests.mutants.laboratory import Mutant

CURATOR, GROUPS = "curator/test_curator.py::test_", "curator/test_curator_groups.py::test_"
CALIBRATION, COSTS = "budget/test_calibration.py::test_", "budget/test_costs.py::test_"
ESTIMATORS, PEOPLE = "contract/test_estimators.py::test_", "contract/test_people_and_bounds.py::test_"
ONLY = "contract/test_estimators.py::test_rows_reach_the_result_through_the_curator_only"
FITTED = "contract/test_estimators.py::TestFitted::test_"
AGGREGATES, SPLITS = "contract/test_aggregates.py::test_", "private/aggregates/test_splits.py::test_"
NOISE, SPARSE = "statistical/test_noise.py::test_", "statistical/test_sparse.py::test_"
CONTROL = "contract/test_control_flow.py::test_"
NEIGHBOURS = "private/sources/test_neighbours.py::"
SUMS, MIXED = "private/aggregates/test_sums.py::test_", "contract/test_mixed_tables.py::test_"

NO_NOISE = [
    Mutant(
        "half the noise",
        "curator.curator",
        "sample(record.scale, raw.size",
        "sample(record.scale / 2, raw.size",
        (CURATOR + "noise_of_the_recorded_size_is_added[budget0]",),
    ),
    Mutant(
        "noise on sums and not on counts",
        "curator.curator",
        "return NoisySums(*aggregate.unpack(noisy), ",
        "return NoisySums(aggregate.unpack(self._fold(aggregate, projection)[0])[0],"
        " *aggregate.unpack(noisy)[1:], ",
        (GROUPS + "noise_of_the_stated_size_is_in_sums[budget0]",),
    ),
    Mutant(
        "no noise where nobody is",
        "curator.curator",
        "return Noisy(noisy, record)",
        "return Noisy(np.where(raw == 0, 0, noisy), record)",
        (CURATOR + "each_step_gets_its_own_noise",),
    ),
    Mutant(
        "no carry after the noise",
        "curator.curator",
        "return Noisy(carried(np.stack([raw_low + self._noise(record, raw_low), raw_high])), record)",
        "return Noisy(np.stack([raw_low + self._noise(record, raw_low), raw_high]), record)",
        (GROUPS + "both_limbs_are_those_of_the_noisy_sum",),
    ),
    Mutant(
        "the same noise in every step",
        "curator.curator",
        "sample(record.scale, raw.size, self._entropy)",
        "sample(record.scale, raw.size, Entropy(0))",
        (CURATOR + "noise_differs_between_asks_and_between_entries",),
    ),
    Mutant(
        "one draw for all entries",
        "curator.curator",
        "sample(record.scale, raw.size, self._entropy).reshape(raw.shape)",
        "np.resize(sample(record.scale, 1, self._entropy), raw.shape)",
        (CURATOR + "noise_differs_between_asks_and_between_entries",),
    ),
    Mutant(
        "a draw of the first side for the second",
        "curator.curator",
        "noisy_sides = self._noisy(size, marginals.sides(raw_counts, chosen))",
        "raw = marginals.sides(raw_counts, chosen); left = self._noisy(size, raw[:, :1]);"
        " noisy_sides = Noisy(raw + left.values - raw[:, :1], size)",
        (GROUPS + "the_two_sides_of_a_split_get_noise_of_their_own[budget0]",),
    ),
    Mutant(
        "no noise on means of the nearest rows",
        "curator.curator",
        "noisy = self._noisy(record, aggregate.sums(self._fold(aggregate)))",
        "noisy = Noisy(aggregate.sums(self._fold(aggregate)), record)",
        (GROUPS + "noise_of_the_stated_size_is_in_means_of_the_nearest[rows-budget0]",),
    ),
    Mutant(
        "no noise on the mean distance from the nearest rows",
        "curator.curator",
        "noisy = self._noisy(record, aggregate.total(self._fold(aggregate)))",
        "noisy = Noisy(aggregate.total(self._fold(aggregate)), record)",
        (GROUPS + "noise_of_the_stated_size_is_in_means_of_the_nearest[distance-budget0]",),
    ),
    Mutant(
        "a seed where none was given",
        "curator.tables",
        "self.domain, plan, Entropy(seed))",
        "self.domain, plan, Entropy(seed or 0))",
        (CURATOR + "open_curator_marks_the_source_of_noise",),
    ),
    Mutant(
        "rounded floating-point noise",
        "private.mechanisms.noise",
        "return drawn(quickest(fill_table, size), size, entropy, DIGIT_BITS, *laplace_table(scale))",
        "return np.rint(np.random.default_rng(entropy.words(2)).laplace(0, float(scale), size)).astype(int)",
        (NOISE + "law[chi_square_p-1-discrete_laplace]",),
    ),
    Mutant(
        "a selection at twice its rate",
        "curator.curator",
        "return choose(raw_scores, 1 / record.scale, self._entropy)",
        "return choose(raw_scores, 2 / record.scale, self._entropy)",
        (CURATOR + "the_rate_of_a_selection_is_one_over_the_recorded_scale",),
    ),
    Mutant(
        "the best instead of a selection",
        "curator.curator",
        "return choose(raw_scores, 1 / record.scale, self._entropy)",
        "return int(raw_scores.argmax())",
        (CURATOR + "select_on_equal_scores_is_uniform[budget0]",),
    ),
]

SPENDS = [
    Mutant(
        "Gaussian noise that costs a part of itself",
        "budget.costs",
        "squares = [2 * record.rho /",
        "squares = [Fraction(9, 5) * record.rho /",
        ("budget/test_gaussian_law.py::test_the_claim_holds_and_is_nearly_tight[0.0001-20-shifts2]",),
    ),
    Mutant(
        "shares swapped between steps",
        "budget.calibration",
        "tuple(pricing(s, total * s.share_per_ask) for s in plan.steps)",
        "tuple(pricing(s, total * t.share_per_ask) for s, t in zip(plan.steps, plan.steps[::-1]))",
        (CALIBRATION + "shares_are_kept",),
    ),
    Mutant(
        "a repeated step priced as one",
        "budget.plan",
        "return Fraction(self.share) / self.repeats",
        "return Fraction(self.share)",
        (CALIBRATION + "pure_budgets_are_spent_exactly[0.3-1-selection]",),
    ),
    Mutant(
        "a repeated step composed as one",
        "budget.plan",
        "for priced in self.steps for _ in range(priced.step.repeats))",
        "for priced in self.steps)",
        (CALIBRATION + "pure_budgets_are_spent_exactly[0.3-1-selection]",),
    ),
    Mutant(
        "equal steps composed as one",
        "budget.costs",
        "return sum((record.rho for record in records), Fraction(0))",
        "return sum((record.rho for record in set(records)), Fraction(0))",
        (CALIBRATION + "zcdp_budgets_are_spent_exactly[0.3-1-selection]",),
    ),
    Mutant(
        "one ask more than was declared",
        "curator.curator",
        "if asked >= priced.step.repeats:",
        "if asked > priced.step.repeats:",
        (CURATOR + "a_step_asked_too_often[1]",),
    ),
    Mutant(
        "an ask that fails is not counted",
        "curator.curator",
        "asked = sum(record.step == step for record in self._records)",
        "asked = 0",
        (CURATOR + "a_failed_ask_still_counts",),
    ),
    Mutant(
        "more entries than were declared",
        "curator.curator",
        "        if not fits:",
        "        if False:",
        (CURATOR + "a_wider_sensitivity_than_declared",),
    ),
    Mutant(
        "a larger delta than was promised",
        "budget.calibration",
        "records(), float(self.budget.delta), precision)",
        "records(), max(float(self.budget.delta), 1e-3), precision)",
        (CALIBRATION + "approximate_budgets_are_spent_and_not_overspent[1-1e-09-count]",),
    ),
    Mutant(
        "delta left out of a sum of budgets",
        "budget.amounts",
        "delta = self.delta + other.delta",
        "delta = self.delta",
        ("budget/test_ledger.py::test_delta_alone_can_be_exceeded",),
    ),
    Mutant(
        "parts of persons counted as those of rows",
        "budget.accounts",
        "else self.parts.max_per_unit - (part is not None)",
        "else 1 - (part is not None)",
        ("budget/test_accounts.py::test_a_person_in_two_months_breaks_a_declaration_of_one",),
    ),
    Mutant(
        "runs for rows and for persons in one sum",
        "budget.ledger",
        "if None not in (unit, known) and unit != known:",
        "if False:",
        ("budget/test_ledger.py::test_the_first_run_says_who_is_protected",),
    ),
    Mutant(
        "checksums that do not cover the line before",
        "budget.ledger_checksums",
        "json.dumps([last, line, *row]",
        "json.dumps([line, *row]",
        ("budget/test_ledger_checksums.py::test_a_line_that_is_lost_together_with_its_checksum",),
    ),
    Mutant(
        "permute-and-flip at the price of the exponential mechanism",
        "budget.records",
        '(8 if self.mechanism == "exponential" else 2)',
        "(8 if self.mechanism in ('exponential', 'permute-and-flip') else 2)",
        ("budget/test_records.py::test_costs_of_single_records",),
    ),
    Mutant(
        "losses tabulated for one row of a person",
        "budget.costs",
        "scale, shift = float(record.scale), record.sensitivity.l1",
        "scale, shift = float(record.scale), 1",
        (COSTS + "one_record_is_priced_by_its_exact_law",),
    ),
    Mutant(
        "a scale rounded down",
        "budget.exact",
        "rounded = math.ceil(scale / unit) * unit",
        "rounded = math.floor(scale / unit) * unit",
        ("budget/test_exact.py",),
    ),
    Mutant(
        "the ledger charged afterwards",
        "curator.run",
        """\
        charge = ledger.charge(plan.budget, method=method, plan=str(plan), seeded=seeded, unit=unit)
        state = f"was charged to {ledger.dataset!r} and counts"
        try:
            yield
""",
        """\
        charge = 0
        state = "will be charged"
        try:
            yield; charge = ledger.charge(plan.budget, method=method, plan=str(plan), seeded=seeded)
""",
        (ESTIMATORS + "the_ledger_is_charged_the_plan_before_the_first_row[LloydKMeans]",),
    ),
    Mutant(
        "bounds that were bought and not stated",
        "cluster.shared.base",
        "after_purchases(privacy, bought)",
        "privacy",
        (PEOPLE + "a_release_states_the_cost_of_bounds_that_were_bought[pure]",),
    ),
    Mutant(
        "runs that depend on each other in one table of losses",
        "budget.statement",
        "return self.budget if self._adds_promises and total <= self.budget else total",
        "return total",
        ("budget/test_statement.py::test_promises_of_several_runs_are_added_up",),
    ),
    Mutant(
        "an attacker without delta",
        "budget.power",
        "rate * exp_up(epsilon) + delta",
        "rate * exp_up(epsilon)",
        ("budget/test_power.py::test_one_pair_allows_exactly_the_worst_mechanism[0.2-1.0]",),
    ),
    Mutant(
        "an attacker who hears of no threshold",
        "budget.statement",
        "if self._adds_promises or any(record.delta for record in self.steps):",
        "if self._adds_promises:",
        ("budget/test_power.py::test_a_threshold_leaves_the_stated_pair_alone",),
    ),
    Mutant(
        "bounds that nobody pays for",
        "curator.curator",
        "self._records.append(record)",
        "self._records += [record] * (priced.step.name not in ('magnitudes', 'coarse bins', 'fine bins'))",
        (PEOPLE + "private_bounds[LloydKMeans-pure]",),
    ),
]

SENSITIVITIES = [
    Mutant(
        "products of two columns in L1 as if they weighed as much as squares",
        "private.aggregates.moments",
        "2 * SQUARE_WEIGHT + PRODUCT_WEIGHT * (n_features - 1)",
        "2 * SQUARE_WEIGHT + SQUARE_WEIGHT * (n_features - 1)",
        ("private/aggregates/test_products.py::test_no_row_however_extreme_weighs_more_than_declared[64]",),
    ),
    Mutant(
        "noise for L2 where it must be for L1",
        "budget.plan",
        "scale = sensitivity.l1 / self.cost",
        "scale = root_up(Fraction(sensitivity.l2_squared)) / self.cost",
        (CALIBRATION + "pure_budgets_are_spent_exactly[0.3-1-vector]",),
    ),
    Mutant(
        "sums in L1 as if there were one column",
        "private.aggregates.sums",
        "math.isqrt(squared_l1 * LATTICE_RADIUS**2)",
        "LATTICE_RADIUS",
        (AGGREGATES + "one_row_never_moves_more_than_declared_and_reaches_it[GroupedSums-1]",),
    ),
    Mutant(
        "columns of marginals as if they were disjoint",
        "private.aggregates.histograms",
        "return Sensitivity(l1=n_features, l2_squared=n_features, spread=1, coordinates=n_features)",
        "return Sensitivity()",
        (AGGREGATES + "one_row_never_moves_more_than_declared_and_reaches_it[Histograms-0]",),
    ),
    Mutant(
        "scores of splits that move in one direction",
        "private.aggregates.splits",
        "spread=2 * slope + self.emptiness",
        "spread=slope + self.emptiness",
        (SPLITS + "one_row_moves_scores_within_the_proved_range_and_reaches_it[paper]",),
    ),
    Mutant(
        "two sides of a split that overlap",
        "private.aggregates.splits",
        "return np.stack([left, of_column.sum(axis=1) - left], axis=1)",
        "return np.stack([left, of_column.sum(axis=1)], axis=1)",
        (SPLITS + "sides_of_a_public_choice_have_the_sensitivity_of_a_count",),
    ),
    Mutant(
        "a box that reaches beyond its node",
        "cluster.dpm",
        "    high[cut, columns] = thresholds\n",
        "    high[cut[:0], columns[:0]] = thresholds[:0]\n",
        ("cluster/test_dpm.py::TestTree::test_boxes_are_disjoint_and_cover_the_domain",),
    ),
    Mutant(
        "rows outside the domain",
        "private.engines.base",
        "block if domain is None else domain.admitted(block)",
        "block.astype(float)",
        ("private/engines/test_memory.py::test_no_aggregate_sees_a_row_outside_the_domain",),
    ),
    Mutant(
        "rows outside the bounds that were found",
        "curator.curator",
        "Clipped(aggregate, self.space) if self._narrowed else aggregate",
        "aggregate",
        (CURATOR + "rows_are_clipped_to_bounds_that_were_released",),
    ),
]

PERSONS = [
    Mutant(
        "noise for one row of a person",
        "cluster.shared.base",
        "priced = calibrate(plan, self._budget(), domain.unit.max_rows)",
        "priced = calibrate(plan, self._budget())",
        (PEOPLE + "people[LloydKMeans-pure-4-3]",),
    ),
    Mutant(
        "a question for one row of a person",
        "curator.curator",
        "record = priced.record(priced.step.for_unit(sensitivity, self.plan.max_rows))",
        "record = priced.record(sensitivity)",
        (CURATOR + "records_say_what_ran[4-budget0]",),
    ),
    Mutant(
        "squared norms times the cap",
        "budget.records",
        "l2_squared=self.l2_squared * max_rows**2",
        "l2_squared=self.l2_squared * max_rows",
        (
            AGGREGATES
            + "a_person_of_several_rows_never_moves_more_than_declared_and_reaches_it[3-CellCounts-0]",
        ),
    ),
    Mutant(
        "no cap on the rows of a person",
        "private.people",
        "keep = ~above[persons.codes]",
        "keep = np.ones(len(rows), dtype=bool)",
        (
            "statistical/test_people.py::test_a_person_is_protected_as_promised_and_hardly_better"
            "[all rows in an empty cell-0.5]",
        ),
    ),
    Mutant(
        "a cap for each part of a table",
        "private.people",
        "return _capped(_gathered((_persons(ids), rows) for ids, rows in pairs), max_rows, folder, 0)",
        "return (_cap(_persons(ids), rows, max_rows) for ids, rows in pairs)",
        ("private/sources/test_files.py::test_people_are_capped_as_in_memory",),
    ),
]

LEAKS = [
    Mutant(
        "bounds read off the data",
        "curator.tables",
        "domain = scaling.applied(Domain.from_bounds(bounds, rows.shape[1], outside=outside), (), names)",
        "low, high = (extreme(axis=0, initial=1e-9) for extreme in (rows.min, rows.max)); "
        "domain = Domain.from_bounds((low - 1e-9, high + 1e-9), rows.shape[1])",
        (ESTIMATORS + "rows_reach_the_result_through_the_curator_only[LloydKMeans-all equal, one outside]",),
    ),
    Mutant(
        "a choice that skips groups without rows",
        "curator.curator",
        "chosen = np.array([self._choose(choice, scores) for scores in raw_scores], dtype=np.int64)",
        "chosen = np.array([self._choose(choice, scores) if raw.any() else 0"
        " for scores, raw in zip(raw_scores, raw_counts)], dtype=np.int64)",
        (GROUPS + "splits_of_no_rows_are_uniform[budget0]",),
    ),
    Mutant(
        "a threshold on raw counts",
        "private.mechanisms.sparse_histogram",
        "merge_above(raw_cells, raw_counts + own_noise, ",
        "merge_above(raw_cells, np.where(raw_counts < threshold, 0, raw_counts + own_noise), ",
        (SPARSE + "joint_law[scale1-3-pattern1-discrete Laplace]",),
    ),
    Mutant(
        "occupied cells only",
        "private.mechanisms.sparse_histogram",
        "own_noise, empty_cells, noise, threshold, out)",
        "own_noise, empty_cells[:0], noise[:0], threshold, out)",
        (CURATOR + "sparse_and_dense_cells_have_the_same_law",),
    ),
    Mutant(
        "rows in a pickle",
        "cluster.shared.base",
        'for name, value in super().__getstate__().items() if name != "_table"}',
        'for name, value in super().__getstate__().items() if name != "_table"}'
        ' | {"_kept": getattr(vars(self).get("_table"), "_rows", None)}',
        (FITTED + "pickles_predict_and_hold_no_rows[pure-LloydKMeans]",),
    ),
    Mutant(
        "labels in the release",
        "cluster.shared.base",
        "        self._table = self._fit(table, self._plan, self._cluster)\n",
        "        self._table = self._fit(table, self._plan, self._cluster);"
        " self.release_.parameters['groups'] = self.labels_.tolist()\n",
        (FITTED + "the_release_holds_neither_rows_nor_labels_nor_seed[pure-LloydKMeans]",),
    ),
    Mutant(
        "the seed in the release",
        "cluster.shared.parameters",
        "parameter(seed, default=None, published=False)",
        "parameter(seed, default=None)",
        (FITTED + "the_release_holds_neither_rows_nor_labels_nor_seed[pure-LloydKMeans]",),
    ),
    Mutant(
        "a seeded run that does not say so",
        "curator.curator",
        "self.records, self._entropy.seeded)",
        "self.records, False)",
        (FITTED + "fitted_attributes[pure-LloydKMeans]",),
    ),
    Mutant(
        "values in an error",
        "domain.arrays",
        '            return f"`{name}` {answer}"\n    return f"`{name}` {_NO_NUMBERS}"',
        '            return f"`{name}` {answer}"\n    return f"`{name}` {_NO_NUMBERS}, got {problem}"',
        ("contract/test_bad_input.py::test_bad_tables[LloydKMeans-strings]",),
    ),
    Mutant(
        "an error for a table without rows",
        "curator.curator",
        "        reporter()(1.0)\n",
        "        if not state.any(): raise ParameterError('`X` must have rows, got none')\n",
        (CONTROL + "rows_in_memory[LloydKMeans-no row, one row]",),
    ),
    Mutant(
        "rows counted in the progress",
        "curator.curator",
        "reporter()(1.0)",
        "reporter()(1.0 + state.sum())",
        (CONTROL + "rows_in_memory[LloydKMeans-one row more]",),
    ),
    Mutant(
        "rows counted in a log",
        "curator.curator",
        "reporter()(1.0)",
        "reporter()(1.0); __import__('logging').getLogger('sfumato').info('%s', state.sum())",
        (CONTROL + "rows_in_memory[LloydKMeans-one row less]",),
    ),
    Mutant(
        "a warning about few rows",
        "curator.curator",
        "reporter()(1.0)",
        "reporter()(1.0); state.any() or __import__('warnings').warn('few rows')",
        (CONTROL + "rows_in_memory[LloydKMeans-no row, one row]",),
    ),
    Mutant(
        "one more pass over a table with rows",
        "curator.curator",
        "reporter()(1.0)",
        "reporter()(1.0); state.any() and self._engine.fold(aggregate)",
        (CONTROL + "rows_in_files[LloydKMeans-no row, one row]",),
    ),
    Mutant(
        "rows on disk",
        "private.engines.memory",
        "folds = [partial(stretch.fold, aggregate, is_kept) for stretch in self._stretches]",
        "len(self.rows) and np.save(__import__('tempfile').mkstemp()[1], self.rows);"
        " folds = [partial(stretch.fold, aggregate, is_kept) for stretch in self._stretches]",
        (CONTROL + "rows_in_memory[LloydKMeans-no row, one row]",),
    ),
]

THRESHOLDED, COUNTED = "private/mechanisms/test_thresholded.py::test_", "private/test_levels.py::test_"
TERMS = "private/test_terms.py::test_"

LEVELS = [
    Mutant(
        "levels without noise",
        "private.mechanisms.thresholded",
        "noisy_counts = raw_counts + noise",
        "noisy_counts = raw_counts + 0 * noise",
        (THRESHOLDED + "single_units_pass_as_often_as_delta_says[1.0]",),
    ),
    Mutant(
        "a threshold for one value of a person",
        "private.mechanisms.thresholded",
        "return n_values * exp_of(-excess / scale)",
        "return exp_of(-excess / scale)",
        (THRESHOLDED + "least_threshold_by_exact_tails[1/20-30-7]",),
    ),
    Mutant(
        "a threshold that forgets the person's own count",
        "private.mechanisms.thresholded",
        "exp_of(-excess / scale)",
        "exp_of(-threshold / scale)",
        (THRESHOLDED + "least_threshold_by_exact_tails[1/20-30-7]",),
    ),
    Mutant(
        "a person counts for every value",
        "private.levels",
        "return entries.take(pa.array(order[is_first]))",
        "return entries",
        (COUNTED + "brute_force_over_all_small_neighbours",),
    ),
    Mutant(
        "terms chosen by their place among those of all people",
        "private.terms",
        "hashes = _hashes(raw, pairs[0], spelling_hashes(raw.terms)[pairs[1]])",
        "hashes = _hashes(raw, pairs[0], pairs[1].astype(np.uint64))",
        (TERMS + "what_others_count_for_does_not_depend_on_a_person",),
    ),
    Mutant(
        "a person counts for every term",
        "private.terms",
        "kept = uses[:, _first(uses[0], hashes, uses[2], max_terms)]",
        "kept = uses",
        (TERMS + "counts_move_by_no_more_than_declared_over_all_small_neighbours[1-1]",),
    ),
    Mutant(
        "a person is in every cluster",
        "private.terms",
        "return raw.members[:, _first(people, hashes, clusters, max_clusters)]",
        "return raw.members",
        (TERMS + "counts_move_by_no_more_than_declared_over_all_small_neighbours[1-1]",),
    ),
    Mutant(
        "a Gaussian threshold for one term of a person",
        "private.mechanisms.thresholded",
        "return n_values * exp_of(-squared)",
        "return exp_of(-squared)",
        (THRESHOLDED + "gaussian_threshold_by_exact_tails[1/20-30-7-1]",),
    ),
    Mutant(
        "thresholds at no delta",
        "budget.costs",
        "spare = float(Fraction(delta) - own_delta)",
        "spare = float(Fraction(delta))",
        ("budget/test_thresholds.py::test_no_epsilon_below_the_delta_of_the_thresholds",),
    ),
    Mutant(
        "levels and the rest each for the whole budget",
        "budget.calibration",
        "Budget(budget.epsilon * share, budget.delta - delta)",
        "Budget(budget.epsilon, budget.delta)",
        (
            "budget/test_thresholds.py::test_recorded_and_summed_is_what_was_promised[and a count-epsilon=1, "
            "delta=1e-06-1]",
        ),
    ),
]

READING = [
    Mutant(
        "NaN in a sum",
        "domain.space",
        "out = out[(np.isfinite(rows) & np.isfinite(out)).all(axis=1)]",
        "pass",
        (NEIGHBOURS + "TestAssumeFinite::test_no_engine_passes_them_on",),
    ),
    Mutant(
        "persons named by floats",
        "private.reading",
        "if pa.types.is_integer(kind):",
        "if pa.types.is_integer(kind) or pa.types.is_floating(kind):",
        (NEIGHBOURS + "test_long_ids_with_an_empty_one",),
    ),
    Mutant(
        "a first row that tells the number of columns",
        "private.sources.text",
        "n_columns = len(names) if self.text.tells_names else None",
        "n_columns = len(self.first_line(path) or names)",
        ("private/sources/test_text.py::TestNames::test_no_first_row_tells_the_number_of_columns",),
    ),
    Mutant(
        "a spelling that depends on other objects",
        "private.parsing",
        "return pa.array([_spelled(value) for value in values], pa.large_string())",
        "return pa.array(values, from_pandas=True).cast(pa.large_string())",
        (NEIGHBOURS + "test_one_date_among_times",),
    ),
]

COLUMNS = [
    Mutant(
        "a category as if it were two columns",
        "domain.blocks",
        "return min(self.size, 4) if",
        "return min(self.size, 2) if",
        (SUMS + "the_worst_origin_reaches_the_sensitivity[50]",),
    ),
    Mutant(
        "origins that are no distributions",
        "private.aggregates.sums",
        "if not lies_within(self.domain.blocks, self.origins, np.array(self.domain.high)):",
        "if not self.domain.blocks:",
        (SUMS + "an_origin_that_is_no_distribution_breaks_the_bound_and_is_refused",),
    ),
    Mutant(
        "radii so small that the rounding of an origin counts",
        "private.aggregates.sums",
        "if not (self.radii >= self.domain.least_radius).all():",
        "if not (self.radii >= 0).all():",
        (SUMS + "origins_that_are_off_by_rounding_break_the_bound_at_a_tiny_radius_which_is_refused",),
    ),
    Mutant(
        "questions in the user's units",
        "curator.curator",
        "return self.space.measured",
        "return self.space",
        ("cluster/test_scale.py::test_as_scaled_by_hand[LloydKMeans-pure]",),
    ),
    Mutant(
        "rows that are clipped and not measured",
        "domain.space",
        "return self.measure.of(self._inside_box(rows))",
        "return self._inside_box(rows)",
        ("domain/test_scaling.py::test_rows_that_are_left_out_change_no_other",),
    ),
    Mutant(
        "two levels in one row",
        "private.reading",
        "            rows[:, j] *= rest",
        "            rows[:, j] *= 1",
        ("private/test_reading.py::test_a_row_has_one_level_even_if_it_is_spelled_like_two",),
    ),
    Mutant(
        "rows left out for a described value",
        "private.reading",
        "complete = complete_rows(rows[:, : len(columns.coordinates)], columns.missing)\n    return",
        "complete = complete_rows(rows, columns.missing)\n    return",
        (MIXED + "missing_described_values_leave_no_row_out",),
    ),
    Mutant(
        "described columns as if they were one",
        "private.aggregates.profiles",
        "return Sensitivity(l1=n_columns, l2_squared=n_columns, spread=1, coordinates=n_columns)",
        "return Sensitivity(coordinates=n_columns)",
        (AGGREGATES + "one_row_never_moves_more_than_declared_and_reaches_it[ProfileCounts-1]",),
    ),
    Mutant(
        "profiles without noise",
        "curator.curator",
        "return self._release(step, ProfileCounts(partition, self.domain.n_features, tuple(edges)))",
        "counts = ProfileCounts(partition, self.domain.n_features, tuple(edges)); return"
        " Noisy(self._fold(counts), self._declare(step, counts.sensitivity, selection=False))",
        (MIXED + "profiles_have_noise",),
    ),
    Mutant(
        "profiles that nobody pays for",
        "cluster.shared.base",
        "plan = plan.then(profile_steps(describing.n_columns(domain)), describing.share)",
        "plan = plan.then(profile_steps(1), describing.share)",
        (MIXED + "the_spend_of_every_estimator[LloydKMeans-pure-rows]",),
    ),
]

HOLDERS = [
    Mutant(
        "the whole cap at every holder",
        "curator.joint",
        "max_rows=unit.max_rows // self.max_holders_per_unit",
        "max_rows=unit.max_rows",
        ("curator/test_joint.py::test_without_shares_the_cap_would_be_broken",),
    ),
    Mutant(
        "a holder drops out unnoticed",
        "holders.rounds",
        "if got.count(name) != 1:",
        "if got.count(name) > 1:",
        ("holders/test_rounds.py::TestDropOuts::test_a_holder_is_missing",),
    ),
    Mutant(
        "two versions of a round",
        "holders.rounds",
        "last.transcript != transcript.digest(last.round)",
        "False",
        ("holders/test_rounds.py::TestLedgers::test_two_versions_of_a_round",),
    ),
]

MUTANTS = [*NO_NOISE, *SPENDS, *SENSITIVITIES, *PERSONS, *LEAKS, *LEVELS, *READING, *COLUMNS, *HOLDERS]

# The case of tests/audit/test_meter.py in which the exact meter alone sees a mutant.
METER = "audit/test_meter.py::TestCases::test_"
METERED = {
    "half the noise": "counts[pure]",
    "noise on sums and not on counts": "sums[pure]",
    "no noise where nobody is": "counts[pure]",
    "the same noise in every step": "counts[pure]",
    "one draw for all entries": "counts[pure]",
    "a draw of the first side for the second": "splits[pure]",
    "no noise on means of the nearest rows": "nearest_rows",
    "no noise on the mean distance from the nearest rows": "nearest_rows",
    "a seed where none was given": "the_seed",
    "rounded floating-point noise": "counts[pure]",
    "a selection at twice its rate": "splits[zcdp]",
    "the best instead of a selection": "splits[pure]",
    "Gaussian noise that costs a part of itself": "gaussian_noise",
    "shares swapped between steps": "sums[pure]",
    "a repeated step priced as one": "sums[pure]",
    "a repeated step composed as one": "sums[approximate]",
    "equal steps composed as one": "moments[soft-9]",
    "one ask more than was declared": "methods_that_ask_for_more_than_was_declared[Greedy-pure]",
    "an ask that fails is not counted": "methods_that_ask_for_more_than_was_declared[Greedy-pure]",
    "more entries than were declared": "methods_that_ask_for_more_than_was_declared[Wide-pure]",
    "a larger delta than was promised": "counts[approximate]",
    "delta left out of a sum of budgets": "counts[approximate]",
    "permute-and-flip at the price of the exponential mechanism": "splits[pure]",
    "losses tabulated for one row of a person": "a_count_that_one_row_moves_by_three",
    "a scale rounded down": "counts[zcdp]",
    "the ledger charged afterwards": "counts[pure]",
    "bounds that were bought and not stated": "bounds_that_were_bought",
    "bounds that nobody pays for": "bounds_that_were_bought",
    "products of two columns in L1 as if they weighed as much as squares": "products_of_many_columns",
    "noise for L2 where it must be for L1": "splits[pure]",
    "sums in L1 as if there were one column": "splits[pure]",
    "columns of marginals as if they were disjoint": "bounds_that_are_found",
    "scores of splits that move in one direction": "splits_between_two_blobs",
    "two sides of a split that overlap": "splits[pure]",
    "noise for one row of a person": "sums[pure]",
    "a question for one row of a person": "sums[pure]",
    "squared norms times the cap": "sums[zcdp]",
    "no cap on the rows of a person": "counts[pure]",
    "a cap for each part of a table": "people_in_several_files",
    "levels without noise": "levels_that_are_found",
    "a threshold for one value of a person": "levels_that_are_found",
    "a threshold that forgets the person's own count": "levels_that_are_found",
    "a person counts for every value": "levels_that_are_found",
    "a person counts for every term": "texts",
    "described columns as if they were one": "profiles_and_categories",
    "profiles without noise": "profiles_and_categories",
    "no carry after the noise": "sums_that_outgrow_a_limb",
    "parts of persons counted as those of rows": "a_ledger_of_months",
    "runs for rows and for persons in one sum": "a_ledger_of_rows_and_persons",
    "bounds read off the data": "sums[pure]",
    "a choice that skips groups without rows": "splits_of_nobody",
    "a threshold on raw counts": "counts[pure]",
    "occupied cells only": "counts[pure]",
    "labels in the release": "sums[pure]",
    "values in an error": "errors",
    "an error for a table without rows": "the_seed",
    "rows counted in the progress": "sums[pure]",
    "rows counted in a log": "sums[pure]",
    "a warning about few rows": "the_seed",
    "terms chosen by their place among those of all people": "texts_of_many_words",
    "a person is in every cluster": "texts_of_people_in_several_clusters",
    "a Gaussian threshold for one term of a person": "texts_of_many_words",
    "thresholds at no delta": "texts_of_words_that_others_use",
    "levels and the rest each for the whole budget": "levels_that_others_have",
    "a first row that tells the number of columns": "rows_of_another_width",
    "a spelling that depends on other objects": "objects_of_another_type",
    "a category as if it were two columns": "profiles_and_categories",
    "origins that are no distributions": "methods_that_sum_around_wrong_places[Astray]",
    "radii so small that the rounding of an origin counts": "methods_that_sum_around_wrong_places[Minute]",
    "profiles that nobody pays for": "profiles_and_categories",
    "the whole cap at every holder": "people_at_several_holders",
    "two versions of a round": "two_versions_of_a_round",
}

# Why the meter cannot see the others. It compares answers and what is released, on two neighbours.
_CLIPPED = "aggregates clip rows themselves, so no neighbour loses more"
_ANOTHER_ANSWER = "an answer to another question, with the sensitivity and noise of its own"
_NOT_RELEASED = "nothing that is released differs"
UNMETERED = {
    "checksums that do not cover the line before": "about a file that was altered: no run costs more",
    "runs that depend on each other in one table of losses": "right on every path; the choice is not proved",
    "an attacker without delta": "what a report says about odds: nothing is spent",
    "an attacker who hears of no threshold": "what a report says about odds: nothing is spent",
    "a box that reaches beyond its node": _CLIPPED,
    "rows outside the domain": _CLIPPED,
    "rows outside the bounds that were found": _CLIPPED,
    "rows in a pickle": _NOT_RELEASED,
    "the seed in the release": "both tables have the same seed",
    "a seeded run that does not say so": "both tables say the same",
    "one more pass over a table with rows": "time, at which it does not look",
    "rows on disk": _NOT_RELEASED,
    "NaN in a sum": "kernels take NaN for a place in memory: the process ends",
    "persons named by floats": "a column of floats is refused on both tables; read, it only merges persons",
    "questions in the user's units": _ANOTHER_ANSWER,
    "rows that are clipped and not measured": _ANOTHER_ANSWER,
    "two levels in one row": "sums are clipped, and a category pays for four entries: three change",
    "rows left out for a described value": "by their own values alone: no other row changes",
    "a holder drops out unnoticed": "fewer rows are counted, with all of the noise",
}
